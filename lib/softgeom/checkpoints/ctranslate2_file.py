"""CTranslate2's `model.bin`: a list of named variables.

uint32 version; the specification's name (uint16 length, text, a zero byte); uint32 revision; uint32
count; then for each variable its name, uint8 rank, uint32 sizes, uint8 type, uint32 bytes, and the
bytes. Names that stand for others follow: uint32 count, and pairs. A matrix of int8 or int16 has a
variable `NAME_scale`: the real number is the code over the scale of its row.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from softgeom.checkpoints.cursor import Cursor, CutShortError, reading
from softgeom.checkpoints.opened import Asked, Opened, Shown, shown
from softgeom.checkpoints.tensors import ArrayStore, plain
from softgeom.layer import Ellipsoid

_VERSIONS = (5, 6)  # of the last years; before, a variable says its size otherwise
_TYPES = ("<f4", "i1", "<i2", "<i4", "<f2", "bfloat16")
_PROJECTIONS = ("decoder/projection", "encoder/projection")
_MOST_AXES = 8


def looks_like_ctranslate2(path: Path) -> bool:
    """Whether a `.bin` file begins as one: a version, and the name of a specification."""
    with path.open("rb") as file:
        start = file.read(80)
    length = int.from_bytes(start[4:6], "little")
    name = start[6 : 6 + length]
    version = int.from_bytes(start[:4], "little")
    return version < 100 and 4 < length < 74 and name.endswith(b"Spec\0")


def open_ctranslate2(path: Path) -> Opened:
    """One file; the vocabulary lies beside it. ValueError if damaged or of another version."""
    with reading(path, "CTranslate2 model") as cursor:
        version = cursor.number("I")
        if version not in _VERSIONS:
            raise ValueError(
                f"{path} is a CTranslate2 model of binary version {version}; "
                f"{' and '.join(map(str, _VERSIONS))} are read: convert it again."
            )
        tensors = _variables(cursor)
    store = ArrayStore(tensors, str(path), {"format": "ctranslate2"})
    return Opened(store, show=lambda asked: _show(store, asked))


def _text(cursor: Cursor) -> str:
    return cursor.take(cursor.number("H")).removesuffix(b"\0").decode("utf-8", "replace")


def _variables(cursor: Cursor) -> dict[str, np.ndarray]:
    _text(cursor)
    cursor.take(4)
    found: dict[str, np.ndarray] = {}
    for _ in range(cursor.number("I")):
        name, axes = plain(_text(cursor)), cursor.number("B")
        if axes > _MOST_AXES:
            raise CutShortError(f"{name} has {axes} axes")
        shape = [cursor.number("I") for _ in range(axes)]
        kind, size = cursor.number("B"), cursor.number("I")
        if kind >= len(_TYPES):
            raise CutShortError(f"{name} is of type {kind}")
        part = cursor.part(cursor.at, cursor.at + size)
        cursor.skip(size)
        values = part.numbers(_TYPES[kind], *shape)
        if part.left:
            raise CutShortError(f"{name} has {part.left} bytes too many")
        found[name] = values
    real = _real(found)
    for _ in range(cursor.number("I") if cursor.left else 0):
        alias, target = plain(_text(cursor)), plain(_text(cursor))
        if target in real:
            real.setdefault(alias, real[target])
    return real


def _real(variables: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The numbers that the runtime multiplies with; scales are not listed."""
    real = {}
    for name, values in variables.items():
        scale = variables.get(f"{name}_scale")
        if scale is None:
            real[name] = values
        elif values.ndim == 2 and scale.size in (1, len(values)) and np.all(scale):
            real[name] = (values / scale.astype(np.float64).reshape(-1, 1)).astype(np.float32)
    return {name: values for name, values in real.items() if not name.endswith("_scale")}


def _show(store: ArrayStore, asked: Asked) -> Shown:
    names = {*store.names()}
    stem = next((s for s in _PROJECTIONS if f"{s}/weight" in names), None)
    if stem is None:
        return shown(store, asked)
    bias = f"{stem}/bias" if f"{stem}/bias" in names else None
    gain, shift = (f"decoder/layer_norm/{part}" for part in ("gamma", "beta"))
    features = None
    if asked.weight is None and gain in names:
        scale = store.read(gain)
        centred = shift in names
        features = (
            Ellipsoid.layer_norm(scale, store.read(shift)) if centred else Ellipsoid.rms_norm(scale)
        )
    own = (f"{stem}/weight", bias, f"the projection {stem}")
    return replace(shown(store, asked, own), features=features)
