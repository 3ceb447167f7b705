"""A model's last layer, written back: other rows and biases in the same ONNX graph, or the layer
alone as safetensors or .npz.

In a graph the constant of the last product and the bias that is added to it are replaced, the class
names in the metadata and the declared width of what follows go with them; nothing else is touched.
Whatever the graph does to the logits besides adding one bias (a scale, a constant per class in
another place) is refused rather than guessed at.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.checkpoints.labels import BLANK
from softgeom.checkpoints.onnx_graph import OnnxGraph, attributes
from softgeom.checkpoints.onnx_head import last_product
from softgeom.layer import SoftmaxLayer
from softgeom.writing import whole


def write_layer(layer: SoftmaxLayer, path: Path, about: dict[str, str]) -> None:
    """``weight`` (C, d), ``bias`` (C,) and the class names as JSON in the header; ``.npz``: W, b,
    tokens.
    """
    if path.suffix == ".npz":
        held = {"W": layer.W, "b": layer.b, "tokens": layer.tokens}
        given = {name: np.asarray(value) for name, value in held.items() if value is not None}
        with whole(path) as fresh, fresh.open("wb") as file:
            np.savez(file, allow_pickle=False, **given)
        return
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    arrays = {"weight": np.ascontiguousarray(layer.W)} | (
        {} if layer.b is None else {"bias": np.ascontiguousarray(layer.b)}
    )
    names = {} if layer.tokens is None else {"tokens": json.dumps(layer.tokens)}
    with whole(path) as fresh:
        try:
            save_file(arrays, str(fresh), {**about, **names})
        except SafetensorError as error:  # a full disk, which it does not report as OSError
            raise OSError(None, str(error)) from error


def write_onnx(source: Path, target: Path, layer: SoftmaxLayer, weight: str | None = None) -> None:
    """The graph of `source` with this layer (C', d) in place of its last one, or of the one whose
    constant is named. ValueError when it has none, or treats its logits in a way that cannot be
    rewritten.
    """
    import onnx

    graph = OnnxGraph(source)
    product, added = last_product(graph, weight)
    if product.op_type not in {"MatMul", "Gemm"} or graph.is_constant(product.input[0]):
        raise ValueError(
            f"{source}: the last product is {product.op_type} in a form that cannot be "
            "rewritten; write .safetensors instead."
        )
    options = attributes(product)
    if any(options[name].f != 1 for name in ("alpha", "beta") if name in options):
        raise ValueError(f"{source}: the last product is scaled; write .safetensors instead.")
    bias, holder, place = _bias(graph, product)
    own = np.zeros(0) if added is None else np.ravel(added)
    if bias is not None and not np.array_equal(graph.constant(bias).reshape(-1), own):
        raise ValueError(
            f"{source}: the graph adds more to its scores than a bias; write .safetensors."
        )
    if (bias is None) != (layer.b is None):
        raise ValueError(
            f"{source}: the graph {'has no' if bias is None else 'has a'} bias, the layer "
            "differs; write .safetensors instead."
        )
    transposed = "transB" in options and bool(options["transB"].i)
    dtype = graph.constant(product.input[1]).dtype
    tensors = {"softgeom_weight": layer.W.astype(dtype) if transposed else layer.W.T.astype(dtype)}
    product.input[1] = "softgeom_weight"
    if holder is not None and layer.b is not None:
        tensors["softgeom_bias"] = layer.b.astype(dtype)
        holder.input[place] = "softgeom_bias"
    model = graph.model
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.ascontiguousarray(v), name) for name, v in tensors.items()
    )
    _drop_unused(model.graph)
    _rename(model, layer.tokens)
    _forget_widths(model.graph)
    with whole(target) as fresh:
        onnx.save(model, str(fresh))


def _bias(graph: OnnxGraph, product: Any) -> tuple[str | None, Any, int]:
    """The bias constant, the node that reads it, and where; anything else is refused."""
    if len(product.input) > 2 and product.input[2]:
        return product.input[2], product, 2
    name = product.output[0]
    for _ in range(len(graph.nodes)):
        users = graph.consumers.get(name, [])
        if len(users) != 1:
            return None, None, 0
        user = users[0]
        constants = [
            n
            for n, other in enumerate(user.input)
            if graph.is_constant(other) and graph.constant(other).size > 1
        ]
        if user.op_type == "Add" and len(constants) == 1:
            return user.input[constants[0]], user, constants[0]
        if user.op_type in {"Mul", "Sub", "Div", "Where"} and constants:
            raise ValueError(
                f"{graph.path}: its logits meet a constant in {user.op_type}; write "
                ".safetensors instead."
            )
        if user.op_type not in {"Cast", "Identity"}:
            return None, None, 0
        name = user.output[0]
    return None, None, 0


def _drop_unused(graph: Any) -> None:
    used = {name for node in graph.node for name in node.input} | {
        output.name for output in graph.output
    }
    for stale in [tensor for tensor in graph.initializer if tensor.name not in used]:
        graph.initializer.remove(stale)
    for stale in [
        node for node in graph.node if node.op_type == "Constant" and not used & set(node.output)
    ]:
        graph.node.remove(stale)


def _rename(model: Any, tokens: Sequence[str] | None) -> None:
    """PaddleOCR's metadata entry `character`: the names between the blank and the space."""
    for entry in model.metadata_props:
        if entry.key == "character" and tokens is not None:
            if tokens[0] != BLANK or tokens[-1] != " ":
                raise ValueError(
                    "the blank and the space of a text recogniser must be kept: its readers "
                    "count on their places."
                )
            entry.value = "\n".join(tokens[1:-1])


def _forget_widths(graph: Any) -> None:
    """Declared shapes of what follows are those of the old layer: runtimes infer them again."""
    del graph.value_info[:]
    for output in graph.output:
        axes = output.type.tensor_type.shape.dim
        if len(axes):
            axes[-1].ClearField("dim_value")
            axes[-1].dim_param = "classes"
