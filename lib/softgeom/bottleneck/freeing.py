"""The least raise of one bias that frees an imprisoned class, by the linear programme of its best
margin.

A shift s of b_t raises every margin of class t by s, so that the class is argmaxable from s > -g_t
on, with its best margin
g_t = max over the box of min over i of (w_t - w_i).x + b_t - b_i  (001, Section 3.3). The captors of a proof
bound that margin from above, and need not reach it; here the margin itself is solved for.
"""

from __future__ import annotations

import numpy as np

from softgeom.bottleneck.certifying.verdict import Captors
from softgeom.bottleneck.proving.lp import MarginProgramme
from softgeom.bottleneck.scan_result import Scan
from softgeom.layer import Box

__all__ = ["smallest_shift"]

_ROUNDS = 60  # of the working set; captors are a good start, so that a few suffice
_FRESH = 128  # rivals that join at a time
_CLOSED = 1e-9  # the working set is complete when no rival cuts the margin by more


def smallest_shift(scan: Scan, index: int) -> float:
    """``-g_t`` of an imprisoned class of a scan over a box: a larger raise of its bias frees it, a
    smaller one does not.

    Raises
    ------
    ValueError
        If the class is not unargmaxable in this scan, or its features are no box.
    RuntimeError
        If the working set does not close.
    """
    evidence = scan.evidence(index)
    if not isinstance(evidence, Captors):
        raise ValueError(
            f"Class {index} is {evidence.verdict}: only an imprisoned class can be freed."
        )
    if not isinstance(scan.features, Box):
        raise ValueError(
            "The smallest shift is solved for over a box; this scan's features are another set."
        )
    W, b = scan.layer.W.astype(np.float64), scan.layer.bias.astype(np.float64)
    low, high = scan.features.bounds(scan.layer.dimension)
    programme = MarginProgramme(W[index], float(b[index]), low, high)
    fresh = evidence.rivals
    for _ in range(_ROUNDS):
        programme.add(fresh, W[fresh], b[fresh])
        x, margin, _ = programme.solve()
        gap = (W[index] - W) @ x + b[index] - b
        gap[index] = np.inf
        if gap.min() >= margin - _CLOSED:
            return -float(margin)
        fresh = np.argsort(gap)[:_FRESH]
    raise RuntimeError(f"class {index}: the working set did not close in {_ROUNDS} rounds.")
