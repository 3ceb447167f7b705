"""What the rows of a layer look like before anything is proven: norms, near-copies, distance to the
rows that nobody trained.

Tokens that training never showed keep the row that initialisation, weight decay and the softmax's
pull left them: short, and close to one another (Land and Bartolo 2024 find under-trained tokens by
the distance of a row to the mean of known untrained ones). Being trained and being *argmaxable* are
two things: an untrained row can win somewhere, and a trained one can be imprisoned.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from softgeom.layer import SoftmaxLayer

_BLOCK = 512  # rows compared with all others at a time
NEAR = 1e-3  # of the larger norm: two rows closer than this differ by less than float16 can tell


def row_table(
    layer: SoftmaxLayer, reference: ArrayLike | None = None, *, copies: bool = True
) -> pd.DataFrame:
    """One row a class: class, token, norm, bias, distance, copy, copy_distance.

    Parameters
    ----------
    layer : SoftmaxLayer
        (C, d).
    reference : integers, optional
        Classes known to be untrained, such as the imprisoned ones: `distance` is ``||w_t - mean of
        their rows||``, over the median of that over all classes; NaN without a reference.
    copies : bool
        Look for each row's nearest other row: `copy` is its class and `copy_distance` their
        distance over the larger norm. Costs one product ``W W^T``.
    """
    W = layer.W.astype(np.float32)
    norms = np.linalg.norm(W, axis=1)
    chosen = np.asarray([] if reference is None else reference, dtype=np.intp)
    distance = np.full(layer.classes, np.nan)
    if len(chosen):
        away = np.linalg.norm(W - W[chosen].mean(axis=0), axis=1)
        distance = away / max(float(np.median(away)), float(np.finfo(np.float32).tiny))
    nearest, gap = (
        _nearest(W, norms)
        if copies and layer.classes > 1
        else (np.full(layer.classes, -1), np.full(len(W), np.nan))
    )
    return pd.DataFrame(
        {
            "class": np.arange(layer.classes),
            "token": [layer.token(t) for t in range(layer.classes)],
            "norm": norms,
            "bias": layer.bias.astype(float),
            "distance": distance,
            "copy": nearest,
            "copy_distance": gap,
        }
    )


def _nearest(
    W: NDArray[np.float32], norms: NDArray[np.float32]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    nearest = np.empty(len(W), dtype=np.intp)
    gap = np.empty(len(W))
    for start in range(0, len(W), _BLOCK):
        rows = slice(start, min(start + _BLOCK, len(W)))
        squares = norms**2 - 2 * (W[rows] @ W.T)
        squares[np.arange(rows.stop - start), np.arange(start, rows.stop)] = np.inf
        nearest[rows] = squares.argmin(axis=1)
        # from the difference: squares cancel
        gap[rows] = np.linalg.norm(W[rows] - W[nearest[rows]], axis=1)
    larger = np.maximum(norms, norms[nearest])
    return nearest, gap / np.where(larger > 0, larger, 1)
