"""The softmax layer of an ONNX graph: the last matrix product with a constant, before the softmax or the output.

Walking back from each output through operators that do not mix classes (Softmax, Reshape, Transpose, ...), a constant
that is added is the bias b and the first MatMul or Gemm with a constant operand is W. Constants are initialisers (also external
ones) or Constant nodes, possibly behind Identity, Cast or Transpose. Only W and b are decoded. Metadata `character`
(PaddleOCR's recognisers) names the classes: blank, then the characters, then the space.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_PASS_THROUGH = {
    "Softmax", "LogSoftmax", "Identity", "Cast", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Dropout",
    "ArgMax", "TopK", "Slice", "Gather",
}  # fmt: skip
_FOLDABLE = {"Identity", "Cast", "Transpose"}


@dataclass(frozen=True)
class OnnxHead:
    """What the graph says about its last layer.

    Attributes
    ----------
    W : ndarray (C, d)
    b : ndarray (C,) or None
    tokens : tuple of str or None
        From the metadata entry `character`, where it fits C.
    weight_name : str
        The constant that W is.
    """

    W: np.ndarray
    b: np.ndarray | None
    tokens: tuple[str, ...] | None
    weight_name: str


def read_onnx_head(path: Path, weight: str | None = None) -> OnnxHead:
    """W, b and the class names of an ONNX file's last layer.

    Parameters
    ----------
    path : Path
        The file; external data are read from its folder, and only those of the layer.
    weight : str, optional
        The name of the constant that is W, where the last product is not the one meant.

    Raises
    ------
    ValueError
        When the file is no ONNX graph or has no such product: its constant matrices are listed with their shapes.
    """
    import onnx

    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:  # protobuf raises its own class, which is no public name
        raise ValueError(
            f"{path} is not a whole ONNX file ({type(error).__name__}: {error}): fetch it again."
        ) from error
    graph = _Graph(model.graph, path)
    product = graph.product_of(weight) if weight else graph.last_product()
    if product is None:
        what = f"no matrix product with the constant {weight!r}" if weight else "no matrix product with a constant"
        raise ValueError(f"{path} has {what} before its output; candidates: {graph.describe_matrices()}.")
    W, name, b = product
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    return OnnxHead(W, b, _characters(metadata.get("character"), len(W)), name)


class _Graph:
    """Producers, consumers and constants of one ONNX graph."""

    def __init__(self, graph: Any, path: Path):
        self._path = path
        self._outputs = [output.name for output in graph.output]
        self._producer = {name: node for node in graph.node for name in node.output}
        self._consumers: dict[str, list[Any]] = {}
        for node in graph.node:
            for name in node.input:
                self._consumers.setdefault(name, []).append(node)
        self._tensors = {tensor.name: tensor for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant":
                for attribute in node.attribute:
                    if attribute.name == "value":
                        self._tensors[node.output[0]] = attribute.t

    def last_product(self) -> tuple[np.ndarray, str, np.ndarray | None] | None:
        """Walk back from each output in turn; the first that ends in a product with a constant decides."""
        for output in self._outputs:
            found = self._walk(output)
            if found is not None:
                return found
        return None

    def product_of(self, weight: str) -> tuple[np.ndarray, str, np.ndarray | None] | None:
        """The product that takes this constant, with the bias added to it, if any."""
        for node in self._consumers.get(weight, []):
            if node.op_type == "Transpose":
                return self.product_of(node.output[0])
            if node.op_type in {"MatMul", "Gemm"}:
                bias = None
                for after in self._consumers.get(node.output[0], []):
                    bias = self._added_constant(after) if after.op_type == "Add" else bias
                return self._product(node, bias)
        return None

    def describe_matrices(self) -> str:
        shapes = {name: tuple(tensor.dims) for name, tensor in self._tensors.items() if len(tensor.dims) == 2}
        return ", ".join(f"{name} {shape}" for name, shape in list(shapes.items())[-20:]) or "none"

    def _walk(self, name: str) -> tuple[np.ndarray, str, np.ndarray | None] | None:
        bias: np.ndarray | None = None
        while name in self._producer:
            node = self._producer[name]
            if node.op_type in {"MatMul", "Gemm"}:
                return self._product(node, bias)
            if node.op_type == "Add":
                constant = self._added_constant(node)
                if constant is None:
                    return None
                bias = constant if bias is None else bias + constant
                name = next(other for other in node.input if not self._is_constant(other))
            elif node.op_type in _PASS_THROUGH:
                name = node.input[0]
            else:
                return None
        return None

    def _added_constant(self, node: Any) -> np.ndarray | None:
        constants = [name for name in node.input if self._is_constant(name)]
        return self._constant(constants[0]).reshape(-1) if len(constants) == 1 else None

    def _product(self, node: Any, bias: np.ndarray | None) -> tuple[np.ndarray, str, np.ndarray | None] | None:
        """y = x B + c with B (d, C) or, from the left, y = A x with A (C, d); Gemm also transposes and scales."""
        options = {attribute.name: attribute for attribute in node.attribute}
        left, right = node.input[0], node.input[1]
        if self._is_constant(right):
            name, W = right, self._constant(right)
            W = W if "transB" in options and options["transB"].i else W.T
        elif self._is_constant(left):
            name, W = left, self._constant(left)
            W = W.T if "transA" in options and options["transA"].i else W
        else:
            return None
        if W.ndim != 2:
            return None
        if node.op_type == "Gemm":
            W = W * np.asarray(options["alpha"].f, W.dtype) if "alpha" in options else W
            if len(node.input) > 2 and self._is_constant(node.input[2]):
                inner = self._constant(node.input[2]).reshape(-1)
                inner = inner * np.asarray(options["beta"].f, inner.dtype) if "beta" in options else inner
                bias = inner if bias is None else bias + inner
        if bias is not None and bias.size == 1:
            bias = None  # one number added to every class changes no ranking
        return np.ascontiguousarray(W), self._root(name), bias

    def _is_constant(self, name: str) -> bool:
        return self._root(name) in self._tensors

    def _root(self, name: str) -> str:
        while name not in self._tensors and name in self._producer and self._producer[name].op_type in _FOLDABLE:
            name = self._producer[name].input[0]
        return name

    def _constant(self, name: str) -> np.ndarray:
        if name in self._tensors:
            return self._decode(self._tensors[name])
        node = self._producer[name]
        value = self._constant(node.input[0])
        if node.op_type == "Transpose":
            permutation = [list(attribute.ints) for attribute in node.attribute if attribute.name == "perm"]
            return value.transpose(permutation[0] if permutation else None)
        if node.op_type == "Cast":
            import onnx

            return value.astype(onnx.helper.tensor_dtype_to_np_dtype(node.attribute[0].i))
        return value

    def _decode(self, tensor: Any) -> np.ndarray:
        import onnx

        try:
            if onnx.external_data_helper.uses_external_data(tensor):
                onnx.external_data_helper.load_external_data_for_tensor(tensor, str(self._path.parent))
            return onnx.numpy_helper.to_array(tensor)
        except Exception as error:  # the checker of external data raises several classes of its own
            raise ValueError(f"{self._path}: the constant {tensor.name!r} cannot be read ({error}).") from error


def _characters(listed: str | None, classes: int) -> tuple[str, ...] | None:
    """CTC order of PaddleOCR: class 0 is the blank, then one character a line, then the space."""
    if listed is None:
        return None
    characters = listed.split("\n")
    if characters and characters[-1] == "" and len(characters) + 2 > classes:
        characters.pop()
    tokens = ("<blank>", *characters, " ")
    return tokens if len(tokens) == classes else None
