"""TFLite files: the last fully connected layer before the output, found by walking the graph back,
and what stands in front of it.

A file is a FlatBuffer (schema.fbs of TensorFlow Lite, version 3): tensors with shape, type and
buffer, and operators with the numbers of the tensors that they read and write. Softmax, sigmoid and
dequantisation behind the layer change no order of its outputs, nor do reshapes that leave the
classes the last axis; a ReLU ties what it cuts. Matrices are stored as (classes, features),
quantised ones as codes with a scale and a zero point, one a tensor or one a class: the real number
is scale * (code - zero point).
"""

from __future__ import annotations

import functools
import struct
from dataclasses import replace
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgeom.checkpoints.activation import RELU_BEHIND, Activation, named_activation
from softgeom.checkpoints.choosing import choose
from softgeom.checkpoints.onnx_graph import dequantise
from softgeom.checkpoints.opened import Asked, Opened, Shown, shown
from softgeom.readout import PLAIN, Readout

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
_RELU, _TANH = 1, 4  # fused to the last layer: only in front of a softmax is that the layer
_BETA = 0  # the field of a softmax's options that scales the scores
_FLOATS = {0: "<f4", 1: "<f2", 10: "<f8"}
_CODES = {2: "<i4", 3: "|u1", 7: "<i2", 9: "|i1"}
_UNSIGNED = 2**32 - 1  # masks an offset below 0, which `struct` would count from the end
_STEPS = 1000  # of a walk: a graph that is damaged may have circles
_ANSWERS = {_SOFTMAX, _LOGISTIC}
_Head = tuple[str, str | None, Activation | None, list[str], Readout]


def open_tflite(path: Path) -> Opened:
    """One file, with the layer before its output, unless another matrix is named."""
    store = TfliteStore(path)
    return Opened(store, show=functools.partial(_show, store))


def _show(store: TfliteStore, asked: Asked) -> Shown:
    used = store.head() if asked.weight is None else store.product_of(asked.weight)
    if used is None:
        return shown(store, asked)
    weight, bias, activation, why, readout = used
    bias = None if asked.without_bias else asked.bias or bias
    # the graph shows that there is none: no name is taken for one
    choice = choose(store, {}, weight, bias, without_bias=bias is None)
    return Shown(store, replace(choice, why=(*why, *choice.why)), activation, readout=readout)


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
        model = Table.root(self._data)
        # codes from 127 on stand in a field that older files lack; the older field then says 127
        self._codes = [max(code.number(0, "b"), code.number(3)) for code in model.tables(1)]
        (graph, *_), self._buffers = model.tables(2), model.tables(4)
        self._tensors, self._operators = graph.tables(0), graph.tables(3)
        self._outputs = graph.numbers(2).tolist()
        self._writer = {int(out): op for op in self._operators for out in op.numbers(2)}
        constants = [(n, t) for n, t in enumerate(self._tensors) if self._values(t).size]
        self._constants = {n: tensor.text(3) for n, tensor in constants}
        self._named = {tensor.text(3): tensor for _, tensor in constants}

    def names(self) -> list[str]:
        return list(self._named)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._named[name].numbers(0).tolist())

    def read(self, name: str) -> np.ndarray:
        tensor, shape = self._named[name], self.shape(name)
        values, kind = self._values(tensor), tensor.number(1, "b")
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

    def product_of(self, weight: str) -> _Head | None:
        """The fully connected layer of a named matrix, with the bias that it reads; the head where
        the output comes from it.
        """
        for op in self._operators:
            if self._code(op) != _FULLY_CONNECTED or self._stored(op.numbers(1)[1]) != weight:
                continue
            try:
                head = self.head()
            except ValueError:
                head = None
            if head is not None and head[0] == weight:
                return head
            return self._layer(op, ["a fully connected layer inside of the graph"], PLAIN)
        return None

    def head(self) -> _Head:
        """Weight, bias and the step before the fully connected layer that the output comes from,
        and what there is to know about it; ValueError without.
        """
        if len(self._outputs) != 1:
            raise ValueError(
                f"{self.label} has {len(self._outputs)} outputs: name the matrix of one with "
                "--weight."
            )
        behind, op = self._walk(self._outputs[0], _BEHIND)
        if op is None or self._code(op) != _FULLY_CONNECTED:
            stands = (
                "" if op is None else f" (operator {self._code(op)} of the schema stands there)"
            )
            raise ValueError(
                f"{self.label} has no fully connected layer before its output{stands}: name the "
                "matrix with --weight."
            )
        codes, fused = [self._code(step) for step in behind], self._fused(op)
        if fused not in {0, _RELU, _TANH} or (fused and _SOFTMAX not in codes):
            raise ValueError(
                f"{self.label} has no fully connected layer before its output: operator {fused} is "
                "fused to the last one, which makes features of its scores."
            )
        why = ["the fully connected layer before the output", *[RELU_BEHIND] * (fused == _RELU)]
        head = self._layer(op, why, self._readout(behind, fused))
        self._refuse_groups(head[0], behind)
        return head

    def _layer(self, op: Table, why: list[str], readout: Readout) -> _Head:
        """What a fully connected layer reads. ValueError unless matrix and bias are constants."""
        x, weight, *bias = op.numbers(1).tolist()
        names = [self._stored(place) for place in (weight, *bias[:1]) if place >= 0]
        options = op.table(4)
        if None in names or (options is not None and options.number(1, "b")):
            raise ValueError(
                f"{self.label}: the matrix or the bias of the last layer is not a constant in "
                "plain order."
            )
        return names[0] or "", names[1] if names[1:] else None, self._activation(x), why, readout

    def _stored(self, tensor: int) -> str | None:
        """The constant that a tensor is, perhaps widened from half precision or codes."""
        for _ in range(_STEPS):
            if int(tensor) in self._constants:
                return self._constants[int(tensor)]
            source = self._writer.get(int(tensor))
            if source is None or self._code(source) != _DEQUANTIZE:
                return None
            tensor = source.numbers(1)[0]
        return None

    def _refuse_groups(self, weight: str, behind: list[Table]) -> None:
        """ValueError where a reshape takes the axis of the classes apart."""
        classes = self.shape(weight)[0]
        for step in behind:
            shape = self._tensors[step.numbers(2)[0]].numbers(0).tolist()
            if self._code(step) in {_RESHAPE, _SQUEEZE} and shape and shape[-1] != classes:
                raise ValueError(
                    f"{self.label}: RESHAPE arranges the {classes} scores of the last layer as "
                    f"{tuple(shape)}: classes of two groups are not rivals. Pass W and b of one "
                    "group as an .npz file."
                )

    def _readout(self, behind: list[Table], fused: int) -> Readout:
        """What stands between the layer's scores and the output."""
        answers = [step for step in behind if self._code(step) in _ANSWERS]
        if not answers:
            return PLAIN
        if self._code(answers[0]) == _LOGISTIC and (len(answers) > 1 or fused):
            raise ValueError(
                f"{self.label} ends with LOGISTIC behind another map of its scores, where a score "
                "above 0 does not switch its label on: pass W and b as an .npz file."
            )
        if len(answers) > 1 or fused == _RELU:
            told = "the graph puts another increasing map than a softmax behind the scores"
            return Readout(probability="none", caveats=(told,))
        if self._code(answers[0]) == _LOGISTIC:
            return Readout("threshold", probability="sigmoid")
        options = answers[0].table(4)
        scale = 1.0 if options is None else float(options.number(_BETA, "f"))
        scale = scale if scale > 0 else 1.0  # 0 is how the format leaves it out
        # tanh(z), then beta times it
        return Readout(scale=scale, soft_cap=scale if fused == _TANH else None)

    def _activation(self, x: int) -> Activation | None:
        _, op = self._walk(x, _KEEPS_INTERVAL)
        if op is None:
            return None
        name = _ACTIVATIONS.get(self._code(op)) or _FUSED.get(self._fused(op))
        return named_activation(name) if name else None

    def _walk(self, tensor: int, passing: set[int]) -> tuple[list[Table], Table | None]:
        """The operator that a tensor comes from, and those behind it that may stand between."""
        passed: list[Table] = []
        while len(passed) < _STEPS:
            op = self._writer.get(tensor)
            if op is None or self._code(op) not in passing:
                return passed, op
            passed.append(op)
            tensor = op.numbers(1).tolist()[0]
        return passed, None

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
    field lies, 0 for one that is absent; vectors and strings begin with their length. `struct` and
    `numpy` check every read against the buffer.
    """

    def __init__(self, data: bytes | mmap, place: int) -> None:
        self._data, self._place = data, place & _UNSIGNED
        vtable = (place - struct.unpack_from("<i", data, self._place)[0]) & _UNSIGNED
        size = struct.unpack_from("<H", data, vtable)[0]
        self._fields = struct.unpack_from(f"<{max(0, size // 2 - 2)}H", data, vtable + 4)

    @classmethod
    def root(cls, data: bytes | mmap) -> Table:
        """The table that the buffer begins with."""
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def number(self, field: int, kind: str = "i") -> Any:
        """A scalar, `kind` as in `struct`; 0 where it is absent."""
        place = self._at(field)
        if place is None:
            return 0
        return struct.unpack_from(f"<{kind}", self._data, place)[0]

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
