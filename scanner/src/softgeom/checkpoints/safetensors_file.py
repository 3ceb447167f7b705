"""Reading single tensors of a safetensors file, on a disk or at the other end of a network.

A file is eight bytes (little-endian length n of the header), n bytes of JSON (name to `dtype`,
`shape` and `data_offsets`, counted from the end of the header), then the numbers. Everything here
works on a function `read_range(start, stop) -> bytes`, so a local file and an HTTP range request
share one reader. bfloat16, which NumPy does not know, is the upper half of a float32: sixteen zero
bits behind it give the same number exactly.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.checkpoints.tensors import plain

ReadRange = Callable[[int, int], bytes]

# bytes; the format's own limit, so that a hostile length allocates nothing
MAX_HEADER = 100_000_000
_DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(code)
    for name, code in zip(
        "F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL".split(),
        "<f8 <f4 <f2 <u2 <i8 <i4 <i2 i1 u1 ?".split(),
        strict=True,
    )
}


@dataclass(frozen=True)
class Entry:
    """Where one tensor stands: `start` and `stop` are absolute positions in the file, in bytes."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


class SafetensorsStore:
    """The tensors of one safetensors file, read one at a time: `read_range(start, stop)` gives
    these bytes of its ``size``. ValueError if the header is none, or the file ends before its last
    tensor (the first one that is incomplete is named, with the number of bytes missing).
    """

    def __init__(
        self, read_range: ReadRange, size: int, label: str, provenance: dict[str, str] | None = None
    ):
        self.label = label
        self.provenance = {"format": "safetensors", **(provenance or {})}
        self._read_range = read_range
        self._entries = _parse_header(read_range, size, label)

    def names(self) -> list[str]:
        return list(self._entries)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._entries[name].shape

    def read(self, name: str) -> np.ndarray:
        entry = self._entries[name]
        if entry.dtype not in _DTYPES:
            raise ValueError(
                f"{self.label}: tensor {name!r} is stored as {entry.dtype}, which has no exact "
                "NumPy form here; use the model's float32, float16 or bfloat16 weights."
            )
        content = self._read_range(entry.start, entry.stop)
        values = np.frombuffer(content, dtype=_DTYPES[entry.dtype])
        if entry.dtype == "BF16":
            values = (values.astype(np.uint32) << 16).view(np.float32)
        return values.reshape(entry.shape)


def open_safetensors(path: Path) -> SafetensorsStore:
    """The tensors of a local file; see `SafetensorsStore` for what is checked and raised."""

    def read_range(start: int, stop: int) -> bytes:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(stop - start)

    return SafetensorsStore(read_range, path.stat().st_size, str(path))


def _parse_header(read_range: ReadRange, size: int, label: str) -> dict[str, Entry]:
    length = int.from_bytes(read_range(0, 8), "little") if size >= 8 else -1
    if not 2 <= length <= MAX_HEADER:
        raise ValueError(
            f"{label} is not a safetensors file: its first eight bytes are not a plausible "
            "header length."
        )
    if size < 8 + length:
        raise ValueError(
            f"{label} is truncated inside its header: {8 + length - size} bytes of it are "
            "missing; fetch the file again."
        )
    try:
        text = read_range(8, 8 + length).decode("utf-8")
        header = json.loads(text, object_pairs_hook=_without_duplicates)
        "".join(header).encode("utf-8")  # a half of a surrogate pair is no character
        entries = {
            plain(name, 1000): Entry(
                str(about["dtype"]),
                tuple(_whole(n) for n in about["shape"]),
                8 + length + _whole(about["data_offsets"][0]),
                8 + length + _whole(about["data_offsets"][1]),
            )
            for name, about in header.items()
            if name != "__metadata__"
        }
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{label} is not a safetensors file: its header cannot be read ({plain(error)})."
        ) from error
    position = 8 + length
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].stop)):
        _check_entry(name, entry, size, data_start=8 + length, label=label)
        if entry.start != position:
            problem = "overlaps" if entry.start < position else "leaves a hole behind"
            raise ValueError(
                f"{label} has an impossible header: tensor {name!r} {problem} the one before it."
            )
        position = entry.stop
    if position != size:
        raise ValueError(
            f"{label} has {size - position} bytes behind its last tensor, which the format "
            "does not allow."
        )
    return entries


def _whole(number: Any) -> int:
    if type(number) is not int:
        raise ValueError(f"{number!r} is not a whole number")
    return number


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate name")
    return found


def _check_entry(name: str, entry: Entry, size: int, data_start: int, label: str) -> None:
    impossible = f"{label} has an impossible header: tensor {name!r}"
    kind, length = _DTYPES.get(entry.dtype), entry.stop - entry.start
    if not data_start <= entry.start <= entry.stop or any(n < 0 for n in entry.shape):
        raise ValueError(f"{impossible} lies outside the data of the file.")
    if kind is not None and math.prod(entry.shape) * kind.itemsize != length:
        what = f"of shape {entry.shape} and type {entry.dtype}"
        raise ValueError(f"{impossible} {what} cannot fill {length} bytes.")
    if entry.stop > size:
        raise ValueError(
            f"{label} is truncated: tensor {name!r} {entry.shape} ends behind the file "
            f"({entry.stop - size} bytes missing); fetch the file again."
        )
