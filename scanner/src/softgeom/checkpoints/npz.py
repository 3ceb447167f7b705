"""NumPy's `.npz`, read member by member: our own, Nematus' and Marian's names.

`W` or `weight` (C, d) with `b` or `bias` (C,) is the plain form. Nematus ties the output to the
decoder's embedding `Wemb_dec` (C, d) with `ff_logit_b` (C,), or unties it as `ff_logit_W` (d, C);
Marian has `Wemb` (all tied), `decoder_Wemb` or `decoder_ff_logit_out_W` (d, C) with
`decoder_ff_logit_out_b` (1, C).

Shapes come from the members' headers; only the arrays that the layer needs are read. What a header
declares is compared with the length of its member, and that with its compressed length, before
anything is allocated.
"""

from __future__ import annotations

import functools
import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from softgeom.checkpoints.choosing import Choice
from softgeom.checkpoints.labels import fit_labels
from softgeom.checkpoints.matrices import require
from softgeom.checkpoints.opened import Asked, Opened, Shown, shown
from softgeom.checkpoints.tensors import plain

# (weight, whether it is stored as (d, C), bias): the untied output first, since an embedding stands
# beside it unused.
CONVENTIONS: tuple[tuple[str, bool, str], ...] = (
    ("W", False, "b"),
    ("weight", False, "bias"),
    ("decoder_ff_logit_out_Wt", False, "decoder_ff_logit_out_b"),
    ("decoder_ff_logit_out_W", True, "decoder_ff_logit_out_b"),
    ("decoder_Wemb", False, "decoder_ff_logit_out_b"),
    ("Wemb", False, "decoder_ff_logit_out_b"),
    ("ff_logit_W", True, "ff_logit_b"),
    ("Wemb_dec", False, "ff_logit_b"),
)
_DEFLATE_LIMIT = 1040  # deflate expands a byte to at most 1032
_HEADER_LIMIT = 10_000  # characters, as NumPy's own
_DAMAGE = (
    ValueError, EOFError, OSError, KeyError, SyntaxError, RecursionError, NotImplementedError,
    zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError,
)  # fmt: skip


@dataclass(frozen=True)
class _Entry:
    info: zipfile.ZipInfo
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    start: int  # bytes of the member's header


class NpzStore:
    """The arrays of one `.npz` file; object arrays are refused, so nothing in it is ever executed.
    ValueError if it is none, cut short, declares more than it holds, or holds more than arrays.
    """

    def __init__(self, path: Path):
        self.label = str(path)
        self.provenance = {"format": "npz"}
        self._path = path
        with path.open("rb") as handle:
            if handle.read(6) == b"\x93NUMPY":
                raise ValueError(
                    f"{path} holds one unnamed array: write the layer with numpy.savez(path, "
                    "W=W, b=b)."
                )
            handle.seek(0)
            if not zipfile.is_zipfile(handle):
                raise ValueError(
                    f"{path} is not a whole .npz file: fetch it again, or write it with "
                    "numpy.savez."
                )
        try:
            with zipfile.ZipFile(path) as archive:
                self._entries = self._list(archive)
        except _DAMAGE as error:
            raise self._damaged(error) from error

    def names(self) -> list[str]:
        return list(self._entries)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._entries[name].shape

    def read(self, name: str) -> np.ndarray:
        entry = self._entries[name]
        try:
            with zipfile.ZipFile(self._path) as archive, archive.open(entry.info) as member:
                # its length was checked; the checksum is compared at its end
                content = member.read()
        except _DAMAGE as error:
            raise self._damaged(error) from error
        values = np.frombuffer(content, entry.dtype, offset=entry.start)
        return values.reshape(entry.shape, order="F" if entry.fortran else "C")

    def _list(self, archive: zipfile.ZipFile) -> dict[str, _Entry]:
        entries: dict[str, _Entry] = {}
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if info.flag_bits & 0x1:
                raise ValueError(f"{plain(name)!r} is encrypted")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(
                    f"{plain(name)!r} is compressed by a method that NumPy does not write"
                )
            if info.file_size > _DEFLATE_LIMIT * max(info.compress_size, 1):
                raise ValueError(
                    f"{plain(name)!r} declares {info.file_size} bytes, which its content "
                    "cannot hold"
                )
            if name == info.filename:
                raise ValueError(f"{plain(name)!r} is not an array")
            if name in entries:
                raise ValueError(f"duplicate array {plain(name)!r}")
            self._compare_headers(archive, info)
            entries[name] = self._header(archive, info)
        return entries

    def _compare_headers(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        """A member is described twice, in front of it and at the file's end: both must agree."""
        assert archive.fp is not None
        archive.fp.seek(info.header_offset)
        fields = struct.unpack("<4sHHHHHIIIHH", archive.fp.read(30))
        flags, method, checksum, sizes = fields[2], fields[3], fields[6], fields[7:9]
        agree = (flags, method) == (info.flag_bits, info.compress_type)
        if not flags & 0x8:  # else the sizes follow the member
            agree &= checksum == info.CRC and all(
                said in (true, 0xFFFFFFFF)
                for said, true in zip(sizes, (info.compress_size, info.file_size), strict=True)
            )
        if not agree:
            raise ValueError(
                f"its directory and the member {plain(info.filename)!r} contradict each other"
            )

    def _header(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Entry:
        name = plain(info.filename)
        with archive.open(info) as member, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers written by Python 2
            version = npy.read_magic(member)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(member, max_header_size=_HEADER_LIMIT)
            start = member.tell()
        if dtype.hasobject:
            raise ValueError(f"{name!r} holds Python objects, which allow_pickle=False refuses")
        if math.prod(shape) * dtype.itemsize != info.file_size - start:
            raise ValueError(
                f"{name!r} of shape {shape} and type {dtype} cannot fill "
                f"{info.file_size - start} bytes"
            )
        return _Entry(info, tuple(int(n) for n in shape), bool(fortran), dtype, start)

    def _damaged(self, error: BaseException) -> ValueError:
        reason = plain(str(error).split("\n")[0]) or type(error).__name__
        return ValueError(
            f"{self._path} is not a whole .npz file of numbers ({reason}); write it with "
            "numpy.savez."
        )


def open_npz(path: Path) -> Opened:
    """One file, with the layer that its names show, and the class names in its array ``tokens``."""
    store = NpzStore(path)
    known = any(weight in store.names() for weight, _, _ in CONVENTIONS)
    return Opened(
        store,
        show=functools.partial(_show, store) if known else None,
        names=functools.partial(_names, store) if "tokens" in store.names() else None,
    )


def _show(store: NpzStore, asked: Asked) -> Shown:
    if asked.weight is not None:
        return shown(store, asked)
    present = set(store.names())
    weight, transposed, bias = next(row for row in CONVENTIONS if row[0] in present)
    known = asked.bias or (bias if bias in present else None)
    kept = None if asked.without_bias or known is None else require(store, known, vector=True)
    why = (f"{weight}, the layer's name in files of this kind",)
    return Shown(store, Choice(require(store, weight), kept, transposed, why))


def _names(store: NpzStore, classes: int, blank: str | None) -> tuple[tuple[str, ...], str]:
    fitted, how = fit_labels(_stored_tokens(store), classes, "tokens", blank)
    return fitted, f"names as given{how}"


def _stored_tokens(store: NpzStore) -> tuple[str, ...]:
    """Token strings from the array ``tokens``; ValueError when it is not a list of strings."""
    shape, array = store.shape("tokens"), store.read("tokens")
    if len(shape) != 1 or array.dtype.kind not in "US":
        raise ValueError(
            f"{store.label}: the array 'tokens' must be a list of strings, one a class, not "
            f"{array.dtype} {shape}."
        )
    return tuple(
        t.decode("utf-8", "replace") if isinstance(t, bytes) else t for t in array.tolist()
    )
