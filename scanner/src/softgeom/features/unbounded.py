"""All of R^d: a class can win unless its (w, b) lies in or below the convex hull of the others'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from softgeom.arrays import Bools, Floats
from softgeom.features.feature_set import FeatureSet, Region


@dataclass(frozen=True, eq=False)
class Unbounded(FeatureSet):
    """All of R^d.

    The search takes the homogeneous form ``z = (x tau, tau)`` with ``|z_k| <= 1`` and tau in [0,
    1]: class t wins somewhere in R^d iff it wins for some z of that cone, because a strict win at
    tau = 0 survives a small tau.
    """

    kind = "unbounded"

    def describe(self) -> str:
        return "unbounded"

    def condition(self) -> str:
        return "for any features"

    def fields(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Unbounded:
        return cls()

    def contains(self, Z: Floats) -> Bools:
        return np.asarray(np.isfinite(Z).all(axis=1))

    def contains_exactly(self, z: Sequence[Fraction]) -> bool:
        return True

    def support_bound(self, v: Floats, error: Floats) -> tuple[float, float]:
        """0 for ``v = 0``, else infinite."""
        return (0.0, 0.0) if not v.any() and not error.any() else (np.inf, np.inf)

    def support_nonpositive(self, v: Sequence[Fraction], c: Fraction) -> bool:
        return c <= 0 and not any(v)

    def region(self, dimension: int, has_bias: bool) -> Region:
        """The unit box, with tau in [0, 1] as its last coordinate when there is a bias."""
        one = np.ones(dimension)
        return Region(np.append(-one, 0.0), np.append(one, 1.0)) if has_bias else Region(-one, one)

    def is_homogeneous(self, has_bias: bool) -> bool:
        return has_bias

    @property
    def extent(self) -> float:
        return 0.0  # any scale will do

    def scaled(self, power: int) -> Unbounded:
        return self
