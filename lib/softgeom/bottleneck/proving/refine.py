"""Weights that a sceptic can use: few, with a residual at rounding, or exactly rational.

Where room absorbs the residual v of rounded weights, they prove captivity as they are. Where an
equality must hold (no bias, or unbounded features) floats cannot, and the proof is that weights
near them exist: captors whose simplex holds the class with room. That argument (hull.py, route 2)
is the shorter the fewer captors there are and the smaller v is beside the least weight:

* *reduce*: non-negative least squares picks at most |K| + 1 of the captors (Caratheodory);
* *refine*: Newton's correction ``l - R v`` until v is what float64 leaves;
* *exact* (on request): the same system solved in rationals by p-adic lifting (Dixon 1982).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import scipy.linalg
import scipy.optimize

from softgeom.arrays import Floats, Ints
from softgeom.bottleneck.certifying import hull
from softgeom.bottleneck.certifying.hull import certify_captivity, exact_row
from softgeom.bottleneck.certifying.verdict import Captors
from softgeom.bottleneck.proving.lifting import solve_by_lifting
from softgeom.layer import FeatureSet, SoftmaxLayer

ROUNDS = 3  # each gains the digits that the first inverse has


def refine(
    layer: SoftmaxLayer, features: FeatureSet, t: int, captors: Captors
) -> tuple[Captors, float]:
    """Thinner and sharper weights where an equality has to hold, and the bound that they certify.

    Captors that prove with room, or in fractions, come back as they are, and so do those that only
    get worse.
    """
    given = (layer, features, t, captors.rivals, captors.weights)
    if captors.weights.dtype != object and not hull.has_slack(*given):
        finer = _finer(layer, features, t, captors)
        if finer is not None:
            bound = certify_captivity(layer, features, t, finer.rivals, finer.weights)
            if bound <= 0:
                return finer, bound
    return captors, certify_captivity(*given)


def _finer(layer: SoftmaxLayer, features: FeatureSet, t: int, captors: Captors) -> Captors | None:
    """The corrected weights; None where there is no system to solve."""
    A = _system(layer, features, t, captors)
    if not np.isfinite(A).all():
        return None
    target = np.append(np.zeros(len(A) - 1), float(captors.weights.sum()))
    rivals, weights = captors.rivals, captors.weights.astype(np.float64)
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
    for _ in range(ROUNDS):
        miss = target - A @ weights
        if depends:
            correction = scipy.linalg.lstsq(scaled, miss, check_finite=False)[0]
        else:
            correction = Q @ scipy.linalg.solve_triangular(R, miss, trans="T", check_finite=False)
        weights = np.maximum(weights + weights * correction, 0.0)
    return Captors(rivals[weights > 0], weights[weights > 0])


def make_exact(layer: SoftmaxLayer, features: FeatureSet, t: int, captors: Captors) -> Captors:
    """The same captors with rational weights that hold the equality to the last bit.

    A class with d captors needs about ``d (24 + log2 d)`` bits for each numerator from a float32
    layer: some 200 kilobytes a class for d = 256. ValueError if the captors' rows are dependent, or
    some rational weight is negative.
    """
    if captors.weights.dtype == object:
        return captors
    finer = refine(layer, features, t, captors)[0]
    as_they_are = [Fraction(w) for w in finer.weights.tolist()]
    own = np.full(len(finer.rivals), t)
    if hull.exact_comparisons(layer, features, own, finer.rivals, as_they_are):
        return Captors(finer.rivals, np.array(as_they_are, dtype=object))
    K = _equalities(layer, features, t, finer)[1]
    row, others = exact_row(layer, t)[0], [exact_row(layer, int(i))[0] for i in finer.rivals]
    leads = ([p - q for p, q in zip(row, other, strict=True)] for other in others)
    rows = [features.equalities_exactly(lead) for lead in leads]
    A = [[row[k] for row in rows] for k in K] + [[Fraction(1)] * len(rows)]
    if len(A) != len(rows):
        raise ValueError(
            f"Class {t}: {len(rows)} captors for {len(A)} equations have no unique weights."
        )
    solution = solve_by_lifting(A, [Fraction(0)] * len(K) + [Fraction(1)])
    exact = Captors(finer.rivals, np.array(solution, dtype=object))
    bound = certify_captivity(layer, features, t, exact.rivals, exact.weights)
    if min(solution) < 0 or not bound <= 0:
        raise ValueError(f"Class {t}: the rational weights of these captors prove nothing.")
    return exact


def _equalities(
    layer: SoftmaxLayer, features: FeatureSet, t: int, captors: Captors
) -> tuple[Floats, Ints]:
    """Columns E (k, m) whose weighted sums must vanish, and which of them are not zero anyway."""
    D = layer.W[t].astype(np.float64) - layer.W[captors.rivals].astype(np.float64)
    E = features.equalities(D, np.zeros(len(D)))[0]
    weights = captors.weights.astype(np.float64)
    tiny = np.abs(weights @ E) <= hull.TINY * (weights @ np.abs(E))
    return E, np.flatnonzero(tiny & E.any(axis=0))


def _system(layer: SoftmaxLayer, features: FeatureSet, t: int, captors: Captors) -> Floats:
    """Rows of order one: the differences that must vanish, and ones (|K| + 1, k)."""
    E, K = _equalities(layer, features, t, captors)
    return np.vstack([E[:, K].T / np.abs(E[:, K]).max(axis=0)[:, None], np.ones(len(E))])
