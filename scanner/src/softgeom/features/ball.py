"""The ball ``||x||_2 <= radius``: what any encoder that normalises its output leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from softgeom.arrays import Bools, Floats
from softgeom.features.feature_set import (
    FeatureSet,
    Region,
    hexed,
    plain_number,
    scale_exactly,
    unhexed,
)
from softgeom.rounding import as_floats, exponent, gamma, norm_up, underflow


class Round:
    """What any set can do whose points z fill the ball ``||z||_2 <= radius``."""

    radius: float

    def contains(self, Z: Floats) -> Bools:
        """Sums of squares with their rounding, in units of the radius."""
        power = exponent(self.radius)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.ldexp(Z, -power)
            squares = np.einsum("nd,nd->n", scaled, scaled) * (1 + gamma(Z.shape[1] + 2))
            squares += underflow(Z.shape[1])
            most = np.ldexp(self.radius, -power) ** 2 * (1 - gamma(4))
            return np.asarray(np.isfinite(Z).all(axis=1) & (squares <= most))

    def contains_exactly(self, z: Sequence[Fraction]) -> bool:
        """``sum z_k^2 <= radius^2``."""
        return sum((v * v for v in z), Fraction(0)) <= Fraction(self.radius) ** 2

    def support_nonpositive(self, v: Sequence[Fraction], c: Fraction) -> bool:
        """``radius ||v|| <= -c``, squared."""
        return c <= 0 and Fraction(self.radius) ** 2 * sum(v_k * v_k for v_k in v) <= c * c

    def region(self, dimension: int, has_bias: bool) -> Region:
        return Region(radius=self.radius)


@dataclass(frozen=True, eq=False)
class Ball(Round, FeatureSet):
    """``||x||_2 <= radius``. ValueError if the radius is not positive and finite, or float64 would
    change it.
    """

    kind = "ball"
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive_radius(self.radius, "a Ball"))

    def describe(self) -> str:
        return f"||x|| <= {plain_number(self.radius)}"

    def fields(self) -> dict[str, Any]:
        return {"radius": hexed(self.radius)}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Ball:
        return cls(unhexed(fields["radius"]))

    def support_bound(self, v: Floats, error: Floats) -> tuple[float, float]:
        """``radius (|| |v| + error ||)``, rounded up."""
        norm = float(norm_up(np.abs(v) + error))
        reach = self.radius * norm + (underflow(1) if norm else 0.0)
        return reach, reach

    @property
    def extent(self) -> float:
        return self.radius

    def scaled(self, power: int) -> Ball:
        return Ball(float(scale_exactly(self.radius, power)))


def positive_radius(radius: float, of: str) -> float:
    """The radius as a float; ValueError if not positive and finite, or float64 would change it."""
    value = as_floats(radius, f"The radius of {of}")
    if value.ndim or not np.isfinite(value) or value <= 0:
        raise ValueError(f"The radius of {of} must be a positive number, not {radius}.")
    return float(value)
