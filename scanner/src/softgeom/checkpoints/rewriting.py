"""A model's last layer, written back: other rows and biases in the same ONNX graph, or the layer
alone as safetensors or .npz.

In a graph the constant of the last product and the bias that is added to it are replaced. The class
names in the metadata and the declared width of what follows go with them. A graph that treats its
scores in another way is refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.checkpoints.labels import BLANK
from softgeom.checkpoints.onnx_graph import OnnxGraph
from softgeom.checkpoints.onnx_head import last_product, read_onnx_head
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
    outside = any(
        onnx.external_data_helper.uses_external_data(t) for t in graph.model.graph.initializer
    )
    if outside and source.resolve().parent != target.resolve().parent:
        raise ValueError(
            f"{source} keeps weights in files beside it: name a new file in its folder."
        )
    ran = _fits(graph.model)
    product, bias, places = last_product(graph, weight)
    if product.op_type not in {"MatMul", "Gemm"} or graph.is_constant(product.input[0]):
        raise ValueError(
            f"{source}: the last product is {product.op_type} in a form that cannot be "
            "rewritten; write .safetensors instead."
        )
    stored = [graph.constant(node.input[place]).reshape(-1) for node, place in places]
    if bias is not None and not (len(stored) == 1 and np.array_equal(stored[0], np.ravel(bias))):
        raise ValueError(
            f"{source}: the graph adds more to its scores than one bias, or scales it; write "
            ".safetensors instead."
        )
    if (bias is None) != (layer.b is None):
        raise ValueError(
            f"{source}: the graph {'has no' if bias is None else 'has a'} bias, the layer "
            "differs; write .safetensors instead."
        )
    transposed = any(o.name == "transB" and o.i for o in product.attribute)
    dtype = graph.constant(product.input[1]).dtype
    tensors = {"softgeom_weight": layer.W.astype(dtype) if transposed else layer.W.T.astype(dtype)}
    product.input[1] = "softgeom_weight"
    if layer.b is not None:
        tensors["softgeom_bias"] = layer.b.astype(dtype)
        (node, place), *_ = places
        node.input[place] = "softgeom_bias"
    model = graph.model
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.ascontiguousarray(v), name) for name, v in tensors.items()
    )
    _drop_unused(model.graph)
    _rename(model, layer.tokens)
    _forget_widths(model.graph)
    with whole(target) as fresh:
        onnx.save(model, str(fresh))
        _read_back(fresh, layer, weight, source, ran and not _fits(model))


def _read_back(
    fresh: Path, layer: SoftmaxLayer, weight: str | None, source: Path, broken: bool
) -> None:
    """ValueError unless the written graph has the layer (C', d), and is not ``broken`` by it."""
    try:
        again = read_onnx_head(fresh, None if weight is None else "softgeom_weight")
        b = np.zeros(layer.classes) if again.b is None else again.b
        broken |= not (np.array_equal(again.W, layer.W) and np.array_equal(b, layer.bias))
    except ValueError:
        broken = True
    if broken:
        raise ValueError(
            f"{source}: what stands behind its last product counts on the number of classes; write "
            ".safetensors instead."
        )


def _fits(model: Any) -> bool:
    """Whether all shapes of a graph fit together, as far as ONNX infers them."""
    import onnx

    try:
        onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except Exception:  # of the library's own kinds
        return False
    return True


def _drop_unused(graph: Any) -> None:
    used = {name for node in graph.node for name in node.input}
    used |= {output.name for output in graph.output}
    for tensor in list(graph.initializer):
        if tensor.name not in used:
            graph.initializer.remove(tensor)
    for node in list(graph.node):
        if node.op_type == "Constant" and not used & set(node.output):
            graph.node.remove(node)


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
