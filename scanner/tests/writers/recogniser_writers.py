"""A small model of Paddle, written byte by byte as its program reads it."""

import json
import struct
from collections.abc import Sequence

import numpy as np


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
