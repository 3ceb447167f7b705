"""Classes with equal logits on the whole feature set: exact twins.

Over a box, a ball or all of R^d two logits agree everywhere iff row and bias are equal. After a
normalisation they agree as soon as the effective rows ``gain * w`` (centred, for LayerNorm) and
biases ``b + w.bias`` do: where a gain is 0, or along the ones, rows may differ.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from softgeom.certifying.hull import exact_row
from softgeom.layer import FeatureSet, SoftmaxLayer


def are_twins(layer: SoftmaxLayer, features: FeatureSet, t: int, i: int) -> bool:
    """Whether two different classes have equal logits at every x of the set, so that neither can
    beat the other.
    """
    if t == i or not (0 <= t < layer.classes and 0 <= i < layer.classes):
        return False
    if np.array_equal(layer.W[t], layer.W[i]):
        return bool(layer.bias[t] == layer.bias[i])
    return features.own_coordinates and effective(layer, features, t) == effective(
        layer, features, i
    )


def effective(layer: SoftmaxLayer, features: FeatureSet, i: int) -> tuple[list[Fraction], Fraction]:
    """Row (d,) and bias of class i in the set's own coordinates."""
    return features.reduce_exactly(*exact_row(layer, i))
