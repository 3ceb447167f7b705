"""Certificates with slack, for many classes at once: the first route of hull.py as two products,
sparse where the weights are.

With ``L`` (n, C) the sparse matrix of all weights and s its row sums, the combinations of all
classes together are

    v = s W_t - L W,    c = s b_t - L b,

with errors of at most ``gamma (s |W_t| + L |W|)`` and ``gamma (s |b_t| + L |b|)``. Nothing is
subtracted before it is summed, so that the rounding bound is the sum of the sizes rather than that
of the differences: a little more than in hull.py, and nothing beside the slack that most proofs
have. What it leaves open is for hull.py, one class at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse

from softgeom.arrays import Floats, Ints
from softgeom.certifying.hull import (
    CLAIM,
    COMFORT,
    Care,
    are_weights,
    certify_unargmaxable,
    divide_up,
)
from softgeom.certifying.verdict import BlockingClasses
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.rounding import exponent, gamma, underflow

DENSE = 0.05  # share of weights above which a dense product is quicker than a sparse one
TOGETHER = 512  # classes of one product: their blocking classes' rows are widened to float64


def certify_each_unargmaxable(
    layer: SoftmaxLayer,
    features: FeatureSet,
    classes: Sequence[int],
    blocking: Sequence[BlockingClasses],
) -> Floats:
    """``certify_unargmaxable`` for many classes: upper bounds (n,) on their best margins; inf where
    nothing is proven.
    """
    bounds = slack_bounds(layer, features, classes, blocking)
    for n in np.flatnonzero(np.isinf(bounds)).tolist():
        bounds[n] = certify_unargmaxable(
            layer, features, int(classes[n]), blocking[n].rivals, blocking[n].weights
        )
    return bounds


def slack_bounds(
    layer: SoftmaxLayer,
    features: FeatureSet,
    classes: Sequence[int],
    blocking: Sequence[BlockingClasses],
    care: Care = CLAIM,
) -> Floats:
    """Upper bounds (n,) < 0 on the best margins that float weights prove with slack; inf says
    nothing.

    Fractions, weights that are none, and sizes at the ends of float64 are left to
    ``certify_unargmaxable``.
    """
    bounds = np.full(len(classes), np.inf)
    if abs(exponent(features.extent)) > COMFORT:
        return bounds
    valid = [
        n
        for n, (t, few) in enumerate(zip(classes, blocking, strict=True))
        if few.weights.dtype != object
        and are_weights(layer, np.full(len(few.rivals), t), few.rivals, few.weights)
    ]
    for start in range(0, len(valid), TOGETHER):
        part = valid[start : start + TOGETHER]
        some = [blocking[n] for n in part]
        bounds[part] = _bounds(layer, features, np.array([classes[n] for n in part]), some, care)
    return bounds


def _bounds(
    layer: SoftmaxLayer,
    features: FeatureSet,
    classes: Ints,
    blocking: list[BlockingClasses],
    care: Care,
) -> Floats:
    counts = [len(few.rivals) for few in blocking]
    there, columns = np.unique(
        np.concatenate([few.rivals for few in blocking]), return_inverse=True
    )
    weights = np.concatenate(
        [np.ldexp(few.weights, -exponent(float(few.weights.max()))) for few in blocking]
    )
    L = scipy.sparse.csr_array(
        (weights, columns, np.concatenate([[0], np.cumsum(counts)])),
        shape=(len(blocking), len(there)),
    )
    # The bias as a last column: it is summed alike.
    own, rows = (
        np.column_stack([layer.W[index].astype(np.float64), layer.bias[index].astype(np.float64)])
        for index in (classes, there)
    )
    largest = float(max(np.abs(own).max(), np.abs(rows).max()))
    if not np.isfinite(largest) or abs(exponent(largest)) > COMFORT:
        return np.full(len(classes), np.inf)
    n = max(counts) + 4
    s = L.sum(axis=1)[:, None]
    if L.nnz > DENSE * len(blocking) * len(there):
        L = L.toarray()  # more products, several times sooner; what is zero adds no rounding
    v = s * own - L @ rows
    error = care.errors * (gamma(n) * (s * np.abs(own) + L @ np.abs(rows)) + underflow(n))
    found = np.empty(len(classes))
    for k, (each, off, total) in enumerate(zip(v, error, s[:, 0].tolist(), strict=True)):
        reach, size = features.support_bound(each[:-1], off[:-1])
        constant, constant_error = float(each[-1]), float(off[-1])
        right = reach + constant + constant_error
        right += care.errors * gamma(len(each) + 8) * (size + abs(constant) + constant_error)
        found[k] = divide_up(right, total, care.bound)
    # a bound that underflow has taken is no slack
    return np.where(found < 0, found, np.inf)
