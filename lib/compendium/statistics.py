"""Intervals over seeds, as every rule of the register uses them.

A seed is the unit: what varies within one trained model says nothing about the next. Over few seeds
the interval is Student's t, since a bootstrap over three values covers 74% where it says 95%. Two
methods that were run on the same seeds are compared by the differences of each pair.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with its 95% interval, unbounded where one seed alone was run."""

    mean: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        return (
            f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}] over {self.seeds} "
            f"seed{'s' * (self.seeds > 1)}"
        )


def over_seeds(values: ArrayLike) -> Interval:
    """Mean and t interval of one number a seed (n,): mean ± t(97.5%, n - 1) s / √n, with s the
    standard deviation of n - 1 degrees of freedom. ValueError when there is no value, one is NaN or
    infinite, or the array is not one number a seed.
    """
    found = _per_seed(values)
    mean, n = float(found.mean()), len(found)
    if n == 1:
        return Interval(mean, -math.inf, math.inf, 1)
    half = float(stats.t.ppf(0.975, n - 1) * found.std(ddof=1) / math.sqrt(n))
    return Interval(mean, mean - half, mean + half, n)


def paired(ours: ArrayLike, theirs: ArrayLike) -> Interval:
    """Mean of the differences of pairs with its t interval; entry i of both has the same seed."""
    a, b = _per_seed(ours), _per_seed(theirs)
    if len(a) != len(b):
        raise ValueError(f"pairs need as many seeds on both sides, not {len(a)} and {len(b)}")
    return over_seeds(a - b)


def p_value(differences: ArrayLike) -> float:
    """Two-sided p of Student's t test that pairs do not differ in the mean; 1 for a single pair."""
    found = _per_seed(differences)
    if len(found) == 1 or not found.any():
        return 1.0
    if np.ptp(found) <= 1e-12 * np.abs(found).max():  # all equal, but for rounding
        return 0.0
    return float(stats.ttest_1samp(found, 0.0).pvalue)


def holm(p_values: ArrayLike) -> np.ndarray:
    """Holm's corrected p: the k-th smallest of m times m - k + 1, and none below one before it
    (Holm 1979). Rejecting those below a level errs anywhere with at most that probability.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(stepped, 1)
    return corrected


def seeds_to_decide(differences: ArrayLike, *, most: int = 1000) -> int | None:
    """How many seeds would leave zero out of their 95% interval at today's mean and deviation: the
    fewest, rounded up to 2, 3, 5, 10, 20, 50, ..., since a deviation of few seeds knows no more;
    None where one seed says nothing of the deviation, or ``most`` would not do.
    """
    found = _per_seed(differences)
    if len(found) == 1:
        return None
    n = np.arange(2, most + 1)
    half = stats.t.ppf(0.975, n - 1) * found.std(ddof=1) / np.sqrt(n)
    enough = n[half < abs(found.mean())]
    if not len(enough):
        return None
    steps = (2, 3, *(k * 10**e for e in range(len(str(most))) for k in (5, 10, 20)))
    return next(step for step in steps if step >= enough[0])


def _per_seed(values: ArrayLike) -> np.ndarray:
    found = np.asarray(values, dtype=float)
    if found.ndim != 1 or not found.size:
        raise ValueError(f"one number a seed is needed, not an array of shape {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError(
            "a seed's value is NaN or infinite: leave out runs that failed, and say how many"
        )
    return found
