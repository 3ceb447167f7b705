"""Margins at points and bounds from weights: what evidence about one layer certifies, whatever
rounding did.

For a point in the coordinates of the evidence (x, or u for an ellipsoid) and an order of classes
the checker returns a number that is at most the smallest difference that the order demands, in
exact arithmetic, and -inf when the point is not certainly inside the feature set. A positive number
is a proof that the order is possible. A class is the order ``{t} > rest``: those are taken many at
once.

Three routes, each for what the one before left open: float32 products (when the layer is that
narrow), float64 products, fractions for the logits that float64 cannot separate. Each product
carries ``gamma_n |w|.|x|`` (rounding.py), bounded by norms so that it costs nothing next to the
product. Whoever claims a margin gives away a little of it (SPARE), so that another machine, whose
products round otherwise, mostly confirms it without fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from softgeom.arrays import Array, Bools, Floats, Ints
from softgeom.certifying.hull import COMFORT, certify_comparisons, exact_row, prove_comparisons
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import Comparisons
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.rounding import as_floats, demand_standard_model, gamma, norm_up, shrink, underflow
from softgeom.scaling import in_units

TILE_BYTES = 32 * 2**20  # logits held at once
POSITIVE = 5e-324  # a margin that only claims to be positive
SPARE = (
    0.125  # of a logit's error: what a claim leaves to other machines; they differ by .05 at most
)
# a candidate with more rivals within float64 rounding than this is left to the proofs
CLOSE_RIVALS = 256
SUBNORMAL = 1e-300  # quotients below this may have lost bits


class Checker:
    """Checks evidence about one layer and one feature set; holds row norms so that they are
    computed once.
    """

    def __init__(self, layer: SoftmaxLayer, features: FeatureSet) -> None:
        demand_standard_model()
        features.check(layer.dimension)
        self.layer, self.features = layer, features
        self._units = in_units(layer, features, COMFORT)
        self._layer, self._features = self._units.layer, self._units.features

    # ---- Points

    def certify(self, points: Array, classes: Ints, claimed: Floats | None = None) -> Floats:
        """Certified lower bounds (n,) on margins of ``classes`` (n,) at ``points`` (n, d); where
        margins > 0 are ``claimed`` (n,), bounds that reach them if they are true.
        """
        points, classes = _as_they_are(points), np.asarray(classes, dtype=np.intp)
        if points.shape != (len(classes), self.layer.dimension):
            raise ValueError(
                f"{len(classes)} witnesses need shape "
                f"{(len(classes), self.layer.dimension)}, not {points.shape}."
            )
        least = np.full(len(classes), POSITIVE) if claimed is None else claimed
        most = CLOSE_RIVALS if claimed is None else self.layer.classes
        if points.dtype == object:
            each = zip(classes, points, least.tolist(), strict=True)
            return np.array([self.margin(wins(t), z, margin) for t, z, margin in each])
        moved, kept = points, np.ones(len(points), dtype=bool)
        if self._units.coordinates:
            moved, kept = self._units.points_to(points.astype(np.float64))
        margins = np.full(len(classes), -np.inf)
        # an overflow ends as -inf: not certified
        with np.errstate(over="ignore", invalid="ignore"):
            inside = self._inside(moved) & kept
            if self.layer.classes == 1:  # nobody to beat
                return np.where(inside, np.inf, -np.inf)
            for dtype in (np.float32, np.float64) if self.is_narrow(moved) else (np.float64,):
                open_ = np.flatnonzero(inside & ~(margins >= least))
                if len(open_):
                    found = self._margins(moved[open_], classes[open_], dtype, claimed is None)
                    margins[open_] = np.maximum(margins[open_], self._back(found))
            doubt = np.abs(self._back(self._doubt(moved)))
            # a NaN, where norms are beyond float64, leaves it to the fractions
            near = inside & ~(margins >= least) & ~(margins + doubt < least)
        for n in np.flatnonzero(near):  # fractions only where rounding decides
            margins[n] = max(margins[n], self.margin(wins(classes[n]), points[n], np.inf, most))
        return margins

    def certify_many(
        self, points: Sequence[Array], classes: Ints | Sequence[int], claimed: Floats | None = None
    ) -> Floats:
        """``certify`` for points (d,) of mixed dtypes, those of one dtype together."""
        margins, classes = np.full(len(points), -np.inf), np.asarray(classes, dtype=np.intp)
        kinds = np.array([np.result_type(point, np.float32).char for point in points])
        for kind in np.unique(kinds):
            chosen = np.flatnonzero(kinds == kind)
            stacked = np.stack([points[int(n)] for n in chosen])
            some = None if claimed is None else claimed[chosen]
            margins[chosen] = self.certify(stacked, classes[chosen], some)
        return margins

    def margin(
        self, order: Order, point: Array, claimed: float = POSITIVE, most: int | None = None
    ) -> float:
        """Lower bound on the margin of an order at one point (d,) of floats or fractions, as tight
        as it takes to reach what is claimed; -inf outside the feature set.

        With more than ``most`` logits within rounding of a block's last or first one, nothing is
        tried in fractions.
        """
        placed = self._place(point)
        if placed is None:
            return -np.inf
        if not order.comparisons(self.layer.classes):
            return np.inf
        z, y, error = placed
        lead = order.margin(y) - 2 * error
        certain = self._units.margin_back(lead)
        if lead > 0 and certain >= claimed:
            spare = lead - SPARE * error if claimed == POSITIVE else lead
            return self._units.margin_back(spare) if spare > 0 else certain
        smallest = self._exact_lead(order, z, y, error, most)
        # back in the given units before it is rounded: below float64's range it is POSITIVE there,
        # and in no other unit
        unit = Fraction(2) ** self._units.margins
        return certain if smallest is None else round_down(smallest * unit)

    def exact_margin(self, order: Order, point: Array) -> Fraction | None:
        """The margin of an order at a point of the feature set (d,); None where it is not positive,
        or no comparison is demanded.
        """
        placed = self._place(point)
        lead = None if placed is None else self._exact_lead(order, *placed, None)
        return None if lead is None or lead <= 0 else lead * Fraction(2) ** self._units.margins

    def logits(self, x: Array) -> Floats:
        """``W x + b`` (C,) in float64, by blocks of rows."""
        return _float_logits(self.layer, x.astype(np.float64))

    def radius(self, classes: Ints, margins: Floats) -> Floats:
        """Lower bounds (n,) on ``min_i margin_i / ||w_t - w_i||``, from ``||w_t - w_i|| <= ||w_t||
        + max_i ||w_i||``.
        """
        own = norm_up(self._layer.W[classes].astype(np.float64))
        span = own + self._norms[0]  # both rounded up by more than sum and quotient are rounded
        with np.errstate(over="ignore", under="ignore"):
            # POSITIVE says nothing about a size
            margins = shrink(np.where(margins > POSITIVE, margins, 0.0), -self._units.margins)
            radii = np.divide(margins, span, out=np.full(len(span), np.inf), where=span > 0)
            finite = (span > 0) & (margins < np.inf)
            radii = np.where(finite, np.minimum(radii, np.finfo(float).max), radii)
            # there rounding beats any inflation
            radii = np.where(radii < SUBNORMAL, np.nextafter(radii, 0.0), radii)
            return shrink(radii, self._units.points)

    def proves_radius(self, t: int, radius: float, margin: Fraction) -> bool:
        """Whether a margin of at least ``margin`` > 0 makes ``radius`` true, in exact
        arithmetic.
        """
        own = float(norm_up(self._layer.W[t].astype(np.float64)))
        if not np.isfinite(own + self._norms[0]):
            return radius == 0
        span = (Fraction(own) + Fraction(self._norms[0])) * Fraction(2) ** self._units.rows
        if not span:
            return radius >= 0
        # Another machine's norms are rounded otherwise, by far less than these were rounded up.
        return 0 <= radius < np.inf and Fraction(radius) * span <= margin * (1 + Fraction(1, 2**31))

    def ahead(self, t: int, point: Array) -> int:
        """How many classes at most are level with class t or ahead of it at one point (d,): those
        that float64 does not certainly put below it, and outside the set all others.
        """
        placed = self._place(point)
        if placed is None:
            return self.layer.classes - 1
        _, y, error = placed
        return int(np.count_nonzero(y >= y[t] - 2 * error)) - 1

    def look_error(self, points: Array) -> Floats | None:
        """What to take off the margins of a float32 look at these x to certify them; None where
        that is not valid.
        """
        if not self.is_narrow(points):
            return None
        error = (2 + SPARE) * self._error(points, np.zeros(len(points)), np.float32)
        return np.where(self._features.contains(points.astype(np.float64)), error, np.inf)

    def contains(self, points: Array) -> Bools:
        """Which points (n, d) lie in the set (n,)."""
        moved, kept = self._units.points_to(points)
        return self._inside(moved) & kept

    # ---- Weights

    def bound(self, order: Order, evidence: Comparisons) -> float:
        """Upper bound on the order's best margin that comparisons prove; inf when they prove
        nothing about it.
        """
        if not order.demands(evidence.above, evidence.below, self.layer.classes):
            return np.inf
        return certify_comparisons(
            self.layer, self.features, evidence.above, evidence.below, evidence.weights
        )

    def proves(self, order: Order, evidence: Comparisons, margin: float) -> bool:
        """Whether comparisons prove that the order's best margin is at most ``margin`` <= 0."""
        above, below = evidence.above, evidence.below
        return order.demands(above, below, self.layer.classes) and prove_comparisons(
            self.layer, self.features, above, below, evidence.weights, margin
        )

    # ---- In the units of the layer that is computed with

    def _back(self, margins: Floats) -> Floats:
        if not self._units.margins:
            return margins
        return np.array([self._units.margin_back(margin) for margin in margins.tolist()])

    def _inside(self, points: Array) -> Bools:
        """Which points (n, d) lie in the set (n,): fractions where float64 is not certain, as on
        the boundary itself.
        """
        inside = self._features.contains(points.astype(np.float64))
        for n in np.flatnonzero(~inside):
            if np.isfinite(points[n]).all():
                inside[n] = self._features.contains_exactly(
                    [Fraction(value) for value in points[n].tolist()]
                )
        return inside

    def _place(self, point: Array) -> tuple[list[Fraction], Floats, float] | None:
        """A point of the set (d,) as fractions, its logits (C,) in float64, and what each of those
        may be off by; None outside.
        """
        point = _as_they_are(point)
        if point.shape != (self.layer.dimension,) or not all(
            isinstance(value, Fraction) or np.isfinite(value) for value in point
        ):
            return None
        unit = Fraction(2) ** self._units.coordinates
        z = [(v if isinstance(v, Fraction) else Fraction(float(v))) / unit for v in point]
        rounded = np.array([_to_float(value) for value in z])
        as_it_is = point.dtype != object and not self._units.coordinates
        certain = as_it_is and self._features.contains(rounded[None])[0]
        if not certain and not self._features.contains_exactly(z):
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            x, moved = self._features.features_at(rounded[None])
            y = _float_logits(self._layer, x[0].astype(np.float64))
            # Twice: the point itself was rounded, by less than the products are.
            error = 2 * float(self._error(x.astype(np.float64), moved, np.float64)[0])
        if np.isfinite(y).all() and np.isfinite(error) and (as_it_is or _are_near(rounded, z)):
            return z, y, error
        return z, np.zeros(len(y)), np.inf  # float64 says nothing about what is beyond its range

    def _exact_lead(
        self, order: Order, z: list[Fraction], y: Floats, error: float, most: int | None
    ) -> Fraction | None:
        """The smallest difference that the order demands at z (d,), of logits that are within
        ``error`` of y (C,); None where it is certainly negative, nothing is demanded, or more than
        ``most`` logits would have to be computed.
        """
        x, smallest = self._features.features_exactly(z), None
        known: dict[int, Fraction] = {}
        for upper, lower in order.steps(len(y)):
            low, high = y[upper].min(), y[lower].max()
            if low - high < -2 * error:
                return None
            # Only these can be the lowest of the upper block and the highest of the lower one.
            ups = upper[y[upper] <= low + 2 * error].tolist()
            downs = lower[y[lower] >= high - 2 * error].tolist()
            if most is not None and len(ups) + len(downs) > most + 1:
                return None
            for i in {*ups, *downs} - set(known):
                known[i] = _exact_logit(self._layer, i, x)
            lead = min(known[i] for i in ups) - max(known[i] for i in downs)
            smallest = lead if smallest is None else min(smallest, lead)
        return smallest

    def _doubt(self, points: Array) -> Floats:
        """How far above its certified lower bound the margin of a point can be after float64
        products (n,).
        """
        x, moved = self._features.features_at(points)
        return 8 * self._error(x, moved, np.float64)

    def is_narrow(self, points: Array) -> bool:
        """Whether float32 represents W, b and the points exactly, and nothing is scaled."""
        arrays = [self._layer.W, points] + ([] if self._layer.b is None else [self._layer.b])
        return (
            all(a.dtype in (np.float16, np.float32) for a in arrays)
            and not self._features.own_coordinates
            and not self._units.coordinates
        )

    @cached_property
    def _norms(self) -> tuple[float, float]:
        """Upper bounds on the largest row norm and on the largest |b|."""
        size = max(1, TILE_BYTES // (8 * self._layer.dimension))
        largest = 0.0
        for start in range(0, self._layer.classes, size):
            rows = self._layer.W[start : start + size].astype(np.float64)
            largest = max(largest, float(norm_up(rows).max()))
        b = 0.0 if self._layer.b is None else float(np.abs(self._layer.b.astype(np.float64)).max())
        return largest, b

    def _error(self, x: Array, moved: Floats, dtype: Any) -> Floats:
        """A bound on the error of every logit computed at each x (n,), and on its part in the
        rounding of margins.

        d products and the bias are d + 1 roundings of at most ``|w||x| + |b|``. A margin has two
        more, of the difference of two logits and of that less both their errors: each at most twice
        that size.
        """
        d = self._layer.dimension
        w_norm, b_norm = self._norms
        size = w_norm * norm_up(x.astype(np.float64)) + b_norm
        # a larger sum may overflow on its way, and end anywhere
        size = np.where(size < np.finfo(dtype).max / 2, size, np.inf)
        return gamma(d + 4, dtype) * size + w_norm * moved + underflow(d + 4, dtype)

    def _margins(self, points: Array, classes: Ints, dtype: Any, claims: bool) -> Floats:
        x, moved = self._features.features_at(points)
        own, best = self._own_and_best(np.ascontiguousarray(x, dtype=dtype), classes, dtype)
        margin = own.astype(np.float64) - best.astype(np.float64)
        margin -= (2 + SPARE * claims) * self._error(x, moved, dtype)
        return np.where(np.isnan(margin), -np.inf, margin)

    def _own_and_best(self, x: Array, classes: Ints, dtype: Any) -> tuple[Array, Array]:
        """The logits of each class and of its best rival at x (n, d), from the same product."""
        layer, n = self._layer, np.arange(len(classes))
        own, best = np.full(len(classes), np.nan, dtype), np.full(len(classes), -np.inf, dtype)
        width = max(256, TILE_BYTES // (max(len(x), layer.dimension) * np.dtype(dtype).itemsize))
        for start in range(0, layer.classes, width):
            Y = x @ layer.W[start : start + width].astype(dtype, copy=False).T
            if layer.b is not None:
                Y += layer.b[start : start + width].astype(dtype, copy=False)
            here = n[(classes >= start) & (classes < start + Y.shape[1])]
            own[here] = Y[here, classes[here] - start]
            Y[here, classes[here] - start] = -np.inf
            np.maximum(best, Y.max(axis=1), out=best)  # a NaN stays a NaN: never certified
        return own, best


def wins(t: int | np.integer[Any]) -> Order:
    """The order that says that class t wins: ``{t} > rest``."""
    return Order([[int(t)]], rest=True)


def round_down(value: Fraction) -> float:
    """A float that is no better than an exact margin: towards zero, and positive where that is."""
    near = _to_float(value)
    if abs(Fraction(near)) > abs(value):
        near = float(np.nextafter(near, 0.0))
    return max(near, POSITIVE) if value > 0 else min(near, 0.0)


def _as_they_are(points: Array) -> Array:
    """Points of floats or fractions; others as float64, ValueError where that would move them."""
    array = np.asarray(points)
    kept = array.dtype in (np.float16, np.float32, np.float64, object)
    return array if kept else as_floats(array, "A point")


def _are_near(rounded: Floats, z: list[Fraction]) -> bool:
    """Whether each float is its fraction, but for a relative rounding: not one below the normal
    range, nor cut off at its end.
    """
    info = np.finfo(float)
    inside = (np.abs(rounded) >= info.tiny) & (np.abs(rounded) < info.max)
    return all(
        near or Fraction(float(value)) == exact
        for near, value, exact in zip(inside, rounded, z, strict=True)
    )


def _to_float(value: Fraction) -> float:
    """The nearest float, the largest where there is none."""
    try:
        return float(value)
    except OverflowError:
        return float(np.copysign(np.finfo(float).max, 1 if value > 0 else -1))


def _float_logits(layer: SoftmaxLayer, x: Floats) -> Floats:
    """All logits (C,) at one x in float64, by blocks of rows."""
    size = max(1, TILE_BYTES // (8 * layer.dimension))
    blocks = [layer.W[i : i + size].astype(np.float64) @ x for i in range(0, layer.classes, size)]
    return np.concatenate(blocks) + layer.bias.astype(np.float64)


def _exact_logit(layer: SoftmaxLayer, i: int, x: list[Fraction]) -> Fraction:
    row, bias = exact_row(layer, i)
    return sum((w * v for w, v in zip(row, x, strict=True) if w and v), bias)
