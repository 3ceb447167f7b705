"""The layer as search and solvers see it: linear logits ``z -> W' z + b'`` over a plain box or
ball.

Every feature set is brought to one of two shapes, so that search, linear programme and nearest
point know only those:

=============  =============================  =======================  ========================
features       W' (C, D)                      b' (C,)                  region of z
=============  =============================  =======================  ========================
``Box``        W                              b                        the box
``Ball``       W                              b                        the ball
``Ellipsoid``  W diag(gain), centred          b + W bias               ball of its radius (z is u)
``Unbounded``  [W, b]                         0                        ``|z_k| <= 1``, last >= 0
=============  =============================  =======================  ========================

The last row is the homogeneous form: ``z = (x tau, tau)``; class t wins somewhere in R^d iff it
wins for some z in the cone tau >= 0, because a strict win at tau = 0 survives a small tau. Rows are
made on demand, block by block: ``W'`` never exists as a whole unless it is ``W`` itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softgeom.arrays import Array, Floats, Ints
from softgeom.certifying.slack import certify_each_unargmaxable
from softgeom.certifying.verdict import BlockingClasses
from softgeom.layer import FeatureSet, SoftmaxLayer

# of classes: blocking classes and the bound <= 0 that they certify; points (D,) at which they seem
# to win
Proofs = dict[int, tuple[BlockingClasses, float]]
Points = dict[int, Array]


# up to so many rivals a programme with all of them takes less time than a search
FEW = 64
BLOCK_BYTES = 64 * 2**20  # rows that are converted are converted at most this much at a time


def chosen_classes(layer: SoftmaxLayer, classes: ArrayLike | None) -> Ints:
    """Class numbers (n,) in the given order, all by default; ValueError if one is none of the
    layer's or is given twice.
    """
    if classes is None:
        return np.arange(layer.classes)
    chosen = np.atleast_1d(np.asarray(classes))
    if chosen.dtype == bool:
        chosen = np.flatnonzero(chosen)
    if chosen.ndim != 1 or not (np.issubdtype(chosen.dtype, np.integer) or not len(chosen)):
        raise ValueError("classes must be a list of class numbers.")
    if len(chosen) and (chosen.min() < 0 or chosen.max() >= layer.classes):
        where = f"{chosen.min()} to {chosen.max()}"
        raise ValueError(f"classes must lie between 0 and {layer.classes - 1}, not {where}.")
    given, times = np.unique(chosen, return_counts=True)
    if len(given) != len(chosen):
        raise ValueError(f"classes must not repeat: {given[times > 1][0]} is given twice.")
    return chosen.astype(np.intp)


def round_inwards(low: Floats, high: Floats, dtype: Any) -> tuple[Array, Array]:
    """The bounds of a box (d,) in another type, so that no point between them lies outside."""
    least, most = low.astype(dtype), high.astype(dtype)
    least = np.where(least < low, np.nextafter(least, np.asarray(np.inf, dtype)), least)
    return least, np.where(most > high, np.nextafter(most, np.asarray(-np.inf, dtype)), most)


def proofs_of(problem: Problem, blocking: dict[int, BlockingClasses]) -> Proofs:
    """Those blocking classes that prove what they are to, each with the bound <= 0 that it
    certifies."""
    few = list(blocking.values())
    bounds = certify_each_unargmaxable(
        problem.layer, problem.features, list(blocking), few
    ).tolist()
    found = zip(blocking.items(), bounds, strict=True)
    return {t: (some, bound) for (t, some), bound in found if bound <= 0}


@dataclass(frozen=True, eq=False)
class Problem:
    """``W' z + b'`` over a box (``low``, ``high``) or a ball (``radius``)."""

    layer: SoftmaxLayer
    features: FeatureSet
    b: Floats  # (C,) effective bias
    low: Floats | None = None  # (D,)
    high: Floats | None = None  # (D,)
    radius: float | None = None

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.layer.classes

    @property
    def dimension(self) -> int:
        """D: d, plus one for unbounded features of a layer with a bias."""
        return self.layer.dimension + self.homogeneous

    @property
    def homogeneous(self) -> bool:
        """Whether the bias has become the last column of W'."""
        return self.features.is_homogeneous(self.layer.b is not None)

    @property
    def plain(self) -> bool:
        """Whether W' is W itself."""
        return not (self.homogeneous or self.features.own_coordinates)

    @property
    def is_box(self) -> bool:
        """Whether the region is a box (otherwise a ball)."""
        return self.radius is None

    @property
    def scale(self) -> float:
        """Half the widest extent of the region: coordinates divided by it are of order one."""
        if self.low is None or self.high is None:
            assert self.radius is not None
            return self.radius
        return float(np.maximum(np.abs(self.low), np.abs(self.high)).max())

    def rows(self, index: Ints | slice, dtype: Any = np.float32) -> Array:
        """Rows of W' (n, D) in ``dtype``; a view of W where nothing has to change."""
        rows = self.layer.W[index]
        if self.homogeneous:
            bias = self.layer.bias[index].astype(dtype)[..., None]
            return np.concatenate([rows.astype(dtype), bias], axis=-1)
        return self.features.effective_rows(rows, dtype)

    def row_blocks(self, dtype: Any = np.float32) -> list[slice]:
        """Slices of the C rows that stay small when converted; one when nothing is."""
        size = max(1, BLOCK_BYTES // (self.dimension * np.dtype(dtype).itemsize))
        if self.plain and self.layer.W.dtype == dtype:
            size = self.classes
        starts = range(0, self.classes, size)
        return [slice(start, min(start + size, self.classes)) for start in starts]

    def logits(self, Z: Array, dtype: Any = np.float32) -> Array:
        """``W' z + b'`` (n, C) at points Z (n, D), in ``dtype``."""
        Z, bias = Z.astype(dtype, copy=False), self.b.astype(dtype)
        blocks = self.row_blocks(dtype)
        return np.concatenate([Z @ self.rows(k, dtype).T + bias[k] for k in blocks], axis=1)

    @cached_property
    def mean(self) -> Floats:
        """The mean row of W' (D,): classes far from it win easily."""
        total = np.zeros(self.dimension)
        for block in self.row_blocks():
            total += self.rows(block).sum(axis=0, dtype=np.float64)
        return total / self.classes

    def project(self, Z: Array) -> Array:
        """The nearest points of the region to Z (..., D)."""
        if self.is_box:
            low, high = self.corners(Z.dtype)
            # np.clip takes longer over the small groups of a climb
            return np.minimum(np.maximum(Z, low), high)
        norms = np.maximum(np.linalg.norm(Z, axis=-1, keepdims=True), np.finfo(Z.dtype).tiny)
        return Z * np.minimum(1.0, self.inner_radius / norms).astype(Z.dtype)

    @property
    def inner_radius(self) -> float:
        """The ball's radius less room for rounding: projected points are inside."""
        assert self.radius is not None
        return self.radius * (1 - 1e-6)

    def corners(self, dtype: Any) -> tuple[Array, Array]:
        """The box's corners (D,) in ``dtype``, rounded inwards."""
        return self._corners32 if dtype == np.float32 else self._round_inwards(dtype)

    @cached_property
    def _corners32(self) -> tuple[Array, Array]:
        return self._round_inwards(np.float32)

    def _round_inwards(self, dtype: Any) -> tuple[Array, Array]:
        assert self.low is not None
        assert self.high is not None
        return round_inwards(self.low, self.high, dtype)

    def reach(self, directions: Array) -> Array:
        """Points of the region far out along directions (..., D), clipped where lopsided."""
        if not self.is_box:
            assert self.radius is not None
            norms = np.linalg.norm(directions, axis=-1, keepdims=True)
            return self.project(directions * (self.radius / np.maximum(norms, 1e-30)))
        largest = np.abs(directions).max(axis=-1, keepdims=True)
        # a class at the mean row has no direction: it stays put
        step = (self.scale / np.maximum(largest, 1e-30)).astype(directions.dtype)
        return self.project(self.anchor.astype(directions.dtype) + directions * step)

    @cached_property
    def anchor(self) -> Floats:
        """The point of the region nearest to the origin (D,)."""
        return self.project(np.zeros(self.dimension))

    @property
    def box(self) -> tuple[Floats, Floats]:
        """Lower and upper corner (D,) of the box, or of the one around the ball."""
        if self.low is not None and self.high is not None:
            return self.low, self.high
        radius = self.scale * np.ones(self.dimension)
        return -radius, radius

    def support(self, V: Floats) -> Floats:
        """``max of v.z over the region`` for V (..., D), in plain float64: not certified."""
        if self.low is not None and self.high is not None:
            return np.maximum(V * self.low, V * self.high).sum(axis=-1)
        assert self.radius is not None
        return self.radius * np.linalg.norm(V, axis=-1)

    def lift(self, z: Array, margin: float) -> Array:
        """The point in the coordinates of the evidence: x itself, u for an ellipsoid, x = z / tau
        when unbounded.

        Where tau is too small to divide by, it is raised: that changes each margin by at most half
        of ``margin``.
        """
        if not self.homogeneous:
            return z
        spread = float(np.ptp(self.layer.bias.astype(float)))
        least = margin / (4 * spread) if spread else 1.0
        return z[:-1] / max(float(z[-1]), least, np.finfo(np.float32).tiny)


def make_problem(layer: SoftmaxLayer, features: FeatureSet) -> Problem:
    """The form ``W' z + b'`` over a box or a ball; ValueError for a set of another dimension."""
    features.check(layer.dimension)
    has_bias = layer.b is not None
    region = features.region(layer.dimension, has_bias)
    b = np.zeros(layer.classes)
    if not features.is_homogeneous(has_bias):
        b = features.effective_bias(layer.W, layer.bias.astype(np.float64))
    return Problem(layer, features, b, region.low, region.high, region.radius)
