"""``softgeom repair MODEL --out FILE``: a layer in which every class with a row of its own can win.

``--method bias`` keeps W and sets ``b = -||w||^2 / 2`` (a nearest-neighbour classifier),
``unit-norm`` scales every row to norm 1 and drops the bias. Both change what the model answers:
they show what freeing costs, and are a start for training further.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np

from softgeom.checkpoints import Head
from softgeom.checkpoints.rewriting import write_layer, write_onnx
from softgeom.commands import options as asked
from softgeom.commands.boundary import DONE
from softgeom.commands.prune import check_out
from softgeom.layer import SoftmaxLayer
from softgeom.prevention import repair


def add(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    asked.add_model(parser)
    methods = ["bias", "unit-norm"]
    parser.add_argument("--method", choices=methods, default="bias", help="default: bias")
    new = "new file: .onnx from an ONNX model with a bias, .npz or .safetensors from any"
    parser.add_argument("--out", type=Path, required=True, help=new)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Repair and write."""
    how: Any = {"method": options.method, "out": options.out}
    layer = repair_model(options.model, **how, **asked.chosen(options, asked.LayerOptions))
    print(
        f"{options.out}: {layer.classes:,} classes, repaired by {options.method}; but for "
        "the rounding of its numbers, every class with a row of its own can win somewhere: "
        "softgeom scan proves which can"
    )
    return DONE


def repair_model(
    model: Any,
    *,
    method: Literal["bias", "unit-norm"] = "bias",
    out: str | Path | None = None,
    **options: Unpack[asked.LayerOptions],
) -> SoftmaxLayer:
    """A layer in which every class with a row of its own can win, but for the rounding of its
    numbers.

    Parameters
    ----------
    model, **options
        As for ``softgeom.load``.
    method : "bias" or "unit-norm"
        Keep W and set ``b = -||w||^2 / 2``, or scale every row to norm 1 and drop the bias.
    out : path, optional
        New file: .onnx from an ONNX model with a bias, .safetensors from any.

    Raises
    ------
    ValueError
        When the model cannot be used, or the file exists or has another format.
    """
    head = asked.loaded(model, **options)
    asked.refuse_threshold(head, "a layer in which every class can win is not what it needs")
    layer = _repaired(head.layer, method)
    if out is not None:
        _write(Path(out), layer, head, str(model), method, options.get("weight"))
    return layer


def _repaired(layer: SoftmaxLayer, method: Literal["bias", "unit-norm"]) -> SoftmaxLayer:
    mended, dtype = repair(layer, method), layer.W.dtype
    b = None if mended.b is None else mended.b.astype(dtype)
    return SoftmaxLayer(mended.W.astype(dtype), b, mended.tokens)


def _write(
    out: Path, layer: SoftmaxLayer, head: Head, model: str, method: str, weight: str | None
) -> None:
    source = check_out(out, model)
    if source is None:
        write_layer(layer, out, {"repaired_from": model, "method": method})
        return
    if layer.b is None and head.layer.b is not None:
        zeros = np.zeros(layer.classes, layer.W.dtype)
        layer = SoftmaxLayer(layer.W, zeros, layer.tokens)
    write_onnx(source, out, layer, weight)
