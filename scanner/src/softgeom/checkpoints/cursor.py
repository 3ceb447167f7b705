"""Bytes of a file, read from the front; each length is first compared with what is left."""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np


class CutShortError(ValueError):
    """More is declared than the file holds."""


class Cursor:
    """A place in little-endian bytes, of which the part from ``start`` to ``end`` may be read;
    nothing is copied but what is asked for.
    """

    def __init__(self, data: bytes | mmap.mmap, start: int = 0, end: int | None = None) -> None:
        self._data, self.at = data, start
        self.end = len(data) if end is None else end
        if not 0 <= self.at <= self.end <= len(data):
            raise CutShortError("a part lies outside of the file")

    @classmethod
    def of(cls, path: Path) -> Cursor:
        """The bytes of a file, mapped."""
        with path.open("rb") as file:
            return cls(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def part(self, start: int, end: int) -> Cursor:
        """Other bytes of the same file."""
        return Cursor(self._data, start, end)

    @property
    def left(self) -> int:
        """Bytes to the end."""
        return self.end - self.at

    def take(self, size: int) -> bytes:
        """The next bytes."""
        self.skip(size)
        return self._data[self.at - size : self.at]

    def skip(self, size: int) -> None:
        """Go on behind the next bytes without reading them."""
        if not 0 <= size <= self.left:
            raise CutShortError(f"{size} bytes are declared where {self.left} are left")
        self.at += size

    def number(self, kind: str) -> int:
        """One integer, by its letter in `struct`."""
        return int(struct.unpack(f"<{kind}", self.take(struct.calcsize(kind)))[0])

    def array(self, dtype: str, *shape: int) -> np.ndarray:
        """Numbers, row by row."""
        if min(shape, default=1) < 0:
            raise CutShortError(f"a shape is {shape}")
        kind = np.dtype(dtype)
        return np.frombuffer(self.take(math.prod(shape) * kind.itemsize), kind).reshape(shape)


@contextmanager
def reading(path: Path, what: str) -> Iterator[Cursor]:
    """The bytes of a file that should be ``what``; ValueError where they are not all there."""
    try:
        yield Cursor.of(path)
    except (CutShortError, OverflowError, RecursionError, MemoryError) as error:
        raise ValueError(f"{path} is not a whole {what} ({error}).") from None
