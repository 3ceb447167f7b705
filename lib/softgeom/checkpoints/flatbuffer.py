"""FlatBuffers, as much of them as a TFLite file needs: tables with optional fields, vectors,
strings.

A table begins with a signed offset back to its vtable, whose entries say where in the table each
field lies, 0 for one that is absent; vectors and strings begin with their length. Every read is
checked against the buffer by `struct` and `numpy`, so that a damaged file ends in one of `DAMAGE`.
"""

from __future__ import annotations

import struct
from mmap import mmap

import numpy as np
from numpy.typing import NDArray

DAMAGE = (struct.error, ValueError, IndexError, UnicodeDecodeError)


class Table:
    """One table of a buffer; fields go by their number in the schema."""

    def __init__(self, data: bytes | mmap, place: int) -> None:
        if place < 0:
            raise ValueError("an offset points outside of the file")
        self._data, self._place = data, place
        vtable = place - struct.unpack_from("<i", data, place)[0]
        if vtable < 0:
            raise ValueError("an offset points outside of the file")
        size = struct.unpack_from("<H", data, vtable)[0]
        self._fields = struct.unpack_from(f"<{max(0, size // 2 - 2)}H", data, vtable + 4)

    @classmethod
    def root(cls, data: bytes | mmap) -> Table:
        """The table that the buffer begins with."""
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def number(self, field: int, kind: str = "i", default: int = 0) -> int:
        """A scalar, `kind` as in `struct`."""
        place = self._at(field)
        if place is None:
            return default
        return int(struct.unpack_from(f"<{kind}", self._data, place)[0])

    def table(self, field: int) -> Table | None:
        """A table, or None where it is absent."""
        place = self._target(field)
        return None if place is None else Table(self._data, place)

    def tables(self, field: int) -> list[Table]:
        """A vector of tables; empty where it is absent."""
        count, start = self._vector(field)
        offsets = np.frombuffer(self._data, "<u4", count, start) if count else np.zeros(0, "<u4")
        return [Table(self._data, start + 4 * k + int(offset)) for k, offset in enumerate(offsets)]

    def numbers(self, field: int, dtype: str = "<i4") -> NDArray[np.generic]:
        """A vector of scalars, not copied; empty where it is absent."""
        count, start = self._vector(field)
        return np.frombuffer(self._data, dtype, count, start) if count else np.zeros(0, dtype)

    def text(self, field: int) -> str:
        """A string; empty where it is absent."""
        return self.numbers(field, "|u1").tobytes().decode("utf-8")

    def _at(self, field: int) -> int | None:
        offset = self._fields[field] if field < len(self._fields) else 0
        return self._place + offset if offset else None

    def _target(self, field: int) -> int | None:
        place = self._at(field)
        return None if place is None else place + struct.unpack_from("<I", self._data, place)[0]

    def _vector(self, field: int) -> tuple[int, int]:
        place = self._target(field)
        if place is None:
            return 0, 0
        return struct.unpack_from("<I", self._data, place)[0], place + 4
