"""NumPy's `.npy`, one matrix, and `.npz`, read member by member: our own, Nematus' and Marian's
names.

`W` or `weight` (C, d) with `b` or `bias` (C,) is the plain form. Nematus ties the output to the
decoder's embedding `Wemb_dec` (C, d) with `ff_logit_b` (C,), or unties it as `ff_logit_W` (d, C);
Marian has `Wemb` (all tied), `decoder_Wemb` or `decoder_ff_logit_out_W` (d, C) with
`decoder_ff_logit_out_b` (1, C).
"""

from __future__ import annotations

import functools
import math
import warnings
import zipfile
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from softgeom.checkpoints.choosing import Choice
from softgeom.checkpoints.labels import fit_labels
from softgeom.checkpoints.matrices import require
from softgeom.checkpoints.opened import Asked, Opened, Shown, shown
from softgeom.checkpoints.tensors import ArrayStore, plain

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


class NpzStore:
    """The arrays of one `.npz` file. Shapes come from the members' headers; an array is read when
    it is asked for. ValueError if the file is damaged, or holds more than arrays of numbers and
    text: nothing in it is ever executed.
    """

    def __init__(self, path: Path):
        self.label, self.provenance = str(path), {"format": "npz"}
        self._path = path
        with path.open("rb") as file:
            if file.read(6) == b"\x93NUMPY":
                raise ValueError(f"{path} holds one unnamed array: give it the ending .npy.")
        with zipfile.ZipFile(path) as archive:
            self._shapes = {
                info.filename.removesuffix(".npy"): _shape(archive, info, str(path))
                for info in archive.infolist()
            }

    def names(self) -> list[str]:
        return list(self._shapes)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._shapes[name]

    def read(self, name: str) -> np.ndarray:
        with np.load(self._path, allow_pickle=False) as archive, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers written by Python 2
            return np.asarray(archive[name])


def _shape(archive: zipfile.ZipFile, info: zipfile.ZipInfo, label: str) -> tuple[int, ...]:
    """The shape of one member."""
    with archive.open(info) as member:
        return _declared(member, info.file_size, f"{label}: {plain(info.filename)!r}")


def _declared(file: IO[bytes], size: int, label: str) -> tuple[int, ...]:
    """The shape that a header gives, whose numbers have to fill it before any is allocated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers written by Python 2
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(file)
    size -= file.tell()
    if dtype.hasobject:
        raise ValueError(f"{label} holds Python objects, which are never loaded.")
    if math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{label} of shape {shape} and type {dtype} cannot fill {size} bytes.")
    return tuple(map(int, shape))


def open_npy(path: Path) -> ArrayStore:
    """The one matrix (classes, features) of a file, under the name W; errors as of `.npz`."""
    with path.open("rb") as file:
        _declared(file, path.stat().st_size, str(path))
    return ArrayStore({"W": np.load(path, allow_pickle=False)}, str(path), {"format": "npy"})


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
    """The class names in the array ``tokens``; ValueError when it is not a list of strings."""
    array = store.read("tokens")
    if array.ndim != 1 or array.dtype.kind not in "US":
        raise ValueError(
            f"{store.label}: the array 'tokens' must be a list of strings, one a class, not "
            f"{array.dtype} {array.shape}."
        )
    # bytes, where Python 2 wrote them
    texts = (t.decode("utf-8", "replace") if isinstance(t, bytes) else t for t in array.tolist())
    fitted, how = fit_labels(tuple(texts), classes, "tokens", blank)
    return fitted, f"names as given{how}"
