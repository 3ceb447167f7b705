"""The softmax layer of an ONNX graph: the product with a constant that its output comes from, when
everything between the two is understood.

A graph is walked back from its output to the first product with a constant, W x (`onnx_product`).
Then what stands between the two is followed forwards (`onnx_scores`): constants that are added are
the bias b, rows that are picked are the classes; scales, caps and softmaxes are the readout.
Anything else is refused by its name.

What stands in front of the layer says where its inputs lie (`activation.py`). Metadata `character`
(PaddleOCR's recognisers) names the classes.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from softgeom.checkpoints import head_table as table
from softgeom.checkpoints.activation import Activation
from softgeom.checkpoints.choosing import Choice
from softgeom.checkpoints.label_files import lines
from softgeom.checkpoints.labels import LabelsError, fit_labels
from softgeom.checkpoints.onnx_graph import OnnxGraph
from softgeom.checkpoints.onnx_product import Product, product_of
from softgeom.checkpoints.onnx_rules import RULES, applied
from softgeom.checkpoints.onnx_scores import NotFollowedError, Scores, Step
from softgeom.checkpoints.onnx_shared import main_input
from softgeom.checkpoints.opened import Asked, Opened, Shown
from softgeom.checkpoints.tensors import ArrayStore, plain
from softgeom.readout import PLAIN, Readout

# what a graph adds to the product has no name of its own
_BIAS = "what the graph adds"
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
    return _head(*_found(graph, weight))


def open_onnx(path: Path) -> Opened:
    """A graph, with the layer before its output (or the product that is named)."""
    graph = OnnxGraph(path)
    found = functools.cache(lambda weight: _head(*_found(graph, weight)))
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
    product, after = _found(graph, weight)
    every = np.arange(len(product.matrix))
    if after.a is not None or after.sign < 0 or not np.array_equal(after.rows, every):
        raise ValueError(
            f"{graph.path}: the graph scales or picks the classes behind its last product; write "
            ".safetensors instead."
        )
    return product.node, after.b, after.biases


def _found(graph: OnnxGraph, weight: str | None) -> tuple[Product, Scores]:
    """The product that the graph's answer comes from, and what the graph does behind it."""
    weight = None if weight is None else graph.root(weight)
    products = () if weight is None else map(functools.partial(product_of, graph), graph.nodes)
    named = next((product for product in products if product and product.name == weight), None)
    if weight is not None and named is None:
        raise ValueError(
            f"{graph.path} has no matrix product with the constant {weight!r} before its output; "
            f"candidates: {graph.describe_matrices()}."
        )
    heads: dict[str, tuple[Product, Scores]] = {}
    refused: list[str] = []
    for output in _answers(graph):
        try:
            product, after = _behind(graph, output)
            if heads.setdefault(product.name, (product, after))[1].same_layer(after):
                continue
            classes = f"the classes of {plain(product.name)}"
            refused.append(f"two outputs choose between {classes} in two ways")
        except NotFollowedError as error:
            refused.append(f"output {plain(output)}: {error}")
    if named is not None:
        return heads.get(named.name) or _as_it_stands(graph, named)
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


def _behind(graph: OnnxGraph, output: str) -> tuple[Product, Scores]:
    """The product that an output comes from, and what happens to it on the way."""
    chain: list[Step] = []
    name, visited = output, set()
    while (node := graph.producer.get(name)) is not None and name not in visited:
        visited.add(name)
        if (product := product_of(graph, node)) is not None:
            scores = product.scores()
            for step in reversed(chain):
                scores = applied(scores, step)
            return product, _ended(scores, node, chain)
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


def _as_it_stands(graph: OnnxGraph, product: Product) -> tuple[Product, Scores]:
    """A product inside of the graph, with what is added to it before anything else happens."""
    scores, name, visited, weight = product.scores(), product.node.output[0], set(), product.name
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


def _head(product: Product, after: Scores) -> OnnxHead:
    """The layer: W's rows that are classes, in their order, and one bias each."""
    W, b, notes = product.matrix[after.rows], after.b, product.notes()
    if len(after.rows) != len(product.matrix):
        notes.append(f"{len(after.rows)} of its {len(product.matrix)} outputs are classes")
    if after.a is not None:  # two float32 multiply exactly in float64
        W = W.astype(float) * after.a.reshape(-1, 1)
    readout = after.readout()
    if b is not None and b.size == 1:
        # one number added to every class changes no choice between them
        b = np.broadcast_to(b.reshape(()), len(W)) if readout.rule == "threshold" else None
    if (after.decided or after.sign) < 0:
        W, b = -W, None if b is None else -b
    step, unused = product.step_before(W)
    notes = [*notes, *unused, *after.notes]
    W = np.ascontiguousarray(W)
    return OnnxHead(W, b, product.name, step, tuple(notes), product.features, readout)
