"""Kaldi's `final.mdl` of nnet3: the affine components of a binary model, by name.

After the transition model come components, `<ComponentName> NAME <...Component>`, whose parameters
are `<LinearParams> FM` (a byte 4, int32 rows, a byte 4, int32 columns, float32) and `<BiasParams>
FV` (a byte 4, int32 size, float32); DM and DV are float64. What else a component keeps is passed
over. The classes of `output.affine` are states of the HMM (pdf ids), and decoding searches a graph:
that one can never be the best of a frame is all that a verdict says.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from softgeom.checkpoints.cursor import Cursor, CutShortError, reading
from softgeom.checkpoints.opened import Asked, Opened, Shown, shown
from softgeom.checkpoints.tensors import ArrayStore, plain

_KINDS = {b"FM ": ("<f4", 2), b"FV ": ("<f4", 1), b"DM ": ("<f8", 2), b"DV ": ("<f8", 1)}
_OUTPUT = "output.affine"
_MOST = 100_000  # components
_NEXT = b"<ComponentName> "


def open_kaldi(path: Path) -> Opened:
    """One file, with the affine map before its output. ValueError if it is no binary nnet3 model,
    is damaged, or has no affine components.
    """
    with reading(path, "Kaldi model") as cursor:
        if cursor.take(min(cursor.left, 2)) != b"\0B":
            how = "nnet3-copy --binary=true writes one."
            raise ValueError(f"{path} is not a binary Kaldi model: {how}")
        tensors = _components(cursor)
    if not tensors:
        raise ValueError(f"{path} has no affine components: it is not an nnet3 model.")
    store = ArrayStore(tensors, str(path), {"format": "kaldi"})
    return Opened(store, show=lambda asked: _show(store, asked))


def _show(store: ArrayStore, asked: Asked) -> Shown:
    weight, bias = f"{_OUTPUT}.weight", f"{_OUTPUT}.bias"
    why = "the component output.affine; its classes are states of the HMM (pdf ids)"
    return shown(store, asked, (weight, bias, why) if {weight, bias} <= {*store.names()} else None)


def _components(cursor: Cursor) -> dict[str, np.ndarray]:
    """Weight and bias of each affine component."""
    found: dict[str, np.ndarray] = {}
    starts: list[int] = []
    while len(starts) < _MOST and cursor.find(_NEXT):
        starts.append(cursor.at)
    for start, following in zip(starts, [*starts, cursor.end][1:], strict=True):
        part = cursor.part(start, following)
        name = plain(part.take(min(part.left, 200)).split(b" ")[0].decode("utf-8", "replace"), 80)
        for mark, suffix in ((b"<LinearParams> ", "weight"), (b"<BiasParams> ", "bias")):
            part = cursor.part(start, following)
            if part.find(mark):
                values = _array(part.part(part.at, cursor.end))
                if values is not None:
                    found[f"{name}.{suffix}"] = values
    return found


def _array(cursor: Cursor) -> np.ndarray | None:
    """A matrix or vector; None for one of another kind, such as a compressed one."""
    dtype, axes = _KINDS.get(cursor.take(min(cursor.left, 3)), ("", 0))
    shape = []
    for _ in range(axes):
        if cursor.number("b") != 4:
            raise CutShortError("a size is not an int32")
        shape.append(cursor.number("i"))
    return cursor.array(dtype, *shape) if shape else None
