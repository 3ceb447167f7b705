"""TFLite files: the last fully connected layer before the output, found by walking the graph back,
and what stands in front of it.

A file is a FlatBuffer (schema.fbs of TensorFlow Lite, version 3): tensors with shape, type and
buffer, and operators with the numbers of the tensors that they read and write. Softmax, sigmoid,
reshapes and dequantisation behind the layer change no order of its outputs; a ReLU ties what it
cuts. Matrices are stored as (classes, features), quantised ones as codes with a scale and a zero
point, one a tensor or one a class: the real number is scale * (code - zero point).
"""

from __future__ import annotations

import functools
import struct
from dataclasses import replace
from mmap import ACCESS_READ, mmap
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softgeom.checkpoints.activation import RELU_BEHIND, Activation, named_activation
from softgeom.checkpoints.choosing import choose
from softgeom.checkpoints.onnx_graph import dequantise
from softgeom.checkpoints.opened import Asked, Opened, Shown, shown

# codes of operators in the schema
_FULLY_CONNECTED, _DEQUANTIZE, _RESHAPE, _SQUEEZE, _LOGISTIC, _SOFTMAX = 9, 6, 22, 43, 14, 25
_QUANTIZE = 114
_BEHIND = {_LOGISTIC, _SOFTMAX, _RESHAPE, _SQUEEZE, _DEQUANTIZE, _QUANTIZE}
_KEEPS_INTERVAL = {1, 17, 40, _RESHAPE, _SQUEEZE}  # AVERAGE_POOL, MAX_POOL, MEAN
# RELU, RELU6, TANH, HARD_SWISH
_ACTIVATIONS = {_LOGISTIC: "sigmoid", _SOFTMAX: "softmax"} | {
    19: "ReLU", 21: "ReLU", 28: "tanh", 117: "HardSwish",
}  # fmt: skip
# the field of the options that names what is fused: CONV, DEPTHWISE, ADD, MUL
_FUSED_AT = {3: 3, 4: 4, _FULLY_CONNECTED: 0, 0: 0, 18: 0}
# RELU, RELU6, TANH; an interval may be wider than the step's own
_FUSED = {1: "ReLU", 3: "ReLU", 4: "tanh"}
_MONOTONE = {0, 4}  # nothing fused to the last layer, or tanh
_RELU = 1  # fused to it: only in front of a softmax is that the layer
_FLOATS = {0: "<f4", 1: "<f2", 10: "<f8"}
_CODES = {2: "<i4", 3: "|u1", 7: "<i2", 9: "|i1"}
_DAMAGE = (struct.error, ValueError, IndexError, UnicodeDecodeError)
_STEPS = 1000  # of a walk: a graph that is damaged may have circles
_Head = tuple[str, str | None, Activation | None, list[str]]


def open_tflite(path: Path) -> Opened:
    """One file, with the layer before its output, unless another matrix is named."""
    store = TfliteStore(path)
    return Opened(store, show=functools.partial(_show, store))


def _show(store: TfliteStore, asked: Asked) -> Shown:
    if asked.weight is not None:
        return shown(store, asked)
    weight, bias, activation, why = store.head()
    bias = None if asked.without_bias else asked.bias or bias
    # the graph shows that there is none: no name is taken for one
    choice = choose(store, {}, weight, bias, without_bias=bias is None)
    return Shown(store, replace(choice, why=(*why, *choice.why)), activation)


class TfliteStore:
    """The constant tensors of one TFLite file."""

    def __init__(self, path: Path) -> None:
        self.label, self.provenance = str(path), {"format": "tflite"}
        with path.open("rb") as file:
            if file.read(8)[4:] != b"TFL3":
                raise ValueError(
                    f"{path} is not a TFLite file: TFL3 does not stand at its fifth byte."
                )
            self._data = mmap(file.fileno(), 0, access=ACCESS_READ)
        try:
            model = Table.root(self._data)
            # Codes of 127 and more stand in a field that older files lack; the older field then
            # says 127.
            self._codes = [max(code.number(0, "b"), code.number(3)) for code in model.tables(1)]
            (graph, *_), self._buffers = model.tables(2), model.tables(4)
            self._tensors, self._operators = graph.tables(0), graph.tables(3)
            self._outputs = graph.numbers(2).tolist()
            self._writer = {int(out): op for op in self._operators for out in op.numbers(2)}
            constants = [(n, t) for n, t in enumerate(self._tensors) if self._values(t).size]
            self._places = {tensor.text(3): n for n, tensor in constants}
            self._shapes = {t.text(3): tuple(t.numbers(0).tolist()) for _, t in constants}
            self._kinds = {t.text(3): t.number(1, "b") for _, t in constants}
        except _DAMAGE as error:
            raise ValueError(
                f"{path} is not a whole TFLite file ({error}): fetch it again."
            ) from error

    def names(self) -> list[str]:
        return list(self._places)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._shapes[name]

    def read(self, name: str) -> np.ndarray:
        tensor = self._tensors[self._places[name]]
        values, shape, kind = self._values(tensor), self._shapes[name], self._kinds[name]
        dtype = (_FLOATS | _CODES).get(kind)
        coded = tensor.table(4) if kind in _CODES else None
        scale = coded.numbers(2, "<f4") if coded is not None else np.zeros(0)
        if dtype is None or (kind in _CODES and not scale.size):
            raise ValueError(
                f"{self.label}: {name!r} is stored as codes of type {kind}, not as real numbers."
            )
        size = np.dtype(dtype).itemsize * int(np.prod(shape, dtype=object))
        if min(shape, default=1) < 0 or values.nbytes != size:
            raise ValueError(
                f"{self.label}: {name!r} has shape {shape}, which its {values.nbytes} bytes "
                "do not fill."
            )
        stored = np.frombuffer(values, dtype).reshape(shape)
        if coded is None:
            return stored
        zero = coded.numbers(3, "<i8")
        return dequantise(stored, scale, zero if zero.size else np.zeros(1), coded.number(6))

    def head(self) -> _Head:
        """Weight, bias and the step before the fully connected layer that the output comes from,
        and what there is to know about it; ValueError without.
        """
        try:
            return self._head()
        except _DAMAGE as error:
            if isinstance(error, ValueError) and str(error).startswith(self.label):
                raise
            raise ValueError(
                f"{self.label} is not a whole TFLite file ({error}): fetch it again."
            ) from error

    def _head(self) -> _Head:
        if len(self._outputs) != 1:
            raise ValueError(
                f"{self.label} has {len(self._outputs)} outputs: name the matrix of one with "
                "--weight."
            )
        why = ["the fully connected layer before the output"]
        op = self._back(self._outputs[0], _BEHIND)
        cut = op is not None and self._fused(op) == _RELU and self._ends_in_softmax()
        kept = op is not None and (cut or self._fused(op) in _MONOTONE)
        if op is None or self._code(op) != _FULLY_CONNECTED or not kept:
            raise ValueError(
                f"{self.label} has no fully connected layer before its output: name the "
                "matrix with --weight."
            )
        x, weight, *bias = op.numbers(1).tolist()
        names = {place: name for name, place in self._places.items()}
        if weight not in names:  # half precision is widened on the way
            source = self._writer.get(weight)
            widened = source is not None and self._code(source) == _DEQUANTIZE
            weight = source.numbers(1).tolist()[0] if source is not None and widened else -1
        if weight not in names:
            raise ValueError(f"{self.label}: the matrix of the last layer is not a constant.")
        why += [RELU_BEHIND] if cut else []
        return names[weight], names.get(bias[0]) if bias else None, self._activation(x), why

    def _ends_in_softmax(self) -> bool:
        op = self._back(self._outputs[0], _BEHIND - {_SOFTMAX})
        return op is not None and self._code(op) == _SOFTMAX

    def _activation(self, x: int) -> Activation | None:
        op = self._back(x, _KEEPS_INTERVAL)
        if op is None:
            return None
        name = _ACTIVATIONS.get(self._code(op)) or _FUSED.get(self._fused(op))
        return named_activation(name) if name else None

    def _back(self, tensor: int, passing: set[int]) -> Table | None:
        """The operator that a tensor comes from, through those that may stand between."""
        for _ in range(_STEPS):
            op = self._writer.get(tensor)
            if op is None or self._code(op) not in passing:
                return op
            tensor = op.numbers(1).tolist()[0]
        return None

    def _code(self, op: Table) -> int:
        return self._codes[op.number(0, "I")]

    def _fused(self, op: Table) -> int:
        options, field = op.table(4), _FUSED_AT.get(self._code(op))
        return 0 if options is None or field is None else options.number(field, "b")

    def _values(self, tensor: Table) -> np.ndarray:
        return self._buffers[tensor.number(2, "I")].numbers(0, "|u1")


class Table:
    """One table of a FlatBuffer; fields go by their number in the schema.

    It begins with a signed offset back to its vtable, whose entries say where in the table each
    field lies, 0 for one that is absent; vectors and strings begin with their length. Every read is
    checked against the buffer by `struct` and `numpy`: damage ends in one of `_DAMAGE`.
    """

    def __init__(self, data: bytes | mmap, place: int) -> None:
        if place < 0:
            raise ValueError("an offset points outside of the file")
        self._data, self._place = data, place
        vtable = place - struct.unpack_from("<i", data, place)[0]
        if vtable < 0:
            raise ValueError("an offset points outside of the file")
        size = struct.unpack_from("<H", data, vtable)[0]
        self._fields = struct.unpack_from(f"<{max(0, size // 2 - 2)}H", data, vtable + 4)

    @classmethod
    def root(cls, data: bytes | mmap) -> Table:
        """The table that the buffer begins with."""
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def number(self, field: int, kind: str = "i") -> int:
        """A scalar, `kind` as in `struct`; 0 where it is absent."""
        place = self._at(field)
        if place is None:
            return 0
        return int(struct.unpack_from(f"<{kind}", self._data, place)[0])

    def table(self, field: int) -> Table | None:
        """A table, or None where it is absent."""
        place = self._target(field)
        return None if place is None else Table(self._data, place)

    def tables(self, field: int) -> list[Table]:
        """A vector of tables; empty where it is absent."""
        count, start = self._vector(field)
        offsets = np.frombuffer(self._data, "<u4", count, start) if count else np.zeros(0, "<u4")
        return [Table(self._data, start + 4 * k + int(offset)) for k, offset in enumerate(offsets)]

    def numbers(self, field: int, dtype: str = "<i4") -> NDArray[np.generic]:
        """A vector of scalars, not copied; empty where it is absent."""
        count, start = self._vector(field)
        return np.frombuffer(self._data, dtype, count, start) if count else np.zeros(0, dtype)

    def text(self, field: int) -> str:
        """A string; empty where it is absent."""
        return self.numbers(field, "|u1").tobytes().decode("utf-8")

    def _at(self, field: int) -> int | None:
        offset = self._fields[field] if field < len(self._fields) else 0
        return self._place + offset if offset else None

    def _target(self, field: int) -> int | None:
        place = self._at(field)
        return None if place is None else place + struct.unpack_from("<I", self._data, place)[0]

    def _vector(self, field: int) -> tuple[int, int]:
        place = self._target(field)
        if place is None:
            return 0, 0
        return struct.unpack_from("<I", self._data, place)[0], place + 4
