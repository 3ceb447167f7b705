"""The softmax layer of an ONNX graph: the product with a constant that its output comes from, when
everything between the two is understood.

A graph is walked back from its output to the first MatMul, Gemm, quantised product or convolution
of one pixel with a constant operand, W x. Then what stands between the two is followed forwards
(`onnx_scores`): constants that are added are the bias b, rows that are picked are the classes;
scales, caps and softmaxes are the readout. Anything else is refused by its name. Quantised weights
become the real numbers that the runtime multiplies with, scale * (code - zero point); quantised
*features* stay features.

What stands in front of the layer says where its inputs lie (`activation.py`). Metadata `character`
(PaddleOCR's recognisers) names the classes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from softgeom.checkpoints import head_table as table
from softgeom.checkpoints.activation import Activation, activation_of
from softgeom.checkpoints.choosing import Choice
from softgeom.checkpoints.label_files import lines
from softgeom.checkpoints.labels import LabelsError, fit_labels
from softgeom.checkpoints.onnx_graph import OnnxGraph, attributes, dequantise
from softgeom.checkpoints.onnx_rules import RULES, applied
from softgeom.checkpoints.onnx_scores import NotFollowedError, Scores, Step
from softgeom.checkpoints.onnx_shared import main_input
from softgeom.checkpoints.opened import Asked, Opened, Shown
from softgeom.checkpoints.tensors import ArrayStore, plain
from softgeom.readout import PLAIN, Readout

# what a graph adds to the product has no name of its own
_BIAS = "what the graph adds"
_QUANTISED = {
    "MatMulInteger", "QLinearMatMul", "DynamicQuantizeMatMul", "MatMulIntegerToFloat",
}  # fmt: skip
_PRODUCTS = {"MatMul", "Gemm", "FusedMatMul", "FusedGemm"} | _QUANTISED
# what a named product is followed through: numbers that move, and constants
_MOVING = set("Cast Identity Reshape Flatten Transpose Squeeze Unsqueeze".split())
_AFFINE = set("Add Sub Sum Mul Div Neg".split())
_LISTED = 5  # outputs that a message explains
_NOTHING = SimpleNamespace(op_type="The output")


@dataclass(frozen=True)
class OnnxHead:
    """What the graph says about one product with a constant: W (C, d), b (C,) or None, the constant
    that W is, the step in front, how it was found, the value x that the product multiplies, and
    what stands behind it.
    """

    W: np.ndarray
    b: np.ndarray | None
    weight_name: str
    activation: Activation | None = None
    notes: tuple[str, ...] = ()
    features_name: str = ""
    readout: Readout = PLAIN


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
    return Shown(ArrayStore(tensors, label), choice, found.activation, readout=found.readout)


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


def last_product(
    graph: OnnxGraph, weight: str | None = None
) -> tuple[Any, np.ndarray | None, tuple[tuple[Any, int], ...]]:
    """The node that multiplies features with W, b, and which inputs of which nodes make b.
    ValueError as `read_onnx_head`, and where the classes are not the rows of W as they stand.
    """
    node, after = _found(graph, weight)
    if after.a is not None or after.sign < 0 or not np.array_equal(after.rows, _rows(graph, node)):
        raise ValueError(
            f"{graph.path}: the graph scales or picks the classes behind its last product; write "
            ".safetensors instead."
        )
    return node, after.b, after.biases


def _found(graph: OnnxGraph, weight: str | None) -> tuple[Any, Scores]:
    """The product that the graph's answer comes from, and what the graph does behind it."""
    weight = None if weight is None else graph.root(weight)
    if weight is not None and weight not in map(graph.root, _operands(graph)):
        raise ValueError(
            f"{graph.path} has no matrix product with the constant {weight!r} before its output; "
            f"candidates: {graph.describe_matrices()}."
        )
    heads: dict[str, tuple[Any, Scores]] = {}
    refused: list[str] = []
    for output in _answers(graph):
        try:
            node, after = _behind(graph, output)
            name = graph.root(_operand(graph, node)[0])
            if heads.setdefault(name, (node, after))[1].same_layer(after):
                continue
            refused.append(f"two outputs choose between the classes of {plain(name)} in two ways")
        except NotFollowedError as error:
            refused.append(f"output {plain(output)}: {error}")
    if weight is not None:
        return heads.get(weight) or _named(graph, weight)
    if len(heads) == 1 and not refused:
        return next(iter(heads.values()))
    listed = ", ".join(f"{plain(name)} {graph.shape_of(name)}" for name in heads)
    if len(heads) > 1:
        raise ValueError(
            f"{graph.path} has several heads, one an output; choose one (--weight): {listed}."
        )
    why = "; ".join(refused[:_LISTED]) or "it has no output"
    besides = f"; another output is a layer of its own: {listed}" if heads else ""
    raise ValueError(
        f"{graph.path} has no matrix product before its output that can be followed for certain: "
        f"{why}{besides}; candidates for --weight, which takes a product as it stands: "
        f"{graph.describe_matrices()}."
    )


def _answers(graph: OnnxGraph) -> list[str]:
    """The outputs that can hold scores: what is called logits, else all but caches and states."""
    called = [name for name in graph.outputs if table.SCORES.search(name)]
    return (
        called or [name for name in graph.outputs if not table.STATES.search(name)] or graph.outputs
    )


def _behind(graph: OnnxGraph, output: str) -> tuple[Any, Scores]:
    """The product that an output comes from, and what happens to it on the way."""
    chain: list[Step] = []
    name, visited = output, set()
    while (node := graph.producer.get(name)) is not None and name not in visited:
        visited.add(name)
        if _is_product(graph, node):
            scores = _start(graph, node)
            for step in reversed(chain):
                scores = applied(scores, step)
            return node, _ended(scores, node, chain)
        if node.op_type not in RULES:
            raise NotFollowedError(node, "is not followed")
        at = main_input(graph, node)
        if at is None:
            raise NotFollowedError(node, "joins two values that both depend on the input")
        chain.append(Step(graph, node, at, list(node.output).index(name)))
        name = node.input[at]
    raise NotFollowedError(
        node if node is not None else chain[-1].node if chain else _NOTHING,
        "comes from no product with a constant",
    )


def _ended(scores: Scores, product: Any, chain: list[Step]) -> Scores:
    """The scores at an output, if an answer can be read there."""
    last = chain[0].node if chain else product
    if scores.cut is not None:
        raise NotFollowedError(scores.cut, "ties scores, and no softmax stands behind it")
    if scores.form == "tanh" and scores.mul == scores.div:
        raise NotFollowedError(last, "ends in numbers from -1 to 1: scores, or features?")
    if scores.form == "sigmoid" and not scores.decided and (scores.moved or scores.stretched):
        raise NotFollowedError(last, "says labels by scores less a number that varies")
    if scores.decided and scores.sign != scores.decided:
        raise NotFollowedError(last, "gives the best class the least number: are these costs?")
    return scores


def _operands(graph: OnnxGraph) -> Iterator[str]:
    for node in graph.nodes:
        if _is_product(graph, node):
            yield _operand(graph, node)[0]


def _named(graph: OnnxGraph, weight: str) -> tuple[Any, Scores]:
    """A product inside of the graph, with what is added to it before anything else happens."""
    products = [n for n in graph.nodes if _is_product(graph, n)]
    product = next(n for n in products if graph.root(_operand(graph, n)[0]) == weight)
    scores, name, visited = _start(graph, product), product.output[0], set()
    while name not in visited:
        visited.add(name)
        # what only asks for the shape changes nothing
        users = [node for node in graph.consumers.get(name, []) if node.op_type != "Shape"]
        plain_users = [node for node in users if _keeps_linear(graph, node)]
        if not plain_users:
            used = " and ".join(sorted({plain(node.op_type) for node in users})) or "an output"
            note = f"the product is taken as it stands in front of {used}"
            return product, replace(scores, notes=(*scores.notes, note))
        if len(users) > 1:
            raise ValueError(
                f"{graph.path}: what the product with {plain(weight)} gives is read "
                f"{len(users)} times, by {plain_users[0].op_type} among others: which bias belongs "
                "to it cannot be told; pass W and b as an .npz file."
            )
        at = list(users[0].input).index(name)
        try:
            scores = applied(scores, Step(graph, users[0], at))
        except NotFollowedError as error:
            raise ValueError(
                f"{graph.path}: behind the product with {plain(weight)} {error}; pass W and b of "
                "one choice as an .npz file."
            ) from None
        name = users[0].output[0]
    return product, scores


def _keeps_linear(graph: OnnxGraph, node: Any) -> bool:
    """Whether an operation moves numbers, or meets them with a constant."""
    varying = [name for name in node.input if name and not graph.is_constant(name)]
    return node.op_type in _MOVING or (node.op_type in _AFFINE and len(varying) == 1)


# ---- the product itself


def _is_product(graph: OnnxGraph, node: Any) -> bool:
    """Whether a node multiplies with a constant: a matrix, or a convolution of one pixel."""
    if node.op_type == "Conv":
        if len(node.input) < 2 or not graph.is_constant(node.input[1]):
            return False
        shape, group = graph.constant(node.input[1]).shape, attributes(node).get("group")
        return len(shape) > 2 and set(shape[2:]) == {1} and (group is None or group.i == 1)
    return node.op_type in _PRODUCTS and bool(_operand(graph, node)[0]) and bool(node.output)


def _operand(graph: OnnxGraph, node: Any) -> tuple[str, bool]:
    """The constant of a product and whether it is the left factor; ("", False) without."""
    right = 3 if node.op_type == "QLinearMatMul" else 1
    if len(node.input) > right and graph.is_constant(node.input[right]):
        return node.input[right], False
    products = node.op_type in {"MatMul", "Gemm"} and len(node.input) > 1
    return (node.input[0], True) if products and graph.is_constant(node.input[0]) else ("", False)


def _matrix(graph: OnnxGraph, node: Any) -> np.ndarray:
    """W (C, d) of a product y = x B with B (d, C), or y = A x with A (C, d) from the left."""
    name, left = _operand(graph, node)
    stored = graph.constant(name)
    if node.op_type in _QUANTISED:
        stored = _real(graph, node, stored)
    if node.op_type == "Conv":
        return stored.reshape(stored.shape[0], -1)
    while stored.ndim > 2 and stored.shape[0] == 1:
        stored = stored[0]
    if stored.ndim != 2:
        raise NotFollowedError(node, f"has a constant of shape {stored.shape}, not of two axes")
    option = attributes(node).get("transA" if left else "transB")
    in_rows = left != (option is not None and bool(option.i))
    return stored if in_rows else stored.T


def _rows(graph: OnnxGraph, node: Any) -> np.ndarray:
    return np.arange(len(_matrix(graph, node)))


def _start(graph: OnnxGraph, node: Any) -> Scores:
    """The scores of a product, with what the node itself adds to them."""
    step, left = Step(graph, node), _operand(graph, node)[1]
    for name in ("activation", "transBatchA", "transBatchB"):  # of com.microsoft
        if step.option(name, None):
            raise step.refuse(f"has the option {name}")
    axis = -2 if left else -1
    if node.op_type == "Conv":
        axis = 1 - graph.constant(node.input[1]).ndim
    elif left and node.op_type == "MatMul" and graph.rank(node.input[1]) in (None, 1):
        raise step.refuse("has the constant on the left of a value of unknown axes")
    alpha = float(step.option("alpha", 1.0))
    if not (np.isfinite(alpha) and alpha):
        raise step.refuse(f"has the factor {alpha:g}")
    scores = Scores(_rows(graph, node), axis, mul=abs(alpha), sign=1 if alpha > 0 else -1)
    place = 4 if node.op_type == "DynamicQuantizeMatMul" else 2
    has_bias = node.op_type in {"Gemm", "FusedGemm", "Conv", "DynamicQuantizeMatMul"}
    if has_bias and len(node.input) > place and node.input[place]:
        if not graph.is_constant(node.input[place]):
            raise step.refuse("adds a value that depends on the input")
        bias, beta = graph.constant(node.input[place]), float(step.option("beta", 1.0))
        if node.op_type == "Conv":  # (C,), whatever stands behind the axis of the classes
            bias = bias.reshape(-1, *[1] * (-axis - 1))
        scores = scores.plus_constant(bias if beta == 1 else bias.astype(float) * beta, step)
        scores = replace(scores, biases=((node, place),))
    return scores


def _head(graph: OnnxGraph, node: Any, after: Scores) -> OnnxHead:
    """The layer: W's rows that are classes, in their order, and one bias each."""
    name, left = _operand(graph, node)
    W, b, sign = _matrix(graph, node)[after.rows], after.b, after.decided or after.sign
    notes = [f"the last product with a constant before the output: {node.op_type}"]
    if len(after.rows) != len(_rows(graph, node)):
        notes.append(f"{len(after.rows)} of its {len(_rows(graph, node))} outputs are classes")
    if node.op_type in _QUANTISED:
        notes.append(
            f"quantised product {node.op_type}: W is scale * (code - zero point), as the "
            "runtime multiplies"
        )
    if after.a is not None:  # two float32 multiply exactly in float64
        W = W.astype(float) * after.a.reshape(-1, 1)
    readout = after.readout()
    if b is not None and b.size == 1:
        # one number added to every class changes no choice between them
        b = np.broadcast_to(b.reshape(()), len(W)) if readout.rule == "threshold" else None
    if sign < 0:
        W, b = -W, None if b is None else -b
    step = activation_of(graph, node.input[1] if left else node.input[0])
    if step is not None and step.gain is not None and not _fits(graph, node, left, step, W):
        step = None
        notes.append("the normalisation in front of the layer runs over other axes than W: unused")
    if step is not None and node.op_type == "Conv" and any(Step(graph, node).option("pads", ())):
        step = None  # features of 0 stand in the margin
    return OnnxHead(
        np.ascontiguousarray(W), b, graph.root(name), step, (*notes, *after.notes),
        node.input[1] if left else node.input[0], readout,
    )  # fmt: skip


def _fits(graph: OnnxGraph, node: Any, left: bool, step: Activation, W: np.ndarray) -> bool:
    """Whether the features are the last axis of what the product reads, one a gain."""
    turned = Step(graph, node).option("transA", 0)
    one_a_gain = step.gain is not None and step.gain.shape == W.shape[1:]
    return one_a_gain and not (left or turned or node.op_type == "Conv")


def _real(graph: OnnxGraph, node: Any, codes: np.ndarray) -> np.ndarray:
    """The real weights behind a quantised product's codes (d, C), in float64: the runtime adds up
    whole numbers and multiplies then.
    """
    # where the scale stands (of MatMulInteger it is a factor after the product), and the zero
    scale, zero = {
        "MatMulInteger": (None, 3), "QLinearMatMul": (4, 5), "DynamicQuantizeMatMul": (2, 3),
        "MatMulIntegerToFloat": (3, 5),
    }[node.op_type]  # fmt: skip

    def constant(position: int | None, otherwise: float) -> np.ndarray:
        given = position is not None and len(node.input) > position and node.input[position]
        return graph.constant(given) if given else np.full((), otherwise)

    return dequantise(codes, constant(scale, 1.0), constant(zero, 0.0), -1, float)
