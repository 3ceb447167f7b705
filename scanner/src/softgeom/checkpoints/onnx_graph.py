"""An ONNX graph to walk in: producers, consumers, and constants that are decoded only when asked
for.

A constant is an initialiser (also one in a file beside the model) or a Constant node, possibly
behind operators that only rewrite it: Identity, Cast, Transpose, Reshape, Squeeze, Unsqueeze,
Flatten, and DequantizeLinear, whose scale and zero point give the real numbers that the runtime
multiplies with. Every walk keeps what it has visited, so that a graph with a cycle ends as any
other.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.checkpoints.tensors import plain

_REWRITES = set(
    "Identity Cast Transpose Reshape Squeeze Unsqueeze Flatten DequantizeLinear".split()
)
_KEEPS_RANK = set(
    "Identity Cast Dropout Add Sub Mul Div Neg Relu Sigmoid Tanh Exp Log Softmax LogSoftmax "
    "MatMul FusedMatMul MatMulInteger QLinearMatMul DynamicQuantizeMatMul MatMulIntegerToFloat "
    "LayerNormalization".split()
)
# whose operations are known by their names alone
_DOMAINS = {"", "ai.onnx", "com.microsoft"}
_LISTED = 20  # more candidates than this do not help anybody to choose one
_PACKED_PER_BYTE = 8  # no type of the format packs more numbers into a byte


class OnnxGraph:
    """The graph of one ONNX file; external data are read from its folder, and only those of
    constants that are asked for. ValueError if the file is no ONNX graph.
    """

    def __init__(self, path: Path):
        import onnx

        self.path, self.model = path, (model := onnx.load(str(path), load_external_data=False))
        # text that is not UTF-8 comes as bytes
        texts = (entry for entry in model.metadata_props if isinstance(entry.value, str))
        self.metadata = {entry.key: entry.value for entry in texts}  # others are not UTF-8
        self.outputs = [output.name for output in model.graph.output]
        own = {(function.domain, function.name) for function in model.functions}
        self.nodes = [_qualified(node, own) for node in model.graph.node]
        self.producer = {name: node for node in self.nodes for name in node.output if name}
        self.consumers: dict[str, list[Any]] = {}
        for node in self.nodes:
            for name in node.input:
                self.consumers.setdefault(name, []).append(node)
        self._tensors = {tensor.name: tensor for tensor in model.graph.initializer}
        self._roots: dict[str, str | None] = {}
        self._shapes: dict[str, tuple[int | None, ...]] | None = None
        versions = (each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
        self.opset = max(versions, default=1)
        for node in self.nodes:
            if node.op_type == "Constant" and node.output:
                for option in node.attribute:
                    if option.name == "value":
                        self._tensors[node.output[0]] = option.t
                    elif option.name in ("value_float", "value_int", "value_floats", "value_ints"):
                        self._tensors[node.output[0]] = onnx.numpy_helper.from_array(
                            np.asarray(onnx.helper.get_attribute_value(option)), node.output[0]
                        )

    def is_constant(self, name: str) -> bool:
        """Whether the value is a constant, possibly a rewritten one."""
        return self._root(name) is not None

    def root(self, name: str) -> str:
        """The stored constant that a value rewrites (the name itself where it is none)."""
        return self._root(name) or name

    def constant(self, name: str) -> np.ndarray:
        """The numbers of a constant; ValueError if it is none or cannot be decoded."""
        root = self._root(name)
        if root is None:
            raise ValueError(f"{self.path}: {plain(name)!r} is not a constant.")
        rewriting = []
        while name != root:
            rewriting.append(self.producer[name])
            name = self.producer[name].input[0]
        value = self._decode(self._tensors[root])
        for node in reversed(rewriting):
            if node.op_type != "Identity":
                value = self._rewritten(node, value)
        # NumPy has no bfloat16 of its own; every one of its numbers is a float32
        return value.astype(np.float32) if value.dtype.name == "bfloat16" else value

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """The axes of a value, None for a size that is not fixed; None where nothing says even how
        many axes there are.
        """
        if self.is_constant(name):
            return self.constant(name).shape
        if self._shapes is None:
            self._shapes = self._inferred()
        return self._shapes.get(name)

    def rank(self, name: str) -> int | None:
        """How many axes a value has, also where inference stops at a shape that is computed."""
        more, visited = 0, set()
        while name not in visited:
            visited.add(name)
            if (shape := self.shape(name)) is not None:
                return len(shape) + more
            node = self.producer.get(name)
            varying = [] if node is None else [n for n in node.input if not self.is_constant(n)]
            if node is None or not varying:
                return None
            options = attributes(node)
            match node.op_type:
                case "Transpose" if "perm" in options:
                    return len(options["perm"].ints) + more
                case "Reshape" if len(node.input) > 1:
                    target = self.shape(node.input[1])  # of the vector that holds the new shape
                    return None if not target or target[0] is None else target[0] + more
                case "Squeeze" | "Unsqueeze":
                    axes = axes_of(self, node)
                    if axes is None:
                        return None
                    more += len(axes) if node.op_type == "Unsqueeze" else -len(axes)
                case kind if kind not in _KEEPS_RANK:
                    return None
            name = varying[0]
        return None

    def _inferred(self) -> dict[str, tuple[int | None, ...]]:
        """Shapes as ONNX infers them; where it leaves a size open, as the file declares it."""
        seen, told = (self._shapes_with(declared) for declared in (False, True))
        for name, shape in seen.items():
            other = told.get(name, ())
            same = len(other) == len(shape)
            told[name] = tuple(
                size if size is not None or not same else other[n] for n, size in enumerate(shape)
            )
        return told

    def _shapes_with(self, declared: bool) -> dict[str, tuple[int | None, ...]]:
        """Shapes that ONNX infers with or without those that the file declares, of a copy that
        holds no weights.
        """
        import onnx

        light = onnx.ModelProto()
        light.CopyFrom(self.model)
        graph = light.graph
        # some exporters declare () for everything, which contradicts what inference finds
        for told in (graph.value_info, graph.output):
            kept = [v for v in told if v.type.tensor_type.shape.dim and declared]
            del told[:]
            told.extend(kept)
        try:
            graph = onnx.shape_inference.infer_shapes(light, data_prop=True).graph
        except Exception:  # a damaged graph; what it declares is all there is then
            if not declared:
                return {}
            graph = self.model.graph
        known = (*graph.input, *graph.output, *graph.value_info)
        return {
            v.name: tuple(map(_size, dims)) for v in known if (dims := v.type.tensor_type.shape.dim)
        }

    def shape_of(self, name: str) -> tuple[int, ...] | None:
        """The declared shape of a stored constant, before any rewriting, or None."""
        tensor = self._tensors.get(self.root(name))
        return None if tensor is None else tuple(int(n) for n in tensor.dims)

    def matrices(self) -> dict[str, tuple[int, ...]]:
        """Every stored constant with two axes, in the order of the file."""
        return {name: tuple(t.dims) for name, t in self._tensors.items() if len(t.dims) == 2}

    def describe_matrices(self) -> str:
        """The last of them, for a message."""
        last = list(self.matrices().items())[-_LISTED:]
        return ", ".join(f"{plain(name)} {shape}" for name, shape in last) or "none"

    def _root(self, name: str) -> str | None:
        """The stored constant behind a value and its rewriting nodes, kept, or None."""
        visited: dict[str, None] = {}
        while name not in self._tensors and name not in self._roots:
            node = self.producer.get(name)
            if name in visited or node is None or node.op_type not in _REWRITES or not node.input:
                self._roots |= dict.fromkeys([*visited, name])
                return None
            visited[name] = None
            name = node.input[0]
        root = name if name in self._tensors else self._roots[name]
        self._roots |= dict.fromkeys(visited, root)
        return root

    def _rewritten(self, node: Any, value: np.ndarray) -> np.ndarray:
        """What one operation makes of a constant, as the reference of ONNX computes it."""
        from onnx import helper
        from onnx.reference import ReferenceEvaluator

        given = {name: self.constant(name) for name in node.input[1:] if name}
        given[node.input[0]] = value
        reads = [helper.make_empty_tensor_value_info(name) for name in given]
        made = [helper.make_empty_tensor_value_info(node.output[0])]
        graph = helper.make_graph([node], "rewriting", reads, made)
        results: Any = ReferenceEvaluator(graph, opsets={"": self.opset}).run(None, given)
        return np.asarray(results[0])

    def _decode(self, tensor: Any) -> np.ndarray:
        import onnx

        name, shape = plain(tensor.name), tuple(int(n) for n in tensor.dims)
        if any(n < 0 for n in shape):
            raise ValueError(f"{self.path}: the constant {name!r} has an impossible shape {shape}.")
        if onnx.external_data_helper.uses_external_data(tensor):
            onnx.external_data_helper.load_external_data_for_tensor(tensor, str(self.path.parent))
            # read once: the decoder must not look for it again
            tensor.data_location = onnx.TensorProto.DEFAULT
        if math.prod(shape) > _PACKED_PER_BYTE * max(tensor.ByteSize(), 1):
            raise ValueError(
                f"{self.path}: the constant {name!r} of shape {shape} needs more numbers than the "
                "file holds: fetch it again."
            )
        return onnx.numpy_helper.to_array(tensor)


def dequantise(
    codes: np.ndarray, scale: np.ndarray, zero: np.ndarray, axis: int, dtype: Any = np.float32
) -> np.ndarray:
    """``(codes - zero) * scale``, in float32 as runtimes do; scale and zero point are numbers or
    along an axis.
    """

    def along(value: np.ndarray) -> np.ndarray:
        value = np.asarray(value)
        if value.size == 1:
            return value.reshape(())
        if codes.ndim == 0 or value.size != codes.shape[axis]:
            raise ValueError(
                f"{value.size} scales for codes of shape {codes.shape} along axis {axis}"
            )
        return value.reshape([-1 if n == axis % codes.ndim else 1 for n in range(codes.ndim)])

    distance = codes.astype(np.int32) - along(zero).astype(np.int32)
    return distance.astype(dtype) * along(scale).astype(dtype)


def _qualified(node: Any, own: set[tuple[str, str]]) -> Any:
    """The node; of an operation of another domain, or a function of the file, a copy whose name
    says so: it may do anything, whatever it is called.
    """
    if node.domain in _DOMAINS and (node.domain, node.op_type) not in own:
        return node
    copy = type(node)()
    copy.CopyFrom(node)
    copy.op_type = f"{node.domain}::{node.op_type}"
    return copy


def attributes(node: Any) -> dict[str, Any]:
    """A node's attributes by name."""
    return {option.name: option for option in node.attribute}


def axes_of(graph: OnnxGraph, node: Any) -> tuple[int, ...] | None:
    """The axes that a node names, in an attribute or (since opset 13) in its second input; None
    where it names none. ValueError where they are computed.
    """
    options = attributes(node)
    if "axes" in options:
        return tuple(options["axes"].ints)
    if len(node.input) < 2 or not node.input[1]:
        return None
    return tuple(int(n) for n in graph.constant(node.input[1]).reshape(-1))


def _size(dimension: Any) -> int | None:
    """One axis as a number, None where it is a symbol or not said."""
    return int(dimension.dim_value) if dimension.dim_value > 0 else None
