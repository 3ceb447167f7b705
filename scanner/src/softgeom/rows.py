"""What the rows of a layer look like before anything is proven: norms, near-copies, distance to the
rows that nobody trained; and the layer that is left when some features are held fixed.

Tokens that training never showed keep the row that initialisation, weight decay and the softmax's
pull left them: short, and close to one another (Land and Bartolo 2024 find under-trained tokens by
the distance of a row to the mean of known untrained ones). Being trained and being *argmaxable* are
two things: an untrained row can win somewhere, and a trained one can be unargmaxable.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from softgeom.arrays import Array, Floats, Ints
from softgeom.layer import SoftmaxLayer

BLOCK = 512  # rows compared with all others at a time
# rows that are looked at again: the expansion of a square cancels, so the nearest may come second
# or third
CANDIDATES = 8


def row_table(
    layer: SoftmaxLayer, reference: ArrayLike | None = None, *, copies: bool = True
) -> pd.DataFrame:
    """One row a class: class, token, norm, bias, distance, copy, copy_distance. With ``reference``,
    classes known to be untrained, such as unargmaxable ones, `distance` is ``||w_t - mean of their
    rows||`` over its median, else NaN. ``copies`` looks for each row's nearest other row, by one
    product ``W W^T``: its class and their distance over the larger norm.
    """
    W = layer.W.astype(np.float32)
    norms = np.linalg.norm(W, axis=1)
    chosen = np.asarray([] if reference is None else reference, dtype=np.intp)
    distance = np.full(layer.classes, np.nan)
    if len(chosen):
        away = np.linalg.norm(W - W[chosen].mean(axis=0), axis=1)
        distance = away / max(float(np.median(away)), float(np.finfo(np.float32).tiny))
    nearest, gap = np.full(layer.classes, -1), np.full(layer.classes, np.nan)
    if copies and layer.classes > 1:
        nearest, gap = nearest_rows(layer.W)
        larger = np.maximum(norms, norms[nearest])
        gap /= np.where(larger > 0, larger, 1)
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


def nearest_rows(W: Array, classes: ArrayLike | None = None) -> tuple[Ints, Floats]:
    """The nearest other row of W (C, d) to each of the chosen rows, default all, and its distance:
    (n,) each.

    Rows that training told apart are far from each other; a copy of another up to rounding was,
    most likely, never asked for. ValueError when there is no other row.
    """
    rows = np.asarray(W, dtype=np.float64)
    if len(rows) < 2:
        raise ValueError("a nearest other row needs two classes at least.")
    chosen = np.arange(len(rows)) if classes is None else np.asarray(classes, dtype=np.intp)
    squares = np.einsum("cd,cd->c", rows, rows)
    count = min(CANDIDATES, len(rows) - 1)
    nearest, distance = np.empty(len(chosen), dtype=np.intp), np.empty(len(chosen))
    for start in range(0, len(chosen), BLOCK):
        block = chosen[start : start + BLOCK]
        near = squares - 2 * rows[block] @ rows.T  # (n, C), up to a constant of each row
        near[np.arange(len(block)), block] = np.inf
        candidates = np.argpartition(near, count - 1, axis=1)[:, :count]
        exact = np.linalg.norm(rows[candidates] - rows[block][:, None], axis=2)
        best = exact.argmin(axis=1)[:, None]
        nearest[start : start + BLOCK] = np.take_along_axis(candidates, best, axis=1)[:, 0]
        distance[start : start + BLOCK] = np.take_along_axis(exact, best, axis=1)[:, 0]
    return nearest, distance


def cut_features(layer: SoftmaxLayer, keep: ArrayLike, at: Array) -> SoftmaxLayer:
    """The layer (C, k) of the kept features when all others stay at the values `at` (d,): what they
    contribute joins the bias.

    The features that remain possible are a slice of the set that the layer had. So a class that is
    unargmaxable over a box stays so in every such cut at values inside the box, and with fewer
    features kept. ValueError if features to keep are named twice or are out of range, or `at` has
    another length than the features.
    """
    kept = np.asarray(keep, dtype=np.intp)
    fixed = np.ones(layer.dimension, dtype=bool)
    different = len(np.unique(kept)) == len(kept)
    if not different or not all(0 <= k < layer.dimension for k in kept):
        numbers = f"different numbers from 0 to {layer.dimension - 1}"
        raise ValueError(f"the features to keep must be {numbers}.")
    if np.shape(at) != (layer.dimension,):
        asked = f"one value for each of the {layer.dimension} features"
        raise ValueError(f"`at` must have {asked}, not shape {np.shape(at)}.")
    fixed[kept] = False
    W = layer.W.astype(np.float64)
    b = layer.bias + W[:, fixed] @ np.asarray(at, dtype=np.float64)[fixed]
    return SoftmaxLayer(W[:, kept], b, layer.tokens)
