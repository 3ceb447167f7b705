"""A softmax layer.

The layer is the affine map ``y = W x + b`` before the softmax: weights ``W`` (C, d), bias ``b``
(C,) or none, one row per class. A *feature set* (``softgeom.features``) says which ``x`` can occur;
whether a class can ever win depends on it as soon as there is a bias (paper 001, Section 3.2.1).

Narrow dtypes stay as given: a float16 matrix is never widened as a whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softgeom.features import Ball, Box, Ellipsoid, FeatureSet, Unbounded
from softgeom.rounding import as_floats, widened

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class SoftmaxLayer:
    """The last layer of a classifier, ``y = W x + b``.

    Parameters
    ----------
    W : (C, d) array
        One row per class. float16, float32 and float64 are kept; anything else becomes float64,
        where that is exact.
    b : (C,) array, optional
        Bias; ``None`` for a layer that has none.
    tokens : sequence of C strings, optional
        What each class stands for, used in tables only.

    W and b are kept as read-only arrays: copies, unless nobody can write to what is given.

    Raises
    ------
    ValueError
        If shapes disagree, an entry is NaN or infinite or no float64 (int64 2^53 + 1), or there is
        no class or feature.
    """

    W: Floats
    b: Floats | None = None
    tokens: tuple[str, ...] | None = None

    def __init__(
        self, W: ArrayLike, b: ArrayLike | None = None, tokens: Sequence[str] | None = None
    ) -> None:
        weights = _as_floats(W, "W")
        if weights.ndim != 2 or 0 in weights.shape:
            raise ValueError(
                "W must be a (classes, features) matrix with at least one of each, not "
                f"{weights.shape}."
            )
        _require_finite(weights, "W")
        object.__setattr__(self, "W", _unchanging(weights))
        object.__setattr__(self, "b", None if b is None else _as_bias(b, len(weights)))
        if tokens is not None and len(tokens) != len(weights):
            raise ValueError(
                f"tokens must name all {len(weights)} classes, not {len(tokens)}: one string "
                "per row of W."
            )
        object.__setattr__(
            self, "tokens", None if tokens is None else tuple(str(token) for token in tokens)
        )

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.W.shape[0]

    @property
    def dimension(self) -> int:
        """Number of features d."""
        return self.W.shape[1]

    @property
    def bias(self) -> Floats:
        """The bias as a vector (C,), zeros when the layer has none."""
        return np.zeros(self.classes, self.W.dtype) if self.b is None else self.b

    def token(self, index: int) -> str:
        """The name of a class, its number when it has none."""
        return str(index) if self.tokens is None else self.tokens[index]

    def logits(self, X: ArrayLike) -> NDArray[np.float64]:
        """``X W^T + b`` in float64 for features X (..., d): (..., C)."""
        return np.asarray(X, float) @ self.W.astype(float).T + self.bias.astype(float)


def identity(layer: SoftmaxLayer) -> dict[str, Any]:
    """Shape, dtype and SHA-256 (of the little-endian bytes, row by row) of W and of b; null for no
    b.
    """
    return {"W": _digest(layer.W), "b": None if layer.b is None else _digest(layer.b)}


def fingerprint(layer: SoftmaxLayer) -> str:
    """SHA-256 of the layer's identity as JSON."""
    return fingerprint_of(identity(layer))


def fingerprint_of(identity: Mapping[str, Any]) -> str:
    """The fingerprint of the layer with this identity."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def _digest(array: Floats) -> dict[str, Any]:
    dtype = array.dtype.newbyteorder("<")
    digest = hashlib.sha256()
    # by blocks: narrow or strided rows are never copied as a whole
    for start in range(0, len(array), 4096):
        digest.update(np.ascontiguousarray(array[start : start + 4096], dtype=dtype).data)
    return {"shape": list(array.shape), "dtype": dtype.str, "sha256": digest.hexdigest()}


def _as_floats(array: ArrayLike, name: str) -> Floats:
    if np.ma.is_masked(array):
        raise ValueError(f"{name} is a masked array with hidden entries: fill them first.")
    given = widened(np.asarray(array))
    kept = given.dtype in (np.float16, np.float32, np.float64) and given.dtype.isnative
    return given if kept else as_floats(given, name)


def _as_bias(b: ArrayLike, classes: int) -> Floats:
    bias = _as_floats(b, "b")
    if bias.shape == (1, classes):  # Marian stores the bias as one row
        bias = bias[0]
    if bias.shape != (classes,):
        raise ValueError(f"b must have one entry per class ({classes}), not shape {bias.shape}.")
    _require_finite(bias, "b")
    return _unchanging(bias)


def read_only(array: Floats) -> Floats:
    """An array that its caller alone holds, for `SoftmaxLayer` to keep without a copy."""
    part: Any = array
    while isinstance(part, np.ndarray):
        part.flags.writeable = False
        part = part.base
    return array


def _unchanging(array: Floats) -> Floats:
    """The array, where nobody can write to its memory, else a copy: a proof about weights that the
    next training step changes would be about another layer.
    """
    part: Any = array
    while isinstance(part, np.ndarray):
        if part.flags.writeable:
            return read_only(array.copy(order="K"))
        part = part.base
    return array


def _require_finite(array: Floats, name: str) -> None:
    # by blocks: a boolean copy of a whole vocabulary would be large
    for start in range(0, len(array), 4096):
        bad = ~np.isfinite(array[start : start + 4096])
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            where = (where[0] + start, *where[1:])
            raise ValueError(
                f"{name} has a NaN or infinite entry, the first at {list(where)}: repair the "
                "weights first."
            )


__all__ = [
    "Ball",
    "Box",
    "Ellipsoid",
    "FeatureSet",
    "Floats",
    "SoftmaxLayer",
    "Unbounded",
    "fingerprint",
    "fingerprint_of",
    "identity",
]
