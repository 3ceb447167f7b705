"""The container of all proofs: named arrays and a few texts in the layout of safetensors.

8 bytes with the length of the header, little-endian; the header, JSON; then the numbers of the
arrays, one after the other, to the last byte of the file. There is exactly one way to write a
given content (sorted keys, no blanks, largest items first, then by name), and `read` writes the
header again to compare: nothing can be there twice, overlap, leave a hole or stand behind the end.
Nothing in a file is executed. Any program that reads safetensors reads it, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.arrays import Array
from softgeom.writing import whole

DTYPES = {"F64": "<f8", "I64": "<i8", "F32": "<f4", "F16": "<f2", "I8": "|i1", "U8": "|u1"}
_CODES = {dtype: code for code, dtype in DTYPES.items()}
LONGEST_HEADER = 2**20  # bytes


def write(path: str | Path, texts: Mapping[str, str], arrays: Mapping[str, Array]) -> None:
    """Write texts and little-endian arrays, all or nothing."""
    arrays = {name: np.asarray(a, a.dtype.newbyteorder("<")) for name, a in arrays.items()}
    shapes = {name: (_CODES[array.dtype.str], array.shape) for name, array in arrays.items()}
    with whole(path) as fresh, fresh.open("wb") as file:
        file.write(_header(texts, shapes))
        for name in _in_order(shapes):
            np.ascontiguousarray(arrays[name]).tofile(file)


def read(path: str | Path) -> tuple[dict[str, str], dict[str, Array]]:
    """The texts, and the arrays as views of the file that are read when they are used; ValueError
    if the file is anything else than what `write` makes of these texts and arrays.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no such file: {path}")
    size = path.stat().st_size
    with path.open("rb") as file:
        front = file.read(8)
        length = int.from_bytes(front, "little")
        if len(front) < 8 or length > min(LONGEST_HEADER, size - 8):
            raise ValueError("it is cut short, or not in the safetensors format")
        header = file.read(length)
    try:
        texts, shapes = _parsed(header)
        same = _header(texts, shapes) == front + header
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        raise ValueError("its header is not a list of arrays") from None
    places = _places(shapes)
    total = max((end for _, end in places.values()), default=0)
    if not same or size != 8 + length + total:
        raise ValueError("its header and its size are not as they must be for its arrays")
    content = np.memmap(path, np.uint8, "r", offset=8 + length) if total else np.zeros(0, np.uint8)
    arrays = {}
    for name, (start, end) in places.items():
        code, shape = shapes[name]
        arrays[name] = np.asarray(content[start:end]).view(DTYPES[code]).reshape(shape)
    return texts, arrays


Shapes = Mapping[str, tuple[str, tuple[int, ...]]]


def _parsed(header: bytes) -> tuple[dict[str, str], Shapes]:
    content = json.loads(header)
    texts = content.pop("__metadata__")
    if not all(type(text) is str for text in texts.values()):
        raise ValueError
    shapes = {name: (entry["dtype"], tuple(entry["shape"])) for name, entry in content.items()}
    if any(type(n) is not int or not 0 <= n < 2**48 for _, shape in shapes.values() for n in shape):
        raise ValueError
    return texts, shapes


def _in_order(shapes: Shapes) -> list[str]:
    """Large items first, so that every array starts at a multiple of its item's size."""
    return sorted(shapes, key=lambda name: (-np.dtype(DTYPES[shapes[name][0]]).itemsize, name))


def _places(shapes: Shapes) -> dict[str, tuple[int, int]]:
    """Where the numbers of each array start and end, counted from the first byte of all."""
    places, end = {}, 0
    for name in _in_order(shapes):
        code, shape = shapes[name]
        start = end
        end += int(np.prod(shape, dtype=object)) * np.dtype(DTYPES[code]).itemsize
        places[name] = start, end
    return places


def _header(texts: Mapping[str, str], shapes: Shapes) -> bytes:
    """Length and JSON, filled up with blanks to a multiple of eight bytes."""
    places = _places(shapes)
    content: dict[str, Any] = {"__metadata__": dict(texts)}
    for name, (code, shape) in shapes.items():
        content[name] = {"dtype": code, "shape": list(shape), "data_offsets": list(places[name])}
    text = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
