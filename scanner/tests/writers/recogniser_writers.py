"""Small files of recognisers, written byte by byte as their programs read them: a Tesseract
`.traineddata` and a model of Paddle.
"""

import json
import struct
from collections.abc import Sequence

import numpy as np

_LSTM, _SERIES, _SOFTMAX = 14, 9, 22  # types of layers
_INT8, _DOUBLE = 1, 128
LETTERS = ["NULL", "Joined", "|Broken|0|1", "a", "b", "c"]


def _text(text: str) -> bytes:
    return struct.pack("<I", len(text.encode())) + text.encode()


def _node(kind: int, name: str, sizes: tuple[int, int], body: bytes) -> bytes:
    return struct.pack("<bbbiiii", kind, 0, 0, 0, *sizes, 0) + _text(name) + body


def _floats(matrix: np.ndarray) -> bytes:
    rows = np.asarray(matrix, "<f8")
    return struct.pack("<BII", _DOUBLE, *rows.shape) + bytes(8) + rows.tobytes()


def _codes(codes: np.ndarray, scales: np.ndarray) -> bytes:
    grid = struct.pack("<BII", _DOUBLE | _INT8, *codes.shape) + bytes(1) + codes.tobytes()
    return grid + struct.pack("<I", len(scales)) + np.asarray(scales, "<f8").tobytes()


def traineddata(W: np.ndarray, b: np.ndarray, spelled: Sequence[Sequence[int]] = ()) -> bytes:
    """A network of one LSTM and a softmax; rows as int8 where `W` (C, d) is. ``spelled``: the codes
    of each of LETTERS.
    """
    C, d = W.shape
    gates = b"".join(_floats(np.ones((d, 2 + d + 1))) for _ in range(4))
    lstm = _node(_LSTM, "Lfx", (2, d), struct.pack("<i", 2 + d) + gates)
    matrix = np.column_stack([W, b])
    rows = _codes(matrix, np.full(C, 0.25)) if matrix.dtype == np.int8 else _floats(matrix)
    softmax = _node(_SOFTMAX, "Output", (d, C), rows)
    network = _node(_SERIES, "Series", (2, C), struct.pack("<I", 2) + lstm + softmax)
    lines = "".join(f"{word} 0 Common 0\n" for word in LETTERS)
    unicharset = f"{len(LETTERS)}\n{lines}".encode()
    coded = [struct.pack(f"<bI{len(row)}i", 0, len(row), *row) for row in spelled]
    recoder = struct.pack("<I", len(coded)) + b"".join(coded)
    behind = _text("[1,36,0,1 Lfx O1c]") + struct.pack("<4i3f", 64, 9, 9, C - 1, 0.9, 0.1, 0.5)
    parts = {17: network + behind, 21: unicharset, 22: recoder}
    offsets, at = [-1] * 24, 4 + 8 * 24
    for n, part in parts.items():
        offsets[n], at = at, at + len(part)
    return struct.pack("<i24q", 24, *offsets) + b"".join(parts.values())


def paddle(tensors: dict[str, np.ndarray], steps: Sequence[tuple[str, Sequence[int], int]] = ()):
    """Parameters, the old program and the new one: ``steps`` are operation, values read, value
    made; parameters are the values 1, 2, ... in the order of ``tensors``.
    """

    def field(number: int, content: bytes | int) -> bytes:
        if isinstance(content, int):
            low = bytes([content & 127 | 128, content >> 7]) if content > 127 else bytes([content])
            return bytes([number << 3]) + low
        return bytes([number << 3 | 2, len(content)]) + content

    kinds = {"float32": 5, "float64": 6, "uint16": 22}
    numbers = b""
    for _, values in sorted(tensors.items()):
        about = field(1, kinds[values.dtype.name]) + b"".join(field(2, n) for n in values.shape)
        numbers += struct.pack("<IQIi", 0, 0, 0, len(about)) + about + values.tobytes()
    variables = [field(1, n.encode()) + field(2, field(1, 7)) + field(3, 1) for n in tensors]
    variables.append(field(1, b"feed") + field(2, field(1, 9)) + field(3, 1))
    variables.append(field(1, b"not kept") + field(2, field(1, 7)))
    old = b"".join(field(1, field(3, variable)) for variable in variables)
    ops = [{"#": "p", "A": [0, 1, 1, name], "O": {"%": n}} for n, name in enumerate(tensors, 1)]
    ops += [
        {"#": f"1.{k}", "I": [{"%": r} for r in reads], "O": [{"%": m}]} for k, reads, m in steps
    ]
    program = {"regions": [{"blocks": [{"ops": ops}]}]}
    return numbers, old, json.dumps({"base_code": {"magic": "pir"}, "program": program}).encode()
