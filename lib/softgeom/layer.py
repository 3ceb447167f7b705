"""A softmax layer and the set of features that it may be fed.

The layer is the affine map ``y = W x + b`` before the softmax: weights ``W`` (C, d), bias ``b`` (C,) or none, one row
per class. A *feature set* says which ``x`` can occur; whether a class can ever win depends on it as soon as there is
a bias (paper 001, Section 3.2.1).

==============  =========================================================  ======================================
feature set     x                                                          where it comes from
==============  =========================================================  ======================================
``Box``         ``low <= x <= high`` coordinate by coordinate              paper 001, eq. (6); Swish, ReLU, tanh
``Ball``        ``||x||_2 <= radius``                                      any normalised encoder
``Unbounded``   all of R^d                                                 convex hulls; Demeter et al. (2020)
``Ellipsoid``   ``bias + gain * u``, ``||u||_2 <= radius``                 a final LayerNorm or RMSNorm
==============  =========================================================  ======================================

Narrow dtypes stay as given: a float16 matrix is never widened as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class SoftmaxLayer:
    """The last layer of a classifier, ``y = W x + b``.

    Parameters
    ----------
    W : (C, d) array
        One row per class. float16, float32 and float64 are kept; anything else becomes float64.
    b : (C,) array, optional
        Bias; ``None`` for a layer that has none.
    tokens : sequence of C strings, optional
        What each class stands for, used in tables only.

    Raises
    ------
    ValueError
        If shapes disagree, an entry is NaN or infinite, or there is no class or no feature.
    """

    W: Floats
    b: Floats | None = None
    tokens: tuple[str, ...] | None = None

    def __init__(self, W: ArrayLike, b: ArrayLike | None = None, tokens: Sequence[str] | None = None) -> None:
        weights = _as_floats(W, "W")
        if weights.ndim != 2 or 0 in weights.shape:
            raise ValueError(f"W must be a (classes, features) matrix with at least one of each, not {weights.shape}.")
        _require_finite(weights, "W")
        object.__setattr__(self, "W", weights)
        object.__setattr__(self, "b", None if b is None else _as_bias(b, len(weights)))
        if tokens is not None and len(tokens) != len(weights):
            raise ValueError(
                f"tokens must name all {len(weights)} classes, not {len(tokens)}: one string per row of W."
            )
        object.__setattr__(self, "tokens", None if tokens is None else tuple(str(token) for token in tokens))

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
        """``X W^T + b`` in float64 for features X (..., d): (..., C). For small layers and for tests."""
        return np.asarray(X, float) @ self.W.astype(float).T + self.bias.astype(float)


@dataclass(frozen=True)
class Box:
    """``low <= x <= high``, each a number or one number per coordinate; ``low`` defaults to ``-high``.

    ``Box(100.0)`` is the paper's set; ``Box(100.0, low=-0.2785)`` suits features that come out of a Swish.
    """

    high: float | tuple[float, ...] = 100.0
    low: float | tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        high = _scalar_or_tuple(self.high)
        low = _scalar_or_tuple(-np.asarray(high) if self.low is None else self.low)
        if not np.all(np.isfinite(high)) or not np.all(np.isfinite(low)):
            raise ValueError("The bounds of a Box must be finite; use Unbounded() for features without bounds.")
        if np.ndim(low) and np.ndim(high) and len(np.atleast_1d(low)) != len(np.atleast_1d(high)):
            raise ValueError(f"A Box has {np.size(low)} lower bounds but {np.size(high)} upper bounds.")
        if np.any(np.asarray(low) >= np.asarray(high)):
            raise ValueError("A Box needs low < high in every coordinate (high > 0 when low is left out).")
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "low", low)

    def check(self, dimension: int) -> None:
        """Raise ValueError unless the set lives in R^dimension."""
        for name in ("low", "high"):
            if np.size(getattr(self, name)) not in (1, dimension):
                raise ValueError(
                    f"The Box has {np.size(getattr(self, name))} {name} bounds; W has {dimension} columns."
                )

    def bounds(self, dimension: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lower and the upper corner, each (d,)."""
        self.check(dimension)
        return (
            np.broadcast_to(np.asarray(self.low, float), dimension),
            np.broadcast_to(self.high, dimension).astype(float),
        )

    def describe(self) -> str:
        """A short name for tables and file names' metadata."""
        low, high = np.asarray(self.low, float), np.asarray(self.high, float)
        if low.ndim or high.ndim:
            return f"box of {max(low.size, high.size)} intervals"
        return f"|x| <= {high:g}" if low == -high else f"{low:g} <= x <= {high:g}"


@dataclass(frozen=True)
class Ball:
    """``||x||_2 <= radius``."""

    radius: float

    def __post_init__(self) -> None:
        if not np.isfinite(self.radius) or self.radius <= 0:
            raise ValueError(f"The radius of a Ball must be a positive number, not {self.radius}.")

    def check(self, dimension: int) -> None:
        """Every dimension will do."""

    def describe(self) -> str:
        """A short name for tables."""
        return f"||x|| <= {self.radius:g}"


@dataclass(frozen=True)
class Unbounded:
    """All of R^d: a class can win unless its (w, b) lies in or below the convex hull of the others'."""

    def check(self, dimension: int) -> None:
        """Every dimension will do."""

    def describe(self) -> str:
        """A short name for tables."""
        return "unbounded"


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """``x = bias + gain * u`` with ``||u||_2 <= radius``: what leaves a final normalisation.

    Parameters
    ----------
    gain, bias : (d,) arrays
        Of the normalisation; its layer's effective bias is ``W bias + b``, so GPT-2 has one although it stores none.
    radius : float, optional
        sqrt(d) for LayerNorm and RMSNorm, the default.
    centred : bool
        LayerNorm also subtracts the mean: ``sum(u) = 0``.
    """

    gain: NDArray[np.float64]
    bias: NDArray[np.float64]
    radius: float
    centred: bool

    def __init__(
        self, gain: ArrayLike, bias: ArrayLike | None = None, *, radius: float | None = None, centred: bool = False
    ) -> None:
        gain = np.array(gain, dtype=float)
        if gain.ndim != 1 or not len(gain):
            raise ValueError(f"gain must be a vector with one entry per feature, not shape {gain.shape}.")
        bias = np.zeros_like(gain) if bias is None else np.array(bias, dtype=float)
        if bias.shape != gain.shape:
            raise ValueError(f"gain and bias of the normalisation differ in shape: {gain.shape} and {bias.shape}.")
        _require_finite(gain, "gain")
        _require_finite(bias, "bias")
        radius = float(np.sqrt(len(gain))) if radius is None else float(radius)
        if not np.isfinite(radius) or radius <= 0:
            raise ValueError(f"The radius of an Ellipsoid must be a positive number, not {radius}.")
        for name, value in (("gain", gain), ("bias", bias), ("radius", radius), ("centred", bool(centred))):
            object.__setattr__(self, name, value)

    @classmethod
    def layer_norm(cls, gain: ArrayLike, bias: ArrayLike | None = None) -> Ellipsoid:
        """The outputs of ``LayerNorm``: centred, ``||u|| <= sqrt(d)``."""
        return cls(gain, bias, centred=True)

    @classmethod
    def rms_norm(cls, gain: ArrayLike) -> Ellipsoid:
        """The outputs of ``RMSNorm``: ``||u|| <= sqrt(d)``."""
        return cls(gain)

    def check(self, dimension: int) -> None:
        """Raise ValueError unless the set lives in R^dimension."""
        if len(self.gain) != dimension:
            raise ValueError(f"The normalisation has {len(self.gain)} gains; W has {dimension} columns.")

    def describe(self) -> str:
        """A short name for tables."""
        return "LayerNorm ellipsoid" if self.centred else "RMSNorm ellipsoid"


FeatureSet = Box | Ball | Unbounded | Ellipsoid


def _as_floats(array: ArrayLike, name: str) -> Floats:
    try:
        given = np.asarray(array)
        kept = given.dtype in (np.float16, np.float32, np.float64) and given.dtype.isnative
        return given if kept else given.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of real numbers: {error}.") from None


def _as_bias(b: ArrayLike, classes: int) -> Floats:
    bias = _as_floats(b, "b")
    if bias.shape == (1, classes):  # Marian stores the bias as one row
        bias = bias[0]
    if bias.shape != (classes,):
        raise ValueError(f"b must have one entry per class ({classes}), not shape {bias.shape}.")
    _require_finite(bias, "b")
    return bias


def _require_finite(array: Floats, name: str) -> None:
    for start in range(0, len(array), 4096):  # by blocks: a boolean copy of a whole vocabulary would be large
        bad = ~np.isfinite(array[start : start + 4096])
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            where = (where[0] + start, *where[1:])
            raise ValueError(
                f"{name} has a NaN or infinite entry, the first at {list(where)}: repair the weights first."
            )


def _scalar_or_tuple(bound: ArrayLike) -> float | tuple[float, ...]:
    bound = np.asarray(bound, dtype=float)
    if bound.ndim > 1:
        raise ValueError(f"The bounds of a Box are numbers or vectors, not arrays of shape {bound.shape}.")
    return float(bound) if bound.ndim == 0 else tuple(bound.tolist())
