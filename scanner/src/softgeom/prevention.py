"""Layers in which no class is unargmaxable, and the smallest repair that lets a class win.

*Theorem.* If all rows have the same norm and no two are equal, every class of a layer without bias
is argmaxable, by its own row: ``w_t.(w_t - w_i) = (||w_t||^2 + ||w_t - w_i||^2 - ||w_i||^2) / 2 =
||w_t - w_i||^2 / 2 > 0``.

*With a bias* the same witness works when ``2 b_i + ||w_i||^2`` is the same for all classes: at x =
w_t the margin is ``(||w_t - w_i||^2 + (2 b_t + ||w_t||^2) - (2 b_i + ||w_i||^2)) / 2``. The layer
is then a nearest-neighbour classifier (a Voronoi diagram): ``y_i = -||x - w_i||^2 / 2 + constant``.
So ``b_i = -||w_i||^2 / 2`` frees every class without touching W.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from softgeom.arrays import Floats
from softgeom.layer import SoftmaxLayer


def power(layer: SoftmaxLayer) -> Floats:
    """``2 b_i + ||w_i||^2`` (C,): the more, the more room a class takes from its neighbours."""
    W = layer.W.astype(np.float64)
    return 2 * layer.bias.astype(np.float64) + np.einsum("cd,cd->c", W, W)


def repair(layer: SoftmaxLayer, method: Literal["unit-norm", "bias"] = "unit-norm") -> SoftmaxLayer:
    """A layer (C, d) in which every class with a row of its own can win: every row scaled to norm 1
    and no bias ("unit-norm"), or W as it is with ``b_i = -||w_i||^2 / 2`` ("bias"). ValueError if a
    row is zero, which no scaling brings to norm 1.
    """
    W = layer.W.astype(np.float64)
    norms = np.linalg.norm(W, axis=1)
    if method == "bias":
        return dataclasses.replace(layer, W=layer.W, b=-(norms**2) / 2)
    if method != "unit-norm":
        raise ValueError(f"Unknown repair {method!r}: use 'unit-norm' or 'bias'.")
    if not norms.all():
        zero = int(np.flatnonzero(norms == 0)[0])
        raise ValueError(f"Row {zero} is zero and cannot be scaled to norm 1: use method='bias'.")
    return dataclasses.replace(layer, W=W / norms[:, None], b=None)
