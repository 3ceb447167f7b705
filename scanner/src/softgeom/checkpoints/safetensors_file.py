"""Single tensors of a safetensors file, on a disk or at the other end of a network.

A file is eight bytes (little-endian length n of the header), n bytes of JSON (name to `dtype`,
`shape` and `data_offsets`, counted from the end of the header), then the numbers. The package
`safetensors` checks a local file as a whole. It reads neither ranges of a remote file nor
bfloat16 into NumPy, so numbers are read here, through `read_range(start, stop) -> bytes`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softgeom.checkpoints.tensors import plain

ReadRange = Callable[[int, int], bytes]

MAX_HEADER = 100_000_000  # bytes, the format's own limit: a hostile length allocates nothing
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4",
    "I16": "<i2", "I8": "<i1", "U8": "<u1", "BOOL": "?",
}  # fmt: skip


@dataclass(frozen=True)
class _Entry:
    """One tensor; `start` and `stop` are positions in the file, in bytes."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


class SafetensorsStore:
    """The tensors of one file of ``size`` bytes, read one at a time. ValueError if the header
    cannot be read, or a tensor does not lie in the file.
    """

    def __init__(
        self, read_range: ReadRange, size: int, label: str, provenance: dict[str, str] | None = None
    ):
        self.label = label
        self.provenance = {"format": "safetensors", **(provenance or {})}
        self._read_range = read_range
        length = int.from_bytes(read_range(0, 8), "little") if size >= 8 else 0
        if not 2 <= length <= min(MAX_HEADER, size - 8):
            raise ValueError(
                f"{label} is not a whole safetensors file: its first eight bytes are not the "
                "length of a header in it; fetch the file again."
            )
        try:
            self._entries = _entries(read_range(8, 8 + length), size)
        except Exception as error:  # the JSON of a remote file may hold anything
            raise ValueError(
                f"{label} is not a safetensors file: its header cannot be read ({plain(error)})."
            ) from error

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
        values = np.frombuffer(self._read_range(entry.start, entry.stop), _DTYPES[entry.dtype])
        if entry.dtype == "BF16":  # the upper half of a float32
            values = (values.astype(np.uint32) << 16).view(np.float32)
        return values.reshape(entry.shape)


def open_safetensors(path: Path) -> SafetensorsStore:
    """The tensors of a local file. ValueError if the file is damaged or cut short."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy"):
            pass
    except SafetensorError as error:
        reason = plain(error).removeprefix("Error while deserializing header: ")
        raise ValueError(
            f"{path} is not a whole safetensors file ({reason}): fetch it again."
        ) from error

    def read_range(start: int, stop: int) -> bytes:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(stop - start)

    return SafetensorsStore(read_range, path.stat().st_size, str(path))


def _entries(header: bytes, size: int) -> dict[str, _Entry]:
    """The tensors by name. A remote header was checked by nobody before."""
    found = {}
    for name, about in json.loads(header).items():
        if name == "__metadata__":
            continue
        shape = tuple(map(int, about["shape"]))
        start, stop = (8 + len(header) + int(offset) for offset in about["data_offsets"])
        entry = _Entry(str(about["dtype"]), shape, start, stop)
        if not 8 + len(header) <= start <= stop <= size:
            raise ValueError(f"tensor {name!r} lies outside of the file")
        if entry.dtype in _DTYPES:
            needed = math.prod(shape) * np.dtype(_DTYPES[entry.dtype]).itemsize
            if min(shape, default=0) < 0 or needed != stop - start:
                raise ValueError(f"tensor {name!r} of shape {shape} has {stop - start} bytes")
        found[plain(name, 1000)] = entry
    return found
