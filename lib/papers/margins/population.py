"""Random sequences on the line: which are excluded, and how their density goes with their variance
(003, Section 3.4, Figure 3.3).

A sequence is excluded if a position has a margin 1 - c Var_i <= 0.  The source's figure says
nothing about which position it means nor about the scale of its sequences, so both are arguments:
``READINGS`` names the positions that count, and scaling the tokens by t at coupling c is the same
as coupling c t^2.

Shapes: sequences (N, T) -> (N,).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm, spearmanr

from papers.margins.scalar import sequence_log_density, sequence_moments
from softgeom.arrays import Floats

READINGS = {"any position": slice(None), "last position": slice(-1, None)}


class Association(NamedTuple):
    """A rank correlation with its 95% interval, and how many sequences it is over."""

    correlation: float
    low: float
    high: float
    sequences: int


def margins(sequences: Floats, c: float) -> Floats:
    """Compute 1 - c Var_i at every position: (N, T)."""
    return 1.0 - c * sequence_moments(sequences, c).variance


def excluded(sequences: Floats, c: float, reading: str = "any position") -> NDArray[np.bool_]:
    """Whether a position that counts lies on the degeneracy boundary or beyond it."""
    return np.asarray((margins(sequences, c)[:, READINGS[reading]] <= 0).any(axis=1))


def largest_variance(sequences: Floats, c: float, reading: str = "any position") -> Floats:
    """Largest attention-weighted variance among the positions that count."""
    return np.asarray(sequence_moments(sequences, c).variance[:, READINGS[reading]].max(axis=1))


def excluded_shares(sequences: Floats, scales: Floats, reading: str = "any position") -> Floats:
    """Share of sequences excluded at coupling 1, scaled by each of the scales: (k,)."""
    return np.array([float(excluded(t * sequences, 1.0, reading).mean()) for t in scales])


def scale_excluding(
    share: float, sequences: Floats, reading: str = "any position", tol: float = 1e-3
) -> float:
    """The scale in [0.3, 1.9] that excludes a given share at coupling 1, else ValueError."""

    def gap(t: float) -> float:
        return float(excluded(t * sequences, 1.0, reading).mean()) - share

    return float(brentq(gap, 0.3, 1.9, xtol=tol))


def summarise(sequences: Floats, c: float) -> dict[str, float]:
    """Sequences excluded, smallest margin of all, largest variance among those left."""
    out = excluded(sequences, c)
    return {
        "sequences": len(sequences),
        "excluded": int(out.sum()),
        "smallest_factor": margins(sequences, c).min(),
        "largest_variance": largest_variance(sequences[~out], c).max(),
    }


def density_association(
    sequences: Floats, c: float, s: float, reading: str = "any position"
) -> Association:
    """Spearman's rank correlation of log-density and variance over the sequences that are not
    excluded, with Fisher's interval at the variance 1.06 / (n - 3) (Fieller, Hartley and Pearson
    1957). ValueError: Fewer than four sequences are left.
    """
    valid = sequences[~excluded(sequences, c)]
    if len(valid) < 4:
        raise ValueError(
            f"{len(valid)} sequences are inside the boundary: a correlation needs four at least."
        )
    variances, densities = largest_variance(valid, c, reading), sequence_log_density(valid, c, s)
    correlation = float(spearmanr(variances, densities).statistic)
    half = norm.ppf(0.975) * np.sqrt(1.06 / (len(valid) - 3))
    # a perfect order has an infinite transform
    inner = np.clip(correlation, -1.0 + 1e-12, 1.0 - 1e-12)
    low, high = np.tanh(np.arctanh(inner) + np.array([-half, half]))
    return Association(correlation, float(low), float(high), len(valid))


def dominance(sequences: Floats, c: float) -> NDArray[np.bool_]:
    """Whether the smallest margin's position has the largest barrier term -log |1 - c Var_i|."""
    m = margins(sequences, c)
    smallest = np.take_along_axis(m, m.argmin(axis=1)[:, None], 1)[:, 0]
    return np.asarray(np.abs(smallest) == np.abs(m).min(axis=1))
