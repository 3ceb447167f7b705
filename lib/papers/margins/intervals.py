"""Medians and 95% intervals over repeated subsamples of windows, as in the experiments of 003
(Section 7.3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Interval(NamedTuple):
    """A median with the 2.5% and 97.5% quantiles around it."""

    median: float
    low: float
    high: float

    def overlaps(self, other: Interval) -> bool:
        """Whether the two intervals share a point."""
        return self.low <= other.high and other.low <= self.high


def draw_subsamples(windows: int, subsamples: int, size: int, seed: int) -> NDArray[np.int64]:
    """Indices of ``subsamples`` draws of ``size`` different windows out of ``windows``:
    (subsamples, size). ValueError if there are fewer windows than one subsample takes.
    """
    if size > windows:
        raise ValueError(
            f"a subsample of {size} windows needs at least as many windows; there are {windows}."
        )
    rng = np.random.default_rng(seed)
    return np.stack([rng.choice(windows, size, replace=False) for _ in range(subsamples)])
