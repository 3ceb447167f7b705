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
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np

from softgeom.arrays import Floats
from softgeom.checkpoints.rewriting import write_layer, write_onnx
from softgeom.layer import SoftmaxLayer
from softgeom.options import LayerOptions, loaded, refuse_threshold, spelled_out
from softgeom.pruning import graph_for

Method = Literal["bias", "unit-norm"]


def power(layer: SoftmaxLayer) -> Floats:
    """``2 b_i + ||w_i||^2`` (C,): the more, the more room a class takes from its neighbours."""
    W = layer.W.astype(np.float64)
    return 2 * layer.bias.astype(np.float64) + np.einsum("cd,cd->c", W, W)


def repair(layer: SoftmaxLayer, method: Method = "unit-norm") -> SoftmaxLayer:
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


@spelled_out(LayerOptions)
def repair_model(
    model: Any,
    *,
    method: Method = "bias",
    out: str | Path | None = None,
    **options: Unpack[LayerOptions],
) -> SoftmaxLayer:
    """A layer in which every class with a row of its own can win, but for the rounding of its
    numbers. It changes what the model answers: a start for training further.

    Parameters
    ----------
    model, **options
        As for ``softgeom.load``.
    method : "bias" or "unit-norm"
        Keep W and set ``b = -||w||^2 / 2``, or scale every row to norm 1 and drop the bias.
    out : path, optional
        New file: .onnx from an ONNX model with a bias, .npz or .safetensors from any.

    Raises
    ------
    ValueError
        When the model cannot be used, or the file exists or has another format.
    """
    head = loaded(model, **options)
    refuse_threshold(head, "a layer in which every class can win is not what it needs")
    mended, dtype = repair(head.layer, method), head.layer.W.dtype
    b = None if mended.b is None else mended.b.astype(dtype)
    layer = SoftmaxLayer(mended.W.astype(dtype), b, mended.tokens)
    if out is None:
        return layer
    source = graph_for(Path(out), str(model))
    if source is None:
        write_layer(layer, Path(out), {"repaired_from": str(model), "method": method})
        return layer
    zeros = None if head.layer.b is None else np.zeros(layer.classes, dtype)
    with_bias = layer if layer.b is not None else SoftmaxLayer(layer.W, zeros, layer.tokens)
    write_onnx(source, Path(out), with_bias, options.get("weight"))
    return layer
