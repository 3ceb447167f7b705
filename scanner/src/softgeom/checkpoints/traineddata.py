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
_DENSE = _SOFTMAX | {"LinLogistic", "LinTanh", "Tanh", "Relu", "Linear"}
_PASSED_OVER = {"Input": 20, "Convolve": 8, "Maxpool": 8, "Reconfig": 8}  # bytes of their sizes
_INT8, _ADAM, _DOUBLE = 1, 4, 128  # modes of a matrix
# words of a unicharset that stand for something else: a space, and no letter at all
_SPECIAL = {"NULL": " ", "Joined": "", "|Broken|0|1": ""}
_SHOWN = 4  # characters by which a code that is part of several is named


@dataclass
class _Node:
    """One layer, or several within."""

    kind: str
    name: str
    children: list[_Node] = field(default_factory=list)
    weights: np.ndarray | None = None  # (rows, columns + 1)


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
        network = _read_node(parts[_LSTM])
        letters = _unichars(parts[_UNICHARSET]) if _UNICHARSET in parts else []
        codes = _recoder(parts[_RECODER]) if _RECODER in parts else []
    tensors = _named(network)
    if not tensors:
        raise ValueError(f"{path} holds a network without a layer that multiplies.")
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


def _read_node(cursor: Cursor) -> _Node:
    code = cursor.number("b")
    if not 0 <= code < len(_TYPES):
        raise CutShortError(f"there is no layer of type {code}")
    kind = _TYPES[code] if code else cursor.text()
    training = cursor.number("b") == 1
    cursor.skip(1)  # whether errors go back through it
    flags, inputs, _ = (cursor.number("i") for _ in range(3))
    cursor.skip(4)  # number of weights
    node = _Node(kind, plain(cursor.text(), 60))
    if kind in _CONTAINERS:
        node.children = [_read_node(cursor) for _ in range(cursor.number("I"))]
        if flags & _RATES:
            cursor.array("<f4", cursor.number("I"))
    elif kind in _PASSED_OVER:
        cursor.skip(_PASSED_OVER[kind])
    elif kind in ("LSTM", "SummLSTM"):
        _read_lstm(cursor, inputs, training)
    elif kind in _DENSE:
        node.weights = _read_matrix(cursor, training)
    else:
        raise CutShortError(f"there is no layer of type {plain(kind, 40)!r}")
    return node


def _read_lstm(cursor: Cursor, inputs: int, training: bool) -> None:
    """Gates: cell input, input, forget, output; in 2D one more forget before output."""
    width = cursor.number("i")
    states = len(_read_matrix(cursor, training))
    for _ in range(4 if width == inputs + 2 * states else 3):
        _read_matrix(cursor, training)


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
    for _ in range(training + (training and bool(mode & _ADAM))):  # what training goes on from
        _read_grid(cursor, real)
    return values


def _read_grid(cursor: Cursor, dtype: str) -> np.ndarray:
    rows, columns = cursor.number("I"), cursor.number("I")
    cursor.skip(np.dtype(dtype).itemsize)  # what an empty entry is
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


def _named(node: _Node) -> dict[str, np.ndarray]:
    """The matrices that layers multiply with, and their biases, by the names of the layers."""
    tensors = {}
    if node.weights is not None:
        tensors[f"{node.name}.weight"] = node.weights[:, :-1]
        tensors[f"{node.name}.bias"] = node.weights[:, -1]
    for child in node.children:
        tensors |= _named(child)
    return tensors


def _recoder(cursor: Cursor) -> list[tuple[int, ...]]:
    """The codes of each character."""
    found = []
    for _ in range(cursor.number("I")):
        cursor.skip(1)
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
