"""Weights of an earlier layer, mended for the rows of a new one.

After some steps of training the weights l of captors, which held ``sum_i l_i (w_t - w_i) = 0``,
miss it by a residual. Among the changes of weights that take the residual away, Newton's step of
largest entropy is the smallest relative one:

    l <- l (1 + A mu),   A = [w_t - w_i, 1],   (A^T diag(l) A) mu = target - A^T l.

Weights that would turn negative are cut off at zero, and the step is taken again. Nothing is proven
here: whoever mends hands the weights to the checker.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg

from softgeom.arrays import Floats
from softgeom.certifying.verdict import Captors
from softgeom.problem import Problem
from softgeom.proving.lp import CORRECTIONS
from softgeom.threads import one_thread

# of sums whose terms are of order one: what float64 leaves after a solution
_RESIDUAL = 1e-14
# of the normal matrix's mean diagonal: fewer captors than equations leave it singular
_RIDGE = 1e-14


@one_thread()
def mend(problem: Problem, classes: Sequence[int], captors: Sequence[Captors]) -> list[Captors]:
    """Captors (n,) of an earlier layer of this shape with weights for the rows of this one; those
    that have no such weights come back with what was reached.
    """
    return [_mended(problem, t, few) for t, few in zip(classes, captors, strict=True)]


def _mended(problem: Problem, t: int, captors: Captors) -> Captors:
    d = problem.layer.dimension
    own = problem.rows(np.array([t]), np.float64)[:, :d]
    D = own - problem.rows(captors.rivals, np.float64)[:, :d]  # (k, d)
    size = np.abs(D).max(axis=0)
    A = np.column_stack([D / np.where(size > 0, size, 1.0), np.ones(len(D))])  # (k, d + 1)
    target = np.append(np.zeros(d), 1.0)
    weights = captors.weights.astype(np.float64)
    weights = weights / weights.sum()
    for _ in range(CORRECTIONS):
        miss = target - weights @ A
        if np.abs(miss).max() <= _RESIDUAL:
            break
        weights = np.maximum(weights + _step(A, weights, miss), 0.0)
    kept = weights > 0
    if not kept.any() or not np.isfinite(weights).all():
        return captors
    return Captors(captors.rivals[kept], weights[kept])


def _step(A: Floats, weights: Floats, miss: Floats) -> Floats:
    """``l (A mu)`` (k,) that adds ``miss`` (d + 1,) to ``A^T l``."""
    normal = (A * weights[:, None]).T @ A
    normal[np.diag_indices_from(normal)] += _RIDGE * np.trace(normal) / len(normal)
    try:
        mu = scipy.linalg.solve(normal, miss, assume_a="pos", check_finite=False)
    except np.linalg.LinAlgError:  # captors in too few directions
        return np.zeros_like(weights)
    return np.asarray(weights * (A @ mu))
