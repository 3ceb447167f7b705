"""Small files of recognisers, written byte by byte as their programs read them: a Tesseract
`.traineddata`, a Kaldi `final.mdl`, models of fastText, Paddle and CTranslate2.
"""

from __future__ import annotations

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


def traineddata(
    W: np.ndarray, b: np.ndarray, spelled: Sequence[Sequence[int]] = (), *, inside: bool = False
) -> bytes:
    """A network of one LSTM and a softmax; rows as int8 where `W` (C, d) is. ``spelled``: the codes
    of each of LETTERS. ``inside``: characters stand with the network, as in the first files.
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
    parts = {17: network + (unicharset + behind + recoder if inside else behind)}
    if not inside:
        parts |= {21: unicharset, 22: recoder}
    offsets, at = [-1] * 24, 4 + 8 * 24
    for n, part in parts.items():
        offsets[n], at = at, at + len(part)
    return struct.pack("<i24q", 24, *offsets) + b"".join(parts.values())


def kaldi(W: np.ndarray, b: np.ndarray) -> bytes:
    """A transition model that is none, and the component before the output."""
    matrix, vector = np.asarray(W, "<f4"), np.asarray(b, "<f4")
    return (
        b"\0B<TransitionModel> </TransitionModel> <Nnet3> <NumComponents> \4\1\0\0\0"
        b"<ComponentName> output.affine <NaturalGradientAffineComponent> "
        b"<LinearParams> FM " + struct.pack("<bibi", 4, len(W), 4, W.shape[1]) + matrix.tobytes()
        + b"<BiasParams> FV " + struct.pack("<bi", 4, len(b)) + vector.tobytes()
        + b"</NaturalGradientAffineComponent> </Nnet3> "
    )  # fmt: skip


def fasttext(
    W: np.ndarray, labels: Sequence[str], *, loss: int = 3, quantised: bool = False
) -> bytes:
    """A classifier with one word; ``quantised``: the output as codes of two parts and a norm, the
    rows then being integers from 0 to 255 times 1/8 and the norm 2.
    """
    options = struct.pack(
        "<14id", 793712314, 12, W.shape[1], 5, 5, 1, 5, 1, loss, 3, 9, 2, 4, 100, 0
    )
    entries = [("</s>", 0), *((f"__label__{label}", 1) for label in labels)]
    words = b"".join(t.encode() + b"\0" + struct.pack("<qb", 7, kind) for t, kind in entries)
    dictionary = struct.pack("<iiiqq", len(entries), 1, len(labels), 7, -1) + words

    def centroids(width: int, first: int) -> bytes:
        parts = [n for n in (first, width - first) if n]
        sizes = struct.pack("<4i", width, len(parts), parts[0], parts[-1])
        values = [np.repeat(np.arange(256, dtype="<f4")[:, None], n, axis=1) / 8 for n in parts]
        return sizes + b"".join(part.tobytes() for part in values)

    def matrix(values: np.ndarray) -> bytes:
        shape = struct.pack("<qq", *values.shape)
        if not quantised:
            return b"\0" + shape + values.astype("<f4").tobytes()
        codes = (values[:, [0, -1]] * 4).astype("u1")
        norms = np.full(len(values), 16, "u1")
        head = b"\1\1" + shape + struct.pack("<i", codes.size) + codes.tobytes()
        return head + centroids(values.shape[1], 2) + norms.tobytes() + centroids(1, 1)

    return options + dictionary + matrix(W[:2]) + matrix(W)


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


def ctranslate2(
    variables: dict[str, np.ndarray], aliases: Sequence[tuple[str, str]] = (), version: int = 6
) -> bytes:
    """A `model.bin`, as the converter writes it."""

    def text(name: str) -> bytes:
        return struct.pack("<H", len(name) + 1) + name.encode() + b"\0"

    types = ["float32", "int8", "int16", "int32", "float16"]
    out = struct.pack("<I", version) + text("TransformerSpec")
    out += struct.pack("<II", 7, len(variables))
    for name, values in variables.items():
        out += (
            text(name)
            + struct.pack("<B", values.ndim)
            + struct.pack(f"<{values.ndim}I", *values.shape)
        )
        out += struct.pack("<BI", types.index(values.dtype.name), values.nbytes) + values.tobytes()
    return out + struct.pack("<I", len(aliases)) + b"".join(text(a) + text(b) for a, b in aliases)
