"""Layers in which no class is imprisoned, and the smallest repair that frees a class.

*Theorem.* If all rows have the same norm and no two are equal, every class of a layer without bias is argmaxable, by
its own row: ``w_t.(w_t - w_i) = (||w_t||^2 + ||w_t - w_i||^2 - ||w_i||^2) / 2 = ||w_t - w_i||^2 / 2 > 0``.

*With a bias* the same witness works when ``2 b_i + ||w_i||^2`` is the same for all classes: at x = w_t the margin is
``(||w_t - w_i||^2 + (2 b_t + ||w_t||^2) - (2 b_i + ||w_i||^2)) / 2``. The layer is then a nearest-neighbour classifier (a Voronoi
diagram): ``y_i = -||x - w_i||^2 / 2 + constant``. So ``b_i = -||w_i||^2 / 2`` frees every class without touching W.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.verdict import Captors
from softgeom.bottleneck.scanner import Scan
from softgeom.layer import SoftmaxLayer


def power(layer: SoftmaxLayer) -> NDArray[np.float64]:
    """``2 b_i + ||w_i||^2`` (C,): classes with more of it than their neighbours take room from them."""
    W = layer.W.astype(np.float64)
    return 2 * layer.bias.astype(np.float64) + np.einsum("cd,cd->c", W, W)


def repair(layer: SoftmaxLayer, method: Literal["unit-norm", "bias"] = "unit-norm") -> SoftmaxLayer:
    """A layer in which every class with a row of its own can win.

    Parameters
    ----------
    layer : SoftmaxLayer
        The layer, (C, d).
    method : "unit-norm" or "bias"
        Scale every row to norm 1 and drop the bias; or keep W and set ``b_i = -||w_i||^2 / 2``.

    Raises
    ------
    ValueError
        If a row is zero, which no scaling brings to norm 1.
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


def freeing_shift(scan: Scan, index: int, margin: float = 1e-6) -> float:
    """``-m + margin``, where m <= 0 is the bound that the captors of an imprisoned class prove on its best margin.

    A shift s of ``b_t`` raises every margin of t by s, so a shift of less than -m provably frees nothing. Whether -m itself
    suffices depends on the captors: those of the programme's dual prove the best margin itself, and then any ``margin`` above
    rounding frees the class; those of other routes ("surround", "together", "twin", or the ball around a box) may prove less, and the class needs
    up to ``-g_t > -m`` for its best margin g_t. Scan the shifted layer to know.

    Raises
    ------
    ValueError
        If the class is not among the unargmaxable ones.
    """
    finding = next((f for f in scan.findings if f.index == index), None)
    if finding is None or not isinstance(finding.evidence, Captors):
        raise ValueError(f"Class {index} is not among the unargmaxable classes of this scan.")
    return -finding.margin + margin
