"""Tesseract's `.traineddata`: the network of its LSTM recogniser, its softmax, and the letters that
are written with each code.

A file is an int32 n, n int64 offsets (-1 for what is not there) and the components: 17 is the
network, 21 the unicharset, 22 the recoder. A network is a tree of nodes, each with its type, sizes
and name before what is particular to it (`_read_node`; network.cpp and weightmatrix.cpp of
Tesseract 4 and 5). The last column of a matrix is the bias; one of int8 has a float64 scale for
each row. The recoder writes a character as one or several codes, and the softmax has a row for each
code, so that a class may be part of many characters.

Outputs of an LSTM lie in (-1, 1): there the features have a true range.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from softgeom.checkpoints.activation import Activation, named_activation
from softgeom.checkpoints.cursor import Cursor, CutShortError, reading
from softgeom.checkpoints.opened import Asked, Opened, Shown, shown
from softgeom.checkpoints.tensors import ArrayStore, plain

_LSTM, _UNICHARSET, _RECODER = 17, 21, 22
_MOST_COMPONENTS = 1000  # as Tesseract itself has it
_DEEPEST = 50  # nodes within each other
_MOST_NODES = 10_000
_TYPES = (
    "Invalid", "Input", "Convolve", "Maxpool", "Parallel", "Replicated", "ParBidiLSTM",
    "DepParUDLSTM", "Par2dLSTM", "Series", "Reconfig", "RTLReversed", "TTBReversed", "XYTranspose",
    "LSTM", "SummLSTM", "Logistic", "LinLogistic", "LinTanh", "Tanh", "Relu", "Linear", "Softmax",
    "SoftmaxNoCTC", "LSTMSoftmax", "LSTMBinarySoftmax", "TensorFlow",
)  # fmt: skip
_CONTAINERS = {
    "Parallel", "Replicated", "ParBidiLSTM", "DepParUDLSTM", "Par2dLSTM", "Series", "RTLReversed",
    "TTBReversed", "XYTranspose",
}  # fmt: skip
_RATES = 64  # flag: each child has a learning rate
_RANGES = {
    "LSTM": "LSTM", "SummLSTM": "LSTM", "Tanh": "tanh", "Relu": "ReLU", "Logistic": "sigmoid",
}  # fmt: skip
_SOFTMAX = {"Softmax", "SoftmaxNoCTC", "Logistic"}
_INT8, _ADAM, _DOUBLE = 1, 4, 128  # modes of a matrix
# words of a unicharset that stand for something else: a space, and no letter at all
_SPECIAL = {"NULL": " ", "Joined": "", "|Broken|0|1": ""}
_SHOWN = 4  # characters by which a code that is part of several is named


@dataclass
class _Node:
    """One layer, or several within."""

    kind: str
    name: str
    training: bool
    sizes: tuple[int, int]  # inputs, outputs
    children: list[_Node] = field(default_factory=list)
    weights: list[np.ndarray] = field(default_factory=list)  # (rows, columns + 1) each


def open_traineddata(path: Path) -> Opened:
    """One file, with its softmax and the letters of its codes. ValueError when it is damaged, or
    holds the older recogniser alone.
    """
    with reading(path, "traineddata file") as cursor:
        parts = _components(cursor)
        if _LSTM not in parts:
            raise ValueError(
                f"{path} holds no LSTM network: it is of Tesseract 3, whose recogniser has no "
                "softmax."
            )
        network = _read_node(parts[_LSTM], [0])
        letters = _unichars(parts[_UNICHARSET]) if _UNICHARSET in parts else []
        codes = _recoder(parts[_RECODER]) if _RECODER in parts else []
    tensors = dict(_named(network))
    if not tensors:
        raise ValueError(f"{path} holds a network without weights.")
    store = ArrayStore(tensors, str(path), {"format": "traineddata"})
    names = functools.partial(_names, codes, letters) if letters and codes else None
    show = functools.partial(_show, store, network)
    return Opened(store, show=show, names=names)


def _show(store: ArrayStore, network: _Node, asked: Asked) -> Shown:
    steps = _in_order(network)
    if asked.weight is not None or not steps or steps[-1].kind not in _SOFTMAX:
        return shown(store, asked)
    last = steps[-1]
    why = f"the {last.kind} that the network ends with"
    own = shown(store, asked, (f"{last.name}.weight", f"{last.name}.bias", why))
    return replace(own, activation=_range(steps[:-1]))


def _components(cursor: Cursor) -> dict[int, Cursor]:
    """Each component that is there, up to where the next begins."""
    count = cursor.number("i")
    if not 0 < count <= _MOST_COMPONENTS:
        raise CutShortError(f"{count} components: no traineddata, or of a big-endian machine")
    offsets = cursor.array("<i8", count).tolist()
    ends = [*sorted(start for start in offsets if start >= 0), cursor.end]
    return {
        n: cursor.part(start, min(end for end in ends if end > start or end == cursor.end))
        for n, start in enumerate(offsets)
        if start >= 0
    }


def _read_node(cursor: Cursor, count: list[int], depth: int = 0) -> _Node:
    count[0] += 1
    if depth > _DEEPEST or count[0] > _MOST_NODES:
        raise CutShortError("layers are nested too deeply")
    code = cursor.number("b")
    if not 0 <= code < len(_TYPES):
        raise CutShortError(f"there is no layer of type {code}")
    kind = _TYPES[code] if code else cursor.text()
    training = cursor.number("b") == 1
    cursor.take(1)  # whether errors go back through it
    flags, inputs, outputs = (cursor.number("i") for _ in range(3))
    cursor.take(4)  # number of weights
    node = _Node(kind, plain(cursor.text(), 60), training, (inputs, outputs))
    if kind in _CONTAINERS:
        children = cursor.number("I")
        if children > cursor.left:
            raise CutShortError(f"{children} layers in {cursor.left} bytes")
        node.children = [_read_node(cursor, count, depth + 1) for _ in range(children)]
        if flags & _RATES:
            cursor.array("<f4", cursor.number("I"))
    elif kind == "Input":
        cursor.take(20)
    elif kind in ("Convolve", "Maxpool", "Reconfig"):
        cursor.take(8)
    elif "LSTM" in kind:
        _read_lstm(cursor, node, count, depth)
    elif kind in _TYPES and kind not in ("Invalid", "TensorFlow"):
        node.weights = [_read_matrix(cursor, training)]
    else:
        raise CutShortError(f"there is no layer of type {plain(kind, 40)!r}")
    return node


def _read_lstm(cursor: Cursor, node: _Node, count: list[int], depth: int) -> None:
    """Gates: cell input, input, forget, output; in 2D one more forget before output."""
    width, (inputs, outputs) = cursor.number("i"), node.sizes
    fed_back = {"LSTMSoftmax": outputs, "LSTMBinarySoftmax": (outputs - 1).bit_length()}
    first = _read_matrix(cursor, node.training)
    states = len(first)
    plane = width - fed_back.get(node.kind, 0) == inputs + 2 * states
    gates = [_read_matrix(cursor, node.training) for _ in range(4 if plane else 3)]
    node.weights = [first, *gates]
    if node.kind in fed_back:
        node.children = [_read_node(cursor, count, depth + 1)]


def _read_matrix(cursor: Cursor, training: bool) -> np.ndarray:
    """A matrix (rows, columns + 1), as the numbers that the recogniser multiplies with."""
    mode = cursor.number("B")
    double = bool(mode & _DOUBLE)
    if mode & _INT8:
        codes = _read_grid(cursor, "i1")
        scales = cursor.array("<f8" if double else "<f4", cursor.number("I"))
        if len(scales) < len(codes):
            raise CutShortError(f"{len(scales)} scales for {len(codes)} rows")
        # files of the first version keep the scales that the products of int8 inputs need
        factors = scales[: len(codes)].astype(np.float64) * (1 if double else 127)
        return np.asarray(codes * factors[:, None])
    real = "<f8" if double else "<f4"
    values = _read_grid(cursor, real)
    for _ in range((1 + bool(mode & _ADAM)) if training else 0):
        _read_grid(cursor, real)
    return values


def _read_grid(cursor: Cursor, dtype: str) -> np.ndarray:
    rows, columns = cursor.number("I"), cursor.number("I")
    cursor.take(np.dtype(dtype).itemsize)  # what an empty entry is
    return cursor.array(dtype, rows, columns)


def _in_order(node: _Node) -> list[_Node]:
    """The steps of the outermost series."""
    return [node] if node.kind != "Series" else [s for c in node.children for s in _in_order(c)]


def _range(before: list[_Node]) -> Activation | None:
    """What the last steps before the softmax leave of the range of numbers."""
    for step in reversed(before):
        if step.kind in _RANGES:
            return named_activation(_RANGES[step.kind])
        if step.kind in _CONTAINERS:
            inside = {_range([child]) for child in step.children}
            return inside.pop() if len(inside) == 1 else None
        if step.kind not in ("Reconfig", "Maxpool"):
            return None
    return None


def _named(node: _Node, path: str = "") -> list[tuple[str, np.ndarray]]:
    """Every matrix and its bias, by the names of the layers."""
    found = []
    if node.kind in _SOFTMAX | {"LinLogistic", "LinTanh", "Tanh", "Relu", "Linear"}:
        found = [(node.name, node.weights[0])]
    elif node.weights:
        found = [(f"{path}{node.name}.{n}", gate) for n, gate in enumerate(node.weights)]
    tensors = []
    for name, matrix in found:
        tensors += [(f"{name}.weight", matrix[:, :-1]), (f"{name}.bias", matrix[:, -1])]
    for n, child in enumerate(node.children):
        tensors += _named(child, f"{path}{n}.")
    return tensors


def _recoder(cursor: Cursor) -> list[tuple[int, ...]]:
    """The codes of each character."""
    found = []
    for _ in range(cursor.number("I")):
        cursor.take(1)
        found.append(tuple(cursor.array("<i4", cursor.number("I")).tolist()))
    return found


def _unichars(cursor: Cursor) -> list[str]:
    """The characters in their order: a line each, after a line that counts them."""
    count, *lines = cursor.take(cursor.left).decode("utf-8", "replace").split("\n")
    words = [line.split(" ")[0] for line in lines[: int(count)]]
    return [_SPECIAL.get(word, word) for word in words]


def _names(
    codes: list[tuple[int, ...]], letters: list[str], classes: int, blank: str | None
) -> tuple[list[str], str]:
    """A name for each code: the character that it is alone, or some of those that it is part of."""
    alone: defaultdict[int, list[str]] = defaultdict(list)
    part: defaultdict[int, list[str]] = defaultdict(list)
    for letter, written in zip(letters, codes, strict=False):
        for code in {*written}:
            if letter:
                (alone if len(written) == 1 else part)[code].append(letter)
    names = [
        "/".join(alone[code])
        or (f"part of {' '.join(part[code][:_SHOWN])}" if part[code] else f"no letter ({code})")
        for code in range(classes)
    ]
    several = sum(len(written) > 1 for written in codes)
    how = f"names from the file's unicharset: {len(letters):,} characters"
    return names, how + (f", of which {several:,} take several codes" if several else "")
