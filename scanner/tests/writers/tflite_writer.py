"""TFLite files written with Google's own FlatBuffers, for the tests and the fuzzers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np

RELU, CONV_OPTIONS, DENSE_OPTIONS, NO_OPTIONS = 1, 1, 8, 0
FULLY_CONNECTED, CONV, MEAN, LOGISTIC, DEQUANTIZE, SOFTMAX, QUANTIZE = 9, 3, 40, 14, 6, 25, 114


class Writer:
    """The few tables of a TFLite file."""

    def __init__(self) -> None:
        self.b = flatbuffers.Builder(1024)

    def table(self, fields: dict[int, tuple[str, int]], count: int) -> int:
        self.b.StartObject(count)
        for field, (kind, value) in fields.items():
            {
                "offset": self.b.PrependUOffsetTRelativeSlot,
                "byte": self.b.PrependInt8Slot,
                "int": self.b.PrependInt32Slot,
            }[kind](field, value, -1 if kind != "offset" else 0)
        return self.b.EndObject()

    def vector(self, values: Any, kind: str) -> int:
        size = {"offset": 4, "int": 4, "byte": 1, "float": 4, "long": 8}[kind]
        self.b.StartVector(size, len(values), size)
        add = {
            "offset": self.b.PrependUOffsetTRelative,
            "int": self.b.PrependInt32,
            "byte": self.b.PrependUint8,
            "float": self.b.PrependFloat32,
            "long": self.b.PrependInt64,
        }[kind]
        for value in reversed(values):
            add(float(value) if kind == "float" else int(value))
        return self.b.EndVector()


def write(path: Path, tensors: list[Any], operators: list[Any], outputs: list[int]) -> str:
    """tensors: (name, shape, type, bytes), of codes also (scales, zeros); operators: (code, inputs,
    outputs, options, fused).
    """
    w = Writer()
    buffers = [
        w.table({0: ("offset", w.b.CreateByteVector(data))} if data else {}, 3)
        for _, _, _, data, *_ in tensors
    ]
    made = []
    for n, (name, shape, kind, _, *coded) in enumerate(tensors):
        scaled: dict[int, tuple[str, int]] = {}
        if coded:
            vectors = {2: w.vector(coded[0], "float"), 3: w.vector(coded[1], "long")}
            scaled = {4: ("offset", w.table({k: ("offset", v) for k, v in vectors.items()}, 7))}
        fields = scaled | {
            0: ("offset", w.vector(shape, "int")),
            1: ("byte", kind),
            2: ("int", n),
            3: ("offset", w.b.CreateString(name)),
        }
        made.append(w.table(fields, 8))
    codes = sorted({code for code, *_ in operators})
    ops = []
    for code, inputs, outs, options, field, fused in operators:
        fields = {
            0: ("int", codes.index(code)),
            1: ("offset", w.vector(inputs, "int")),
            2: ("offset", w.vector(outs, "int")),
        }
        if options:
            fields |= {3: ("byte", options), 4: ("offset", w.table({field: ("byte", fused)}, 5))}
        ops.append(w.table(fields, 9))
    graph = w.table(
        {
            0: ("offset", w.vector(made, "offset")),
            2: ("offset", w.vector(outputs, "int")),
            3: ("offset", w.vector(ops, "offset")),
        },
        5,
    )
    listed = [w.table({0: ("byte", code), 3: ("int", code)}, 4) for code in codes]
    fields = {
        1: w.vector(listed, "offset"),
        2: w.vector([graph], "offset"),
        4: w.vector(buffers, "offset"),
    }
    w.b.Finish(
        w.table({0: ("int", 3), **{k: ("offset", v) for k, v in fields.items()}}, 8),
        file_identifier=b"TFL3",
    )
    path.write_bytes(w.b.Output())
    return str(path)


def classifier(
    path: Path,
    W: np.ndarray,
    b: np.ndarray,
    *,
    before: tuple[int, int, int, int] = (CONV, CONV_OPTIONS, 3, RELU),
    fused: int = 0,
    half: bool = False,
    last: int = LOGISTIC,
    coded: tuple[Any, Any] | None = None,
) -> str:
    """A step, a mean over positions, the layer, a sigmoid or another operator; W of int8 with its
    scales and zeros.
    """
    code, options, field, kind = before
    tensors = [
        ("pixels", (1, 8, 8, 3), 0, b""),
        ("maps", (1, 4, 4, 3), 0, b""),
        ("pooled", (1, 3), 0, b""),
        ("head/W", W.shape, 9, W.tobytes(), *coded)
        if coded
        else ("head/W", W.shape, 1 if half else 0, (W.astype("<f2") if half else W).tobytes()),
        ("head/b", b.shape, 0, b.tobytes()),
        ("logits", (1, 5), 0, b""),
        ("answer", (1, 5), 0, b""),
        ("widened", W.shape, 0, b""),
    ]
    weight = 7 if half else 3
    operators = [
        (code, [0], [1], options, field, kind),
        (MEAN, [1, 1], [2], NO_OPTIONS, 0, 0),
        *([(DEQUANTIZE, [3], [7], NO_OPTIONS, 0, 0)] if half else []),
        (FULLY_CONNECTED, [2, weight, 4], [5], DENSE_OPTIONS, 0, fused),
        (last, [5], [6], NO_OPTIONS, 0, 0),
    ]
    return write(path, tensors, operators, [6])
