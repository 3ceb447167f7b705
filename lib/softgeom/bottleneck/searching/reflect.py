"""Braid Reflect, the paper's approximate search (001, Algorithms 1 and 2), for many classes at
once.

From ``x = w_t`` on, as long as some class i beats t, x is reflected across the hyperplane on which
the two tie:

    w = w_t - w_i,   b = b_t - b_i,   x <- x - 2 (w.x + b) / ||w||^2  w,      i = argmax(W x + b).

Without a bias the reflection is a Householder transformation. The search has a one-sided error: a
win proves that t is argmaxable, running out of patience proves nothing. It is kept as the paper's
method, for its step counts and as the baseline; ``ascent.py`` is the search that ``scan`` uses. As
in the authors' experiments a win outside the box does not count: the class is then left to the
exact algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgeom.layer import SoftmaxLayer

PATIENCE = 2500  # Section 4 of the paper


@dataclass(frozen=True, eq=False)
class Reflections:
    """The outcome of Braid Reflect for n classes."""

    x: NDArray[Any]  # (n, d) the last point
    won: NDArray[np.bool_]  # (n,) whether the class is the argmax there
    inside: NDArray[np.bool_]  # (n,) whether the point lies in the box
    steps: NDArray[np.intp]  # (n,) reflections made


def reflect_step(
    x: NDArray[Any], w_t: NDArray[Any], w_i: NDArray[Any], b_t: NDArray[Any], b_i: NDArray[Any]
) -> NDArray[Any]:
    """Reflect points x (n, d) across the hyperplanes on which class t and class i tie (Algorithm
    1).

    Parameters
    ----------
    x : (n, d) array
        Points.
    w_t, w_i : (n, d) arrays
        Rows of the class sought and of the class that wins at x.
    b_t, b_i : (n,) arrays
        Their biases.

    Notes
    -----
    Where the rows are equal there is no hyperplane and x stays.
    """
    w = w_t - w_i
    square = np.einsum("nd,nd->n", w, w)
    lead = np.einsum("nd,nd->n", w, x) + (b_t - b_i)
    return x - 2 * np.divide(lead, square, out=np.zeros_like(lead), where=square > 0)[:, None] * w


def braid_reflect(
    layer: SoftmaxLayer,
    classes: NDArray[np.intp] | None = None,
    *,
    patience: int = PATIENCE,
    bound: float = 100.0,
    dtype: Any = None,
) -> Reflections:
    """Run Braid Reflect (Algorithm 2) for ``classes`` (n,), all of them in one matrix product per
    step.

    Parameters
    ----------
    layer : SoftmaxLayer
        The layer, (C, d).
    classes : (n,) integer array, optional
        Default all.
    patience : int
        Reflections before giving up; 2,500 in the paper.
    bound : float
        The box that a win must lie in, 100 in the paper.
    dtype : optional
        Arithmetic; default that of W, at least float32.
    """
    classes = np.arange(layer.classes) if classes is None else np.asarray(classes, dtype=np.intp)
    dtype = dtype or np.result_type(layer.W.dtype, np.float32)
    W, b = layer.W.astype(dtype, copy=False), layer.bias.astype(dtype, copy=False)
    x = W[classes].copy()
    won, steps = np.zeros(len(classes), dtype=bool), np.zeros(len(classes), dtype=np.intp)
    left = np.arange(len(classes))
    for step in range(patience + 1):
        best = _argmax(W, b, x[left])
        won[left] = best == classes[left]
        losing = best != classes[left]
        left, best = left[losing], best[losing]
        if not len(left) or step == patience:
            break
        t = classes[left]
        x[left] = reflect_step(x[left], W[t], W[best], b[t], b[best])
        steps[left] += 1
    return Reflections(x, won, np.abs(x).max(axis=1) <= bound, steps)


def _argmax(
    W: NDArray[Any], b: NDArray[Any], x: NDArray[Any], tile: int = 1024
) -> NDArray[np.intp]:
    parts = [(x[i : i + tile] @ W.T + b).argmax(axis=1) for i in range(0, len(x), tile)]
    return np.concatenate(parts) if parts else np.zeros(0, np.intp)
