"""Shares and their 95% intervals: Wilson's of one proportion, Newcombe's of a difference of two, a
bootstrap over characters.

What is counted several times in one character (fonts, sizes) is no independent trial: the character
is the unit there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

__all__ = ["difference", "resampled", "wilson"]

_RESAMPLES = 2000


def wilson(
    successes: ArrayLike, trials: ArrayLike, level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The score interval (Wilson 1927) of each proportion; sensible also at none or all of the
    trials.
    """
    k, n = np.asarray(successes, dtype=float), np.asarray(trials, dtype=float)
    z = float(ndtri(0.5 + level / 2))
    share, spread = k / n, z**2 / n
    middle = (share + spread / 2) / (1 + spread)
    half = z * np.sqrt(share * (1 - share) / n + spread / n / 4) / (1 + spread)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def difference(successes: tuple[int, int], trials: tuple[int, int]) -> tuple[float, float, float]:
    """The difference of two proportions, first minus second, and its interval (Newcombe 1998,
    method 10, from the two score intervals).
    """
    (p, q), (low, high) = np.divide(successes, trials), wilson(successes, trials)
    below = np.hypot(p - low[0], high[1] - q)
    above = np.hypot(high[0] - p, q - low[1])
    return float(p - q), float(p - q - below), float(p - q + above)


def resampled(values: ArrayLike, rng: np.random.Generator) -> tuple[float, float, float]:
    """Mean of one number a character and its percentile interval over resampled characters;
    Wilson's where none is above zero.
    """
    found = np.asarray(values, dtype=float)
    mean = float(found.mean())
    if not found.any():
        low, high = wilson(0, len(found))
        return mean, float(low), float(high)
    means = found[rng.integers(0, len(found), (_RESAMPLES, len(found)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return mean, float(low), float(high)
