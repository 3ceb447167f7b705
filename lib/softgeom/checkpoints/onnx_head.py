"""The softmax layer of an ONNX graph: the last product with a constant before the output, however
the softmax is written.

From an output back, through whatever keeps the order of the classes: a Softmax or its parts
(ReduceMax, Sub, Exp, ReduceSum, Div, Log), reshapes, casts, positive scales; in front of a softmax
also a ReLU, which ties what it cuts. A constant that is
added on the way is the bias b; a constant that multiplies scales the rows. The first MatMul, Gemm,
or quantised product with a constant operand is W x; where there is none, a convolution of one
pixel, which is the same product at every place. Quantised weights become the real numbers that the
runtime multiplies with, scale * (code - zero point); quantised *features* stay features.

What stands in front of the layer says where its inputs lie (`activation.py`). Metadata `character`
(PaddleOCR's recognisers) names the classes.
"""

from __future__ import annotations

import functools
from collections import deque
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.checkpoints.activation import RELU_BEHIND, Activation, activation_of
from softgeom.checkpoints.choosing import Choice
from softgeom.checkpoints.label_files import lines
from softgeom.checkpoints.labels import LabelsError, fit_labels
from softgeom.checkpoints.onnx_graph import OnnxGraph, attributes, dequantise, inputs
from softgeom.checkpoints.opened import Asked, Opened, Shown
from softgeom.checkpoints.tensors import ArrayStore, plain

# what a graph adds to the product has no name of its own
_BIAS = "what the graph adds"

# Operators through which the order of the classes at one position is unchanged, or that only
# compute what is subtracted or divided by.
_ORDER_KEEPING = {
    "Softmax", "LogSoftmax", "Identity", "Cast", "Reshape", "Transpose", "Squeeze", "Unsqueeze",
    "Flatten", "Dropout", "ArgMax",
    "TopK", "Slice", "Gather", "Exp", "Log", "Div", "Sub", "ReduceMax", "ReduceSum",
    "ReduceLogSumExp", "Sigmoid", "Softplus",
    "Max", "Clip", "QuantizeLinear", "DequantizeLinear", "Mul", "Add", "Neg", "Expand", "Softcap",
    "Sum",
}  # fmt: skip
_NONLINEAR = set("Softmax LogSoftmax Exp Log Sigmoid ArgMax TopK Clip Softplus Max Relu".split())
_DECIDING = {"Softmax", "LogSoftmax", "ArgMax", "TopK"}
_QUANTISED = {
    "MatMulInteger", "QLinearMatMul", "DynamicQuantizeMatMul", "MatMulIntegerToFloat",
}  # fmt: skip
_PRODUCTS = {"MatMul", "Gemm", "FusedMatMul", "FusedGemm"} | _QUANTISED
_MOVES = {"Cast", "Expand", "Identity", "Reshape", "Squeeze", "Unsqueeze"}
_SHARED = {"Log", "TopK", "Max"}  # of sums, and of largest numbers
_STEPS = 100  # of such a walk: a damaged graph may have circles
_RESHAPES = {"Mul", "Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"}


@dataclass(frozen=True)
class OnnxHead:
    """What the graph says about one product with a constant: W (C, d), b (C,) or None, the constant
    that W is, the step in front, how it was found, and the value x that the product multiplies.
    """

    W: np.ndarray
    b: np.ndarray | None
    weight_name: str
    activation: Activation | None = None
    notes: tuple[str, ...] = ()
    features_name: str = ""


def read_onnx_head(path: Path, weight: str | None = None) -> OnnxHead:
    """W, b and what the file says about an ONNX model's last layer, or the one whose constant is
    named. ValueError if it is no graph or has no such product: the constant matrices are listed.
    """
    graph = OnnxGraph(path)
    return _head(graph, *_found(graph, weight))


def open_onnx(path: Path) -> Opened:
    """A graph, with the layer before its output (or the product that is named)."""
    graph = OnnxGraph(path)
    found = functools.cache(lambda weight: _head(graph, *_found(graph, weight)))
    # the names of classes belong to the file, not to one of its products
    written = graph.metadata.get("character")
    return Opened(
        _Constants(graph, str(path)),
        show=lambda asked: _show(found(asked.weight), asked, str(path)),
        names=None if written is None else functools.partial(_names, written),
    )


class _Constants(ArrayStore):
    """The matrices of a graph, for a reader to choose from."""

    def __init__(self, graph: OnnxGraph, label: str) -> None:
        super().__init__({}, label, {"format": "onnx"})
        self._graph = graph

    def names(self) -> list[str]:
        return [name for name, shape in self._graph.matrices().items() if min(shape) > 1]

    def shape(self, name: str) -> tuple[int, ...]:
        return self._graph.matrices()[name]

    def read(self, name: str) -> np.ndarray:
        return self._graph.constant(name)


def _show(found: OnnxHead, asked: Asked, label: str) -> Shown:
    if asked.bias is not None:
        raise ValueError(
            "an ONNX graph shows its bias itself: leave --bias out (--no-bias ignores the bias)."
        )
    name = plain(found.weight_name)
    b = None if asked.without_bias else found.b
    notes = (*found.notes, f"W is {name}, {'with' if b is not None else 'without'} bias")
    if found.b is not None and asked.without_bias:
        notes += ("its bias is left out, as asked",)
    tensors = {name: found.W} | ({} if b is None else {_BIAS: b})
    choice = Choice(name, None if b is None else _BIAS, False, notes)
    return Shown(ArrayStore(tensors, label), choice, found.activation)


def _names(
    characters: str, classes: int, blank: str | None
) -> tuple[tuple[str, ...] | None, str | None]:
    label = "the metadata entry 'character'"
    names = lines(characters)
    if blank is None and len(names) < classes:
        blank = "first"  # the entry is PP-OCR's, whose networks have their blank there
    try:
        fitted, how = fit_labels(names, classes, label, blank)
    except LabelsError as error:
        return None, f"no names: {error}"
    return fitted, f"names from {label}{how}"


def last_product(graph: OnnxGraph, weight: str | None = None) -> Any:
    """The node that multiplies features with W; errors as `read_onnx_head`."""
    return _found(graph, weight)[0]


def _found(graph: OnnxGraph, weight: str | None) -> tuple[Any, _After]:
    found = _product_of(graph, weight) if weight else _last_product(graph)
    if found is None:
        which = f" {weight!r}" if weight else ""
        raise ValueError(
            f"{graph.path} has no matrix product with {'the' if which else 'a'} constant{which} "
            f"before its output; candidates: {graph.describe_matrices()}."
        )
    return found


@dataclass(frozen=True)
class _After:
    """``scale * (W x) + shift``: what the graph does to logits between product and softmax."""

    scale: np.ndarray | None = None
    shift: np.ndarray | None = None
    notes: tuple[str, ...] = field(default=())
    decided: bool = False  # a softmax, or what else takes the best, comes behind
    turned: bool = False  # what lies behind something that is not linear turns the order round

    @property
    def falls(self) -> bool:
        """Whether the best is the least here."""
        return self.turned != bool(self.scale is not None and np.all(self.scale < 0))

    def upright(self) -> _After:
        """The same, in which the best is the largest."""
        return replace(self.scaled(-np.ones(())), turned=False).shifted(-1) if self.turned else self

    def shifted(self, by: int) -> _After:
        """The same with the shift times a number."""
        return replace(self, shift=None if self.shift is None else by * self.shift)

    def added(self, constant: np.ndarray) -> _After:
        value = constant if self.scale is None else _fitting(np.multiply, constant, self.scale)
        return replace(
            self, shift=value if self.shift is None else _fitting(np.add, self.shift, value)
        )

    def scaled(self, constant: np.ndarray) -> _After:
        scale = constant if self.scale is None else _fitting(np.multiply, self.scale, constant)
        return replace(self, scale=scale)


def _fitting(combine: np.ufunc, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Two constants behind a product as one."""
    try:
        return combine(a, b)
    except ValueError:
        raise ValueError(
            f"constants behind the last matrix product have shapes {a.shape} and {b.shape}, which "
            "do not fit each other: the graph is damaged, and no runtime could compute it."
        ) from None


def _last_product(graph: OnnxGraph) -> tuple[Any, _After] | None:
    """The product that the outputs end with, preferably of the output's declared width."""
    chosen: dict[str, tuple[Any, _After]] = {}
    for output in graph.outputs:
        found = _walk(graph, output)
        width = graph.widths.get(output)
        fitting = [step for step in found if width is None or _classes(graph, step[0]) == width]
        if found:
            node, after = (fitting or found)[0]
            operand = _operand(graph, node)
            chosen.setdefault(graph.root(operand[0]) if operand else output, (node, after))
    if len(chosen) > 1:
        heads = ", ".join(f"{plain(name)} {graph.shape_of(name)}" for name in chosen)
        raise ValueError(
            f"{graph.path} has several heads, one an output; choose one (--weight): {heads}."
        )
    return next(iter(chosen.values()), None)


def _walk(graph: OnnxGraph, output: str) -> list[tuple[Any, _After]]:
    """The products that an output comes from through order-keeping operators, nearest first."""
    found: list[tuple[Any, _After]] = []
    convolved: list[tuple[Any, _After]] = []
    waiting, visited = deque([(output, _After())]), set()
    while waiting:
        name, after = waiting.popleft()
        node = graph.producer.get(name)
        if node is None or name in visited:
            continue
        visited.add(name)
        if node.op_type in _PRODUCTS:
            if _operand(graph, node) is not None:
                found.append((node, after.upright()))
        elif _is_pointwise(graph, node):
            convolved.append((node, after.upright()))
        elif node.op_type in _ORDER_KEEPING or (node.op_type == "Relu" and after.decided):
            waiting.extend(_before(graph, node, after))
    return found or convolved


def _is_pointwise(graph: OnnxGraph, node: Any) -> bool:
    """Whether a node is a convolution of one pixel with a constant: W x at every place."""
    if node.op_type != "Conv" or len(node.input) < 2 or not graph.is_constant(node.input[1]):
        return False
    group = attributes(node).get("group")
    shape = graph.constant(node.input[1]).shape
    return len(shape) > 2 and set(shape[2:]) == {1} and (group is None or group.i == 1)


def _before(graph: OnnxGraph, node: Any, after: _After) -> list[tuple[str, _After]]:
    """The values that a node reads, each with what the graph does to it from there on."""
    names = inputs(node)
    varying = [name for name in names if not graph.is_constant(name)]
    constants = [name for name in names if graph.is_constant(name)]
    if node.op_type in _NONLINEAR:
        decided = after.decided or node.op_type in _DECIDING
        notes = (*after.notes, RELU_BEHIND) if node.op_type == "Relu" else after.notes
        # what is done to probabilities changes no answer; the others keep the order or turn it
        turned = node.op_type not in _DECIDING and after.falls
        if node.op_type == "TopK" and "largest" in (options := attributes(node)):
            turned = not options["largest"].i
        after = _After(notes=notes, decided=decided, turned=turned)
        return [(name, after) for name in names[:1]]
    one = len(varying) == 1
    if node.op_type in {"Add", "Sum"} and one:
        for name in constants:
            after = after.added(graph.constant(name))
        return [(varying[0], after)]
    first = one and names[0] == varying[0]
    if node.op_type == "Sub" and first:
        return [(varying[0], after.added(-graph.constant(constants[0])))]
    if node.op_type == "Neg" and one:
        return [(varying[0], after.scaled(-np.ones(())))]
    if node.op_type == "Sub" and one:
        return [(varying[0], after.added(graph.constant(constants[0])).scaled(-np.ones(())))]
    if node.op_type == "Sub" and len(varying) == 2 and not _is_shared(graph, varying[1]):
        return []  # a contrast of two layers
    if node.op_type == "Div" and one and not first and np.all(graph.constant(constants[0]) > 0):
        # of what is above 0, as in 1 / (1 + exp(-y))
        return [(varying[0], replace(after, scale=None, shift=None, turned=not after.falls))]
    if node.op_type in {"Mul", "Div"} and first and constants:
        factor = graph.constant(constants[0]).astype(float)
        return [(varying[0], after.scaled(factor if node.op_type == "Mul" else 1 / factor))]
    if node.op_type == "Mul":
        scaled = [(name, _constant_factor(graph, name)) for name in varying]
        logits = [name for name, factor in scaled if factor is None]
        factors = [factor for _, factor in scaled if factor is not None]
        if len(logits) == 1 and len(factors) + len(constants) == len(names) - 1:
            for factor in [*factors, *(graph.constant(name) for name in constants)]:
                after = after.scaled(factor)
            return [(logits[0], after)]
    if node.op_type in {"Add", "Sum"}:
        return []  # two varying terms: a residual connection, not a softmax layer
    return [(name, after) for name in varying]


def _is_shared(graph: OnnxGraph, name: str) -> bool:
    """Whether a value is one number for all classes: their largest, or what they add up to."""
    for _ in range(_STEPS):
        node = graph.producer.get(name)
        if node is None or not node.input or node.op_type not in _MOVES:
            break
        name = node.input[0]
    return node is not None and (node.op_type.startswith("Reduce") or node.op_type in _SHARED)


def _constant_factor(graph: OnnxGraph, name: str) -> np.ndarray | None:
    """The constant part of a positive factor that depends on the features' dynamic scale only."""
    factor = np.ones(())
    waiting, visited, dynamic = [name], set(), False
    while waiting:
        value = waiting.pop()
        if value in visited:
            continue
        visited.add(value)
        if graph.is_constant(value):
            factor = factor * graph.constant(value).astype(float)
            continue
        node = graph.producer.get(value)
        if node is not None and node.op_type == "DynamicQuantizeLinear" and value == node.output[1]:
            dynamic = True
        elif node is not None and node.op_type in _RESHAPES:
            waiting += inputs(node, None if node.op_type == "Mul" else [0])
        else:
            return None
    return factor if dynamic else None


def _product_of(graph: OnnxGraph, weight: str) -> tuple[Any, _After] | None:
    """The product that takes this constant, with what is added to it and scales it."""
    waiting, visited = [weight], set()
    while waiting:
        value = waiting.pop()
        if value in visited:
            continue
        visited.add(value)
        for node in graph.consumers.get(value, []):
            product = node.op_type in _PRODUCTS and _operand(graph, node) is not None
            if product or _is_pointwise(graph, node):
                return node, _forward(graph, node)
            if graph.root(value) == weight:
                waiting += list(node.output)
    return None


def _forward(graph: OnnxGraph, product: Any) -> _After:
    """The constants that are added to a product, or scale it, before anything else happens."""
    steps: list[tuple[Any, str]] = []
    name = product.output[0] if product.output else ""
    visited = set()
    while name and name not in visited:
        visited.add(name)
        kept = {"Add", "Mul", "Cast", "Identity"}
        users = [node for node in graph.consumers.get(name, []) if node.op_type in kept]
        if len(users) != 1 or not users[0].output:
            break
        steps.append((users[0], name))
        name = users[0].output[0]
    after = _After()
    for node, read in reversed(steps):
        after = dict(_before(graph, node, after)).get(read, after)
    return after


def _operand(graph: OnnxGraph, node: Any) -> tuple[str, bool] | None:
    """The constant matrix of a product and whether it is the left factor, or None."""
    right = 3 if node.op_type == "QLinearMatMul" else 1
    if len(node.input) > right and graph.is_constant(node.input[right]):
        return node.input[right], False
    products = node.op_type in {"MatMul", "Gemm"} and len(node.input) > 1
    return (node.input[0], True) if products and graph.is_constant(node.input[0]) else None


def _classes(graph: OnnxGraph, node: Any) -> int | None:
    operand = _operand(graph, node)
    if operand is None:
        return None
    shape = graph.constant(operand[0]).shape
    if node.op_type == "Conv":
        return int(shape[0])
    return None if len(shape) < 2 else shape[-2 if _in_rows(node, operand[1]) else -1]


def _in_rows(node: Any, left: bool) -> bool:
    """Whether a product's constant has a row for each class."""
    options = attributes(node)
    option = "transA" if left else "transB"
    return left != (option in options and bool(options[option].i))


def _head(graph: OnnxGraph, node: Any, after: _After) -> OnnxHead:
    """y = x B + c with B (d, C) or, from the left, y = A x with A (C, d); Gemm also scales."""
    operand = _operand(graph, node)
    assert operand is not None
    name, left = operand
    stored = graph.constant(name)
    notes = [f"the last product with a constant before the output: {node.op_type}", *after.notes]
    if node.op_type in _QUANTISED:
        stored = _real(graph, node, stored)
        notes.append(
            f"quantised product {node.op_type}: W is scale * (code - zero point), as the "
            "runtime multiplies"
        )
    if node.op_type == "Conv":
        stored = stored.reshape(stored.shape[0], -1).T
    while stored.ndim > 2 and stored.shape[0] == 1:
        stored = stored[0]
    if stored.ndim != 2:
        raise ValueError(
            f"{graph.path}: the last product's constant has shape {stored.shape}, not two axes."
        )
    W = stored if _in_rows(node, left) else stored.T
    b = after.shift
    options = attributes(node)
    if "Gemm" in node.op_type or node.op_type == "Conv":
        if "alpha" in options and options["alpha"].f != 1:
            W = W * np.asarray(options["alpha"].f, W.dtype)
        if len(node.input) > 2 and graph.is_constant(node.input[2]):
            inner = graph.constant(node.input[2])
            if "beta" in options:
                inner = inner * np.asarray(options["beta"].f, inner.dtype)
            inner = inner if after.scale is None else inner * after.scale.reshape(-1)
            b = inner if b is None else b + inner
    if node.op_type == "DynamicQuantizeMatMul" and len(node.input) > 4 and node.input[4]:
        b = graph.constant(node.input[4]) if b is None else b + graph.constant(node.input[4])
    if after.scale is not None:
        scale = np.asarray(after.scale, float)
        W = (W * (scale.reshape(-1, 1) if scale.size > 1 else scale.reshape(()))).astype(W.dtype)
    if b is not None:
        b = np.asarray(b).reshape(-1)
        # one number added to every class changes no ranking, and one row is no choice
        b = None if b.size == 1 or len(W) == 1 else b.astype(W.dtype, copy=False)
    x = node.input[1] if left else node.input[0]
    W, root = np.ascontiguousarray(W), graph.root(name)
    return OnnxHead(W, b, root, activation_of(graph, x), tuple(notes), x)


def _real(graph: OnnxGraph, node: Any, codes: np.ndarray) -> np.ndarray:
    """The real weights behind a quantised product's codes (d, C)."""
    # where the scale stands (of MatMulInteger it is a factor after the product), and the zero
    scale, zero = {
        "MatMulInteger": (None, 3), "QLinearMatMul": (4, 5), "DynamicQuantizeMatMul": (2, 3),
        "MatMulIntegerToFloat": (3, 5),
    }[node.op_type]  # fmt: skip

    def constant(position: int | None, otherwise: float) -> np.ndarray:
        given = position is not None and len(node.input) > position and node.input[position]
        return graph.constant(given) if given else np.full((), otherwise)

    return dequantise(codes, constant(scale, 1.0), constant(zero, 0.0), -1)
