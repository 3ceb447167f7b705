"""A layer with some of its features held fixed: the narrower layer that is left for the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softgeom.layer import SoftmaxLayer

__all__ = ["cut_features"]


def cut_features(layer: SoftmaxLayer, keep: ArrayLike, at: NDArray[Any]) -> SoftmaxLayer:
    """The layer (C, k) of the kept features when all others stay at the values `at` (d,): what they
    contribute joins the bias.

    The features that remain possible are a slice of the set that the layer had. So a class that is
    unargmaxable over a box stays so in every such cut at values inside the box, and with fewer
    features kept.

    Raises
    ------
    ValueError
        When features to keep are named twice or are out of range, or `at` has another length than
        the features.
    """
    kept = np.asarray(keep, dtype=np.intp)
    fixed = np.ones(layer.dimension, dtype=bool)
    if len(np.unique(kept)) != len(kept) or (
        len(kept) and not 0 <= kept.min() <= kept.max() < layer.dimension
    ):
        raise ValueError(
            f"the features to keep must be different numbers from 0 to {layer.dimension - 1}."
        )
    if np.shape(at) != (layer.dimension,):
        raise ValueError(
            f"`at` must have one value for each of the {layer.dimension} features, not shape "
            f"{np.shape(at)}."
        )
    fixed[kept] = False
    W = layer.W.astype(np.float64)
    return SoftmaxLayer(
        W[:, kept], layer.bias + W[:, fixed] @ np.asarray(at, dtype=np.float64)[fixed], layer.tokens
    )
