"""TFLite files written with Google's own FlatBuffers."""

from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np

RELU, TANH, CONV_OPTIONS, DENSE_OPTIONS, NO_OPTIONS = 1, 4, 1, 8, 0
FULLY_CONNECTED, CONV, MEAN, RESHAPE, LOGISTIC = 9, 3, 40, 22, 14
DEQUANTIZE, SOFTMAX, QUANTIZE = 6, 25, 114
_TYPES = {"<f4": 0, "<f2": 1, "|i1": 9}


class Writer(flatbuffers.Builder):  # type: ignore[misc]
    """Tables and vectors, as the numbers of their places."""

    def table(self, count: int, **fields: tuple[str, int]) -> int:
        """Fields by their number in the schema (`_3=...`): kind and value."""
        self.StartObject(count)
        for field, (kind, value) in fields.items():
            add = getattr(self, f"Prepend{kind}Slot")
            add(int(field[1:]), value, 0 if kind == "UOffsetTRelative" else -1)
        return self.EndObject()

    def tables(self, made: list[int]) -> tuple[str, int]:
        self.StartVector(4, len(made), 4)
        for place in reversed(made):
            self.PrependUOffsetTRelative(place)
        return "UOffsetTRelative", self.EndVector()

    def numbers(self, values: Any, dtype: str = "<i4") -> tuple[str, int]:
        vector = self.CreateNumpyVector(np.asarray(values, dtype).reshape(-1))
        return "UOffsetTRelative", vector

    def text(self, text: str) -> tuple[str, int]:
        return "UOffsetTRelative", self.CreateString(text)


def write(path: Path, tensors: list[Any], operators: list[Any], outputs: list[int]) -> Path:
    """tensors: (name, shape or numbers, scales and zeros of codes); operators: (code, inputs,
    outputs, options, field of what is fused, what is fused).
    """
    w, made, buffers, ops = Writer(1024), [], [], []
    for n, (name, held, *coded) in enumerate(tensors):
        constant = isinstance(held, np.ndarray)
        content = {"_0": w.numbers(held.view("|u1"), "|u1")} if constant else {}
        buffers.append(w.table(3, **content))
        fields = {"_0": w.numbers(held.shape if constant else held), "_3": w.text(name)}
        if coded:
            scales, zeros = w.numbers(coded[0], "<f4"), w.numbers(coded[1], "<i8")
            fields["_4"] = "UOffsetTRelative", w.table(7, _2=scales, _3=zeros)
        kind = _TYPES[held.dtype.str] if constant else 0
        made.append(w.table(8, _1=("Int8", kind), _2=("Int32", n), **fields))
    codes = sorted({code for code, *_ in operators})
    for code, inputs, outs, options, field, fused in operators:
        fields = {"_1": w.numbers(inputs), "_2": w.numbers(outs)}
        if options:
            said = w.table(5, **{f"_{field}": ("Int8", fused)})
            fields |= {"_3": ("Int8", options), "_4": ("UOffsetTRelative", said)}
        ops.append(w.table(9, _0=("Int32", codes.index(code)), **fields))
    parts = {"_0": w.tables(made), "_2": w.numbers(outputs), "_3": w.tables(ops)}
    graph = w.tables([w.table(5, **parts)])
    listed = w.tables([w.table(4, _0=("Int8", code), _3=("Int32", code)) for code in codes])
    model = w.table(8, _0=("Int32", 3), _1=listed, _2=graph, _4=w.tables(buffers))
    w.Finish(model, file_identifier=b"TFL3")
    path.write_bytes(w.Output())
    return path


def classifier(
    path: Path,
    W: np.ndarray,
    b: np.ndarray,
    *,
    before: tuple[int, int, int, int] = (CONV, CONV_OPTIONS, 3, RELU),
    fused: int = 0,
    last: int = LOGISTIC,
    coded: tuple[Any, ...] = (),
    arranged: tuple[int, ...] = (1, 5),
    outputs: tuple[int, ...] = (7,),
) -> Path:
    """A step, a mean over positions, the layer, a reshape, and a sigmoid or another operator. W and
    b of half precision are widened first; W of int8 has scales and zeros.
    """
    half = W.dtype == np.float16
    tensors = [
        ("pixels", (1, 8, 8, 3)), ("maps", (1, 4, 4, 3)), ("pooled", (1, 3)),
        ("head/W", W, *coded), ("head/b", b), ("logits", (1, 5)), ("arranged", arranged),
        ("answer", arranged), ("wide W", W.shape), ("wide b", b.shape),
    ]  # fmt: skip
    widened = [(DEQUANTIZE, [n], [n + 5], NO_OPTIONS, 0, 0) for n in (3, 4)]
    code, options, field, kind = before
    operators = [
        (code, [0], [1], options, field, kind),
        (MEAN, [1, 1], [2], NO_OPTIONS, 0, 0),
        *(widened if half else []),
        (FULLY_CONNECTED, [2, 8, 9] if half else [2, 3, 4], [5], DENSE_OPTIONS, 0, fused),
        (RESHAPE, [5], [6], NO_OPTIONS, 0, 0),
        (last, [6], [7], NO_OPTIONS, 0, 0),
    ]
    return write(path, tensors, operators, list(outputs))
