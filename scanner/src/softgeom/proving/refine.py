"""Weights that a sceptic can use: few, with a residual at rounding.

Where room absorbs the residual v of rounded weights, they are a certificate as they are. Where an
equality must hold (no bias, or unbounded features) floats cannot, and the proof is that weights
near them exist: blocking classes whose simplex holds the class with room. That argument (hull.py,
route 2) is the shorter the fewer blocking classes there are and the smaller v is beside the least
weight:

* *reduce*: non-negative least squares picks at most |K| + 1 of the blocking classes (Caratheodory);
* *refine*: Newton's correction ``l - R v`` until v is what float64 leaves.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.optimize

from softgeom.arrays import Floats
from softgeom.certifying import hull
from softgeom.certifying.hull import certify_unargmaxable
from softgeom.certifying.verdict import BlockingClasses
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.proving.lp import CORRECTIONS


def refine(
    layer: SoftmaxLayer, features: FeatureSet, t: int, blocking: BlockingClasses
) -> tuple[BlockingClasses, float]:
    """Thinner and sharper weights where an equality has to hold, and the bound that they certify.

    Blocking classes that prove with room, or in fractions, come back as they are, and so do those
    that only get worse.
    """
    given = (layer, features, t, blocking.rivals, blocking.weights)
    if blocking.weights.dtype != object and not hull.has_slack(*given):
        finer = _finer(layer, features, t, blocking)
        if finer is not None:
            bound = certify_unargmaxable(layer, features, t, finer.rivals, finer.weights)
            if bound <= 0:
                return finer, bound
    return blocking, certify_unargmaxable(*given)


def _finer(
    layer: SoftmaxLayer, features: FeatureSet, t: int, blocking: BlockingClasses
) -> BlockingClasses | None:
    """The corrected weights; None where there is no system to solve."""
    A = _system(layer, features, t, blocking)
    if not np.isfinite(A).all():
        return None
    target = np.append(np.zeros(len(A) - 1), float(blocking.weights.sum()))
    rivals, weights = blocking.rivals, blocking.weights.astype(np.float64)
    if len(rivals) > len(A):
        try:
            weights = scipy.optimize.nnls(A, target)[0]
        except RuntimeError:
            return None  # not converged
        kept = weights > 0
        rivals, weights, A = rivals[kept], weights[kept], A[:, kept]
    scaled = A * weights
    Q, R = scipy.linalg.qr(scaled.T, mode="economic", check_finite=False)
    least = len(A) * np.finfo(float).eps * np.abs(R).max()
    depends = len(R) < len(A) or np.abs(np.diag(R)).min() <= least
    for _ in range(CORRECTIONS):
        miss = target - A @ weights
        if depends:
            correction = scipy.linalg.lstsq(scaled, miss, check_finite=False)[0]
        else:
            correction = Q @ scipy.linalg.solve_triangular(R, miss, trans="T", check_finite=False)
        weights = np.maximum(weights + weights * correction, 0.0)
    return BlockingClasses(rivals[weights > 0], weights[weights > 0])


def _system(layer: SoftmaxLayer, features: FeatureSet, t: int, blocking: BlockingClasses) -> Floats:
    """Rows of order one: the differences that must vanish, less what is zero anyway, and ones (m +
    1, k).
    """
    D = layer.W[t].astype(np.float64) - layer.W[blocking.rivals].astype(np.float64)
    E = features.equalities(D, np.zeros(len(D)))[0]
    weights = blocking.weights.astype(np.float64)
    tiny = np.abs(weights @ E) <= hull.TINY * (weights @ np.abs(E))
    E = E[:, tiny & E.any(axis=0)]
    return np.vstack([E.T / np.abs(E).max(axis=0)[:, None], np.ones(len(E))])
