"""Small files of recognisers, written byte by byte as their programs read them: a Tesseract
`.traineddata`, a Kaldi `final.mdl`.
"""

from __future__ import annotations

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
