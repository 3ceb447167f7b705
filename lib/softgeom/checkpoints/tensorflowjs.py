"""TensorFlow.js's `model.json`: a manifest of named weights, whose numbers lie one after the other
in files beside it.

`weightsManifest`, which may also be a file of its own, is a list of groups, each with `paths` and
`weights`; a weight has `name`, `shape`, `dtype`, and where it is quantised `quantization` with
`dtype`, `scale` and `min`: the real number is `scale * code + min`. Kernels are stored as
(features, classes). A graph that was converted names a weight by what reads it,
`X/MatMul/ReadVariableOp`; here it is `X/kernel`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.checkpoints.cursor import Cursor, CutShortError
from softgeom.checkpoints.folder import parse_json
from softgeom.checkpoints.tensors import ArrayStore, plain

_TYPES = {"float32": "<f4", "float16": "<f2", "int32": "<i4", "uint8": "u1", "bool": "u1",
          "uint16": "<u2"}  # fmt: skip
_MOST_BYTES = 2**33


def open_tensorflowjs(path: Path) -> ArrayStore:
    """The weights of a manifest. ValueError if it is none, or a file that it names is missing,
    outside of its folder, or shorter than it says.
    """
    content = parse_json(path.read_bytes(), str(path))
    manifest = content.get("weightsManifest") if isinstance(content, dict) else content
    if not isinstance(manifest, list) or not all(_is_group(group) for group in manifest):
        raise ValueError(
            f"{path} is not a model: of JSON files only TensorFlow.js's are read, which have a "
            "weightsManifest or are one."
        )
    tensors: dict[str, np.ndarray] = {}
    try:
        for group in manifest:
            cursor = Cursor(b"".join(_bytes(path.parent, name) for name in group["paths"]))
            for weight in group["weights"]:
                tensors[_named(str(weight["name"]))] = _read(cursor, weight)
    except (KeyError, TypeError, AttributeError, CutShortError, MemoryError) as error:
        reason = plain(f"{type(error).__name__}: {error}", 100)
        raise ValueError(f"{path} and the files that it names do not fit ({reason}).") from None
    for name, values in tensors.items():
        # beside a bias its length tells which side is which
        if name.endswith("kernel") and name[:-6] + "bias" not in tensors and values.ndim == 2:
            tensors[name] = values.T
    return ArrayStore(tensors, str(path), {"format": "tensorflow.js"})


def _is_group(group: Any) -> bool:
    return isinstance(group, dict) and {"paths", "weights"} <= group.keys()


def _named(name: str) -> str:
    """A weight's name as layers call it, where a converted graph names the operation instead."""
    name = plain(name).removesuffix("/ReadVariableOp")
    operations = (("/MatMul", "/kernel"), ("/BiasAdd", "/bias"))
    endings = (name.removesuffix(end) + called for end, called in operations if name.endswith(end))
    return next(endings, name)


def _bytes(folder: Path, name: Any) -> bytes:
    file = folder / str(name)
    inside = file.resolve().is_relative_to(folder.resolve())
    if not inside or not file.is_file() or file.stat().st_size > _MOST_BYTES:
        raise CutShortError(f"there is no file {plain(name, 60)!r} in the folder")
    return file.read_bytes()


def _read(cursor: Cursor, weight: dict[str, Any]) -> np.ndarray:
    shape = [int(size) for size in weight["shape"]]
    coded = weight.get("quantization")
    dtype = str((coded or weight)["dtype"])
    if dtype not in _TYPES or math.prod(shape) < 0:
        raise CutShortError(f"{plain(weight['name'], 60)} is of type {plain(dtype, 20)}")
    values = cursor.array(_TYPES[dtype], *shape)
    if not coded or dtype == "float16":
        return values
    scale, least = float(coded["scale"]), float(coded["min"])
    return (values.astype(np.float64) * scale + least).astype(np.float32)
