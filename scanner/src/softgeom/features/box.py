"""The box ``low <= x <= high``: the paper's feature set (001, eq. 6), or an activation's range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softgeom.arrays import Bools, Floats
from softgeom.features.feature_set import (
    FeatureSet,
    Region,
    hexed,
    plain_number,
    scale_exactly,
    unhexed,
)
from softgeom.rounding import as_floats, underflow


@dataclass(frozen=True, eq=False)
class Box(FeatureSet):
    """``low <= x <= high``, each a number or one number per coordinate; ``low`` defaults to
    ``-high``.

    ``Box(100.0)`` is the paper's set; ``Box(100.0, low=-0.2785)`` suits features that come out of a
    Swish. ValueError if a bound is not finite, float64 would change it, or low < high fails in some
    coordinate.
    """

    kind = "box"
    high: float | tuple[float, ...] = 100.0
    low: float | tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        high = _scalar_or_tuple(self.high)
        low = _scalar_or_tuple(-np.asarray(high) if self.low is None else self.low)
        if not np.all(np.isfinite(high)) or not np.all(np.isfinite(low)):
            raise ValueError(
                "The bounds of a Box must be finite; use Unbounded() for features without bounds."
            )
        if np.ndim(low) and np.ndim(high) and np.size(low) != np.size(high):
            raise ValueError(
                f"A Box has {np.size(low)} lower bounds but {np.size(high)} upper bounds."
            )
        if np.any(np.asarray(low) >= np.asarray(high)):
            raise ValueError(
                "A Box needs low < high in every coordinate (high > 0 when low is left out)."
            )
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "low", low)

    def check(self, dimension: int) -> None:
        for name in ("low", "high"):
            size = np.size(getattr(self, name))
            if np.ndim(getattr(self, name)) and size != dimension:
                raise ValueError(f"The Box has {size} {name} bounds; W has {dimension} columns.")

    def bounds(self, dimension: int) -> tuple[Floats, Floats]:
        self.check(dimension)
        return (
            np.broadcast_to(np.asarray(self.low, float), dimension),
            np.broadcast_to(np.asarray(self.high, float), dimension),
        )

    def describe(self) -> str:
        """Both bounds where they are numbers, else how many intervals and the digest of all."""
        low, high = np.asarray(self.low, float), np.asarray(self.high, float)
        if low.ndim or high.ndim:
            return f"box of {max(low.size, high.size)} intervals ({self.digest()[:12]})"
        if low == -high:
            return f"|x| <= {plain_number(float(high))}"
        return f"{plain_number(float(low))} <= x <= {plain_number(float(high))}"

    def condition(self) -> str:
        low, high = np.asarray(self.low, float), np.asarray(self.high, float)
        if low.ndim or high.ndim:
            return super().condition()
        most = plain_number(float(high))
        return f"up to {most}" if low == -high else f"from {plain_number(float(low))} to {most}"

    def fields(self) -> dict[str, Any]:
        return {
            "low": hexed(np.asarray(self.low, float)),
            "high": hexed(np.asarray(self.high, float)),
        }

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Box:
        return cls(unhexed(fields["high"]), low=unhexed(fields["low"]))

    def contains(self, Z: Floats) -> Bools:
        low, high = self.bounds(Z.shape[1])
        # comparisons only: no rounding
        return np.asarray(
            np.isfinite(Z).all(axis=1) & ~np.logical_or(low > Z, high < Z).any(axis=1)
        )

    def contains_exactly(self, z: Sequence[Fraction]) -> bool:
        low, high = self.bounds(len(z))
        return all(
            Fraction(a) <= v <= Fraction(b)
            for a, v, b in zip(low.tolist(), z, high.tolist(), strict=True)
        )

    def support_bound(self, v: Floats, error: Floats) -> tuple[float, float]:
        """The largest corner products of ``[low, high]`` and ``[v - error, v + error]``, summed."""
        low, high = self.bounds(len(v))
        least, most = v - error, v + error
        terms = np.maximum.reduce([low * least, low * most, high * least, high * most])
        rises = ((most > 0) & (high > 0)) | ((least < 0) & (low < 0))
        # products of small numbers may vanish
        lost = underflow(int(np.count_nonzero((terms != 0) | rises)))
        return float(terms.sum()) + lost, float(np.abs(terms).sum()) + lost

    def support_nonpositive(self, v: Sequence[Fraction], c: Fraction) -> bool:
        """``sum_k max(low_k v_k, high_k v_k) + c <= 0``."""
        low, high = self.bounds(len(v))
        terms = (
            Fraction(high[k] if value > 0 else low[k]) * value for k, value in enumerate(v) if value
        )
        return sum(terms, c) <= 0

    def region(self, dimension: int, has_bias: bool) -> Region:
        return Region(*self.bounds(dimension))

    @property
    def extent(self) -> float:
        return float(max(np.abs(np.asarray(bound, float)).max() for bound in (self.low, self.high)))

    def scaled(self, power: int) -> Box:
        low, high = (
            _scalar_or_tuple(scale_exactly(np.asarray(bound, float), power))
            for bound in (self.low, self.high)
        )
        return Box(high, low=low)


def _scalar_or_tuple(bound: ArrayLike) -> float | tuple[float, ...]:
    floats = as_floats(bound, "The bound of a Box")
    if floats.ndim > 1:
        raise ValueError(
            f"The bounds of a Box are numbers or vectors, not arrays of shape {floats.shape}."
        )
    return float(floats) if floats.ndim == 0 else tuple(floats.tolist())
