"""``softgeom repair MODEL --out FILE``: a layer in which every class with a row of its own can win.

``--method bias`` keeps W and sets ``b = -||w||^2 / 2`` (a nearest-neighbour classifier),
``unit-norm`` scales every row to norm 1 and drops the bias. Both change what the model answers:
they show what freeing costs, and are a start for training further.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from softgeom.bottleneck.prevention import repair
from softgeom.checkpoints.rewriting import write_layer, write_onnx
from softgeom.commands import options as asked
from softgeom.commands.boundary import DONE
from softgeom.commands.prune import model_file
from softgeom.layer import SoftmaxLayer


def add(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    asked.add_model(parser)
    parser.add_argument(
        "--method", choices=["bias", "unit-norm"], default="bias", help="default: bias"
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="new file: .onnx from an ONNX model with a bias, .safetensors from any",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Repair and write."""
    if options.out.exists():
        raise ValueError(f"--out {options.out} exists: name a new file.")
    head = asked.read_head(options)
    mended = repair(head.layer, options.method)
    dtype = head.layer.W.dtype
    layer = SoftmaxLayer(
        mended.W.astype(dtype), None if mended.b is None else mended.b.astype(dtype), mended.tokens
    )
    if options.out.suffix == ".onnx":
        source = model_file(str(options.model))
        if source is None or source.suffix != ".onnx":
            raise ValueError(f"{options.model} is not an ONNX model: write .safetensors.")
        if layer.b is None and head.layer.b is not None:
            layer = SoftmaxLayer(layer.W, np.zeros(layer.classes, dtype), layer.tokens)
        write_onnx(source, options.out, layer, options.weight)
    elif options.out.suffix == ".safetensors":
        write_layer(
            layer, options.out, {"repaired_from": str(options.model), "method": options.method}
        )
    else:
        raise ValueError(f"--out {options.out}: write .onnx or .safetensors.")
    print(
        f"{options.out}: {layer.classes:,} classes, repaired by {options.method}; every "
        "class with a row of its own can win somewhere"
    )
    return DONE
