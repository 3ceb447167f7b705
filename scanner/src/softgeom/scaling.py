"""A layer and its feature set in units in which both are of order one: powers of two, so that
nothing is rounded.

With ``W = 2^p W'``, ``x = 2^q x'`` and ``b = 2^(p+q) b'`` every margin is ``2^(p+q)`` times that of
the scaled problem: each verdict is the same. Search and solvers have tolerances that suppose sizes
of order one, and products of tiny or huge numbers would leave the range of float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from softgeom.arrays import Array, Bools, Floats
from softgeom.certifying.verdict import Finding, Unknown, Witness
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.rounding import exponent, shrink


@dataclass(frozen=True, eq=False)
class Scaled:
    """The scaled problem and the powers of two that lead back to the given one."""

    layer: SoftmaxLayer
    features: FeatureSet
    rows: int = 0  # p
    points: int = 0  # q
    coordinates: int = 0  # of the points that evidence names: q, except for u of an ellipsoid

    @property
    def margins(self) -> int:
        """p + q."""
        return self.rows + self.points

    def point_back(self, z: Array) -> Array:
        """A point z' (d,) in the given units; as fractions where float64 would change it."""
        return shift(z, self.coordinates)

    def points_to(self, Z: Floats) -> tuple[Floats, Bools]:
        """Points Z (n, d) in the scaled units, and which of them that leaves exact (n,)."""
        if not self.coordinates:
            return Z, np.ones(len(Z), dtype=bool)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            moved = np.ldexp(Z, -self.coordinates)
            return moved, np.asarray((np.ldexp(moved, self.coordinates) == Z).all(axis=1))

    def finding_back(self, found: Finding) -> Finding:
        """A finding about the scaled problem as one about the given layer and features."""
        if not self.rows and not self.points:
            return found
        evidence, margin = self.evidence_back(found.evidence), self.margin_back(found.margin)
        radius = float(shrink(found.radius, self.points))
        return replace(found, evidence=evidence, margin=margin, radius=radius)

    def evidence_back(self, evidence: Any) -> Any:
        """Evidence about the scaled problem as evidence about the given one: weights and twins
        are the same.
        """
        if isinstance(evidence, Witness):
            return Witness(self.point_back(evidence.point))
        if isinstance(evidence, Unknown):
            return Unknown(self.margin_back(evidence.bound), evidence.reason)
        return evidence

    def margin_back(self, margin: float) -> float:
        """A bound in the given units: its sign is kept, and it gets no better; 5e-324 says that it
        is positive, and no more, in any unit.
        """
        if not self.margins or not np.isfinite(margin) or margin in (0.0, 5e-324):
            return margin
        back = float(shrink(margin, self.margins))
        return max(back, 5e-324) if margin > 0 else back


def in_units(layer: SoftmaxLayer, features: FeatureSet, comfort: int = 8) -> Scaled:
    """The problem in units of order one; as it is when its sizes lie within ``2^-comfort`` and
    ``2^comfort``.

    Tolerances of searches and solvers suppose order one; bounds on rounding bear far more. Where
    scaling would lose a bit, because sizes in one layer are too far apart, the problem stays
    as it is too.
    """
    rows = exponent(_largest(layer.W))
    points = exponent(features.extent)
    rows = rows if abs(rows) > comfort else 0
    points = points if abs(points) > comfort else 0
    if features.extent == 0 and layer.b is not None:  # unbounded: the bias sets the scale of x
        size = exponent(_largest(layer.b)) - rows
        points = size if abs(size) > comfort else 0
    if not rows and not points:
        return Scaled(layer, features)
    W = _divided(layer.W, rows)
    b = None if layer.b is None else _divided(layer.b, rows + points)
    if W is None or (b is None and layer.b is not None):
        return Scaled(layer, features)
    try:
        inner = features.coordinate_power(points) if points else 0
        there = features.scaled(points) if points else features
        return Scaled(SoftmaxLayer(W, b, layer.tokens), there, rows, points, inner)
    except ValueError:
        return Scaled(layer, features)


def shift(z: Array, power: int) -> Array:
    """``2^power z`` for floats or fractions z (d,): floats where they hold it."""
    if not power:
        return z
    if z.dtype != object:
        with np.errstate(over="ignore", under="ignore"):
            moved = np.ldexp(z.astype(np.float64), power)
            if np.array_equal(np.ldexp(moved, -power), z.astype(np.float64)):
                return np.asarray(moved)
    factor = Fraction(2) ** power
    exact = (v if isinstance(v, Fraction) else Fraction(float(v)) for v in z)
    return np.array([factor * value for value in exact], object)


def _divided(values: Array, power: int) -> Array | None:
    """``values / 2^power`` in the same dtype, else in float64; None where neither is exact."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for dtype in (values.dtype, np.dtype(np.float64)):
            moved = np.ldexp(values.astype(dtype, copy=False), np.int32(-power))
            moved = moved.astype(dtype, copy=False)
            if np.array_equal(np.ldexp(moved.astype(np.float64), power), values):
                return moved
    return None


def _largest(values: Array) -> float:
    return max(abs(float(values.max())), abs(float(values.min())))
