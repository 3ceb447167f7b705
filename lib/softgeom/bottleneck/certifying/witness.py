"""Certified margins: does this feature vector make this class win, whatever rounding did?

For a point in the coordinates of the evidence (x, or u for an ellipsoid) and a class t the checker
returns a number that is at most ``min_{i != t} (w_t - w_i).x + b_t - b_i`` in exact arithmetic, and
-inf when the point is not certainly inside the feature set. A positive number is a proof that t is
argmaxable.

Three routes, each for what the one before left open: float32 products (when the layer is that
narrow), float64 products, exact fractions for the rivals that float64 cannot separate. Each product
carries ``gamma_n |w|.|x|`` (rounding.py), bounded by norms so that it costs nothing next to the
product.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.partial import PartialLook, partial_look
from softgeom.bottleneck.scaling import in_units
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.rounding import gamma, norm_up, shrink, underflow

TILE_BYTES = 32 * 2**20  # logits held at once
LOOKED = 1024  # points taken at once
# a candidate with more rivals within float64 rounding than this is left to the proofs
CLOSE_RIVALS = 256
SUBNORMAL = 1e-300  # quotients below this may have lost bits
# sizes between 2^-40 and 2^40 need no scaling: no product of theirs leaves the range of float64
COMFORT = 40


class WitnessChecker:
    """Re-checks witnesses of one layer and one feature set; holds row norms so that they are
    computed once.
    """

    def __init__(self, layer: SoftmaxLayer, features: FeatureSet) -> None:
        features.check(layer.dimension)
        self._units = in_units(layer, features, COMFORT)
        self.layer, self.features = self._units.layer, self._units.features

    def certify(self, points: NDArray[Any], classes: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return certified lower bounds (n,) on the margins of ``classes`` (n,) at ``points`` (n,
        d).

        Raises
        ------
        ValueError
            If the shapes do not fit the layer.
        """
        points, classes = np.asarray(points), np.asarray(classes, dtype=np.intp)
        if points.shape != (len(classes), self.layer.dimension):
            raise ValueError(
                f"{len(classes)} witnesses need shape "
                f"{(len(classes), self.layer.dimension)}, not {points.shape}."
            )
        if points.dtype == object:
            return np.array(
                [self.exact_margin(z, int(t))[0] for z, t in zip(points, classes, strict=True)]
            )
        kept = np.ones(len(points), dtype=bool)
        if self._units.coordinates:
            points, kept = self._units.points_to(points.astype(np.float64))
        margins = np.full(len(classes), -np.inf)
        # an overflow ends as -inf: not certified
        with np.errstate(over="ignore", invalid="ignore"):
            inside = self._inside(points) & kept
            if self.layer.classes == 1:  # nobody to beat
                return np.where(inside, np.inf, -np.inf)
            for dtype in (np.float32, np.float64) if self._is_narrow(points) else (np.float64,):
                open_ = np.flatnonzero(inside & ~(margins > 0))
                if len(open_):
                    margins[open_] = np.maximum(
                        margins[open_], self._margins(points[open_], classes[open_], dtype)
                    )
            near = (
                inside & ~(margins > 0) & (margins + self._doubt(points) > 0)
            )  # fractions only where rounding decides
        for n in np.flatnonzero(near):
            z = [Fraction(float(value)) for value in points[n]]
            margins[n] = max(margins[n], self._exact_margin(z, int(classes[n]), CLOSE_RIVALS)[0])
        return (
            np.array([self._units.margin_back(margin) for margin in margins])
            if self._units.margins
            else margins
        )

    def exact_margin(self, point: NDArray[Any], t: int) -> tuple[float, NDArray[np.intp]]:
        """Certified margin of class t at one point (d,) of floats or fractions, and the rivals it
        does not beat.

        Rivals come strongest first. The margin is -inf for a point outside the feature set.
        """
        if len(point) != self.layer.dimension or not 0 <= t < self.layer.classes:
            return -np.inf, np.zeros(0, np.intp)
        if not all(isinstance(value, Fraction) or np.isfinite(value) for value in point):
            return -np.inf, np.zeros(0, np.intp)
        unit = Fraction(2) ** self._units.coordinates
        z = [
            (value if isinstance(value, Fraction) else Fraction(float(value))) / unit
            for value in point
        ]
        if not self.features.contains_exactly(z):
            return -np.inf, np.zeros(0, np.intp)
        margin, stronger = self._exact_margin(z, t, self.layer.classes)
        return self._units.margin_back(margin), stronger

    def certify_many(
        self, points: Sequence[NDArray[Any]], classes: Sequence[int]
    ) -> NDArray[np.float64]:
        """``certify`` for points (d,) of mixed dtypes, those of one dtype together."""
        margins = np.full(len(points), -np.inf)
        kinds = np.array([np.result_type(point, np.float32).char for point in points])
        for kind in np.unique(kinds):
            chosen = np.flatnonzero(kinds == kind)
            stacked = np.stack([points[int(n)] for n in chosen])
            margins[chosen] = self.certify(
                stacked, np.array([classes[int(n)] for n in chosen], dtype=np.intp)
            )
        return margins

    def wins(self, points: Sequence[NDArray[Any]], classes: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether each class (n,) certainly wins at its point (d,): ``certify_many(...) > 0``,
        without the margins where that is cheaper.
        """
        won = np.zeros(len(points), dtype=bool)
        look = self.partial_look(points, classes)
        if look is not None:
            parts = [slice(n, n + LOOKED) for n in range(0, len(points), LOOKED)]
            won = np.concatenate(
                [self.certify_by(look, np.stack(points[part]), classes[part]) > 0 for part in parts]
            )
        open_ = np.flatnonzero(~won).tolist()
        for start in range(0, len(open_), LOOKED):
            part = open_[start : start + LOOKED]
            won[part] = (
                self.certify_many([points[n] for n in part], [int(classes[n]) for n in part]) > 0
            )
        return won

    def partial_look(
        self, points: Sequence[NDArray[Any]], classes: NDArray[np.intp]
    ) -> PartialLook | None:
        """The partial look that costs least for classes (n,) at points (d,) like these; None where
        a full one does, or only that is valid.
        """
        if (
            self._units.coordinates
            or not points
            or not all(self._is_narrow(point) for point in points)
        ):
            return None
        return partial_look(self.layer, points, classes)

    def certify_by(
        self, look: PartialLook, points: NDArray[np.float32], classes: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Certified lower bounds (n,) on the margins of classes (n,) at points (n, d), -inf outside
        the set; below those of ``certify``.
        """
        return np.where(self._inside(points), look.margins(points, classes), -np.inf)

    def radius(
        self, classes: NDArray[np.intp], margins: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Lower bounds (n,) on ``min_i margin_i / ||w_t - w_i||``, from ``||w_t - w_i|| <= ||w_t||
        + max_i ||w_i||``.
        """
        own = norm_up(self.layer.W[classes].astype(np.float64))
        span = own + self._norms[0]  # both rounded up by more than sum and quotient are rounded
        with np.errstate(over="ignore", under="ignore"):
            margins = shrink(margins, -self._units.margins)
            radii = np.divide(margins, span, out=np.full(len(span), np.inf), where=span > 0)
            # there rounding beats any inflation
            radii = np.where(radii < SUBNORMAL, np.nextafter(radii, 0.0), radii)
            return shrink(radii, self._units.points)

    def _inside(self, points: NDArray[Any]) -> NDArray[np.bool_]:
        """Which points (n, d) lie in the set (n,): fractions where float64 is not certain, as on
        the boundary itself.
        """
        inside = self.features.contains(points.astype(np.float64))
        for n in np.flatnonzero(~inside):
            if np.isfinite(points[n]).all():
                inside[n] = self.features.contains_exactly(
                    [Fraction(value) for value in points[n].tolist()]
                )
        return inside

    def _doubt(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """How far above its certified lower bound the margin of a point can be after float64
        products (n,).
        """
        x, moved = self.features.features_at(points)
        return 8 * self._error(x, moved, np.float64)

    def rounding_slack(self, point: NDArray[Any]) -> float:
        """How far apart two float64 logits at one point (d,) must be to be certainly in that order."""
        return float(self._doubt(np.asarray(point)[None])[0])

    def tolerance(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """How far apart the certified margins of two machines can be at each of these points (n,
        d).
        """
        units = self._units
        moved_points = (
            units.points_to(np.asarray(points, dtype=np.float64))[0]
            if units.coordinates
            else points
        )
        x, moved = self.features.features_at(moved_points)
        dtype = np.float32 if self._is_narrow(points) else np.float64
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(4 * self._error(x, moved, dtype), units.margins)

    def look_error(self, points: NDArray[Any]) -> NDArray[np.float64] | None:
        """What to take off the margins of a float32 look at these x to certify them; None where
        that is not valid.
        """
        if not self._is_narrow(points):
            return None
        error = 2 * self._error(points, np.zeros(len(points)), np.float32)
        return np.where(self.features.contains(points.astype(np.float64)), error, np.inf)

    def _is_narrow(self, points: NDArray[Any]) -> bool:
        """Whether float32 represents W, b and the points exactly."""
        arrays = [self.layer.W, points] + ([] if self.layer.b is None else [self.layer.b])
        return (
            all(a.dtype in (np.float16, np.float32) for a in arrays)
            and not self.features.own_coordinates
        )

    @cached_property
    def _norms(self) -> tuple[float, float]:
        """Upper bounds on the largest row norm and on the largest |b|."""
        size = max(1, TILE_BYTES // (8 * self.layer.dimension))
        largest = 0.0
        for start in range(0, self.layer.classes, size):
            rows = self.layer.W[start : start + size].astype(np.float64)
            largest = max(largest, float(norm_up(rows).max()))
        b = 0.0 if self.layer.b is None else float(np.abs(self.layer.b.astype(np.float64)).max())
        return largest, b

    def _error(
        self, x: NDArray[Any], moved: NDArray[np.float64], dtype: Any
    ) -> NDArray[np.float64]:
        """A bound on the error of every logit computed at each x (n,), and on its part in the
        rounding of margins.

        d products and the bias are d + 1 roundings of at most ``|w||x| + |b|``. A margin has two
        more, of the difference of two logits and of that less both their errors: each at most twice
        that size.
        """
        d = self.layer.dimension
        w_norm, b_norm = self._norms
        x_norm = norm_up(x.astype(np.float64))
        return (
            gamma(d + 4, dtype) * (w_norm * x_norm + b_norm)
            + w_norm * moved
            + underflow(d + 4, dtype)
        )

    def _margins(
        self, points: NDArray[Any], classes: NDArray[np.intp], dtype: Any
    ) -> NDArray[np.float64]:
        x, moved = self.features.features_at(points)
        own, best = self._own_and_best(np.ascontiguousarray(x, dtype=dtype), classes, dtype)
        margin = own.astype(np.float64) - best.astype(np.float64)
        margin -= 2 * self._error(x, moved, dtype)
        return np.where(np.isnan(margin), -np.inf, margin)

    def _own_and_best(
        self, x: NDArray[Any], classes: NDArray[np.intp], dtype: Any
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The logits of each class and of its best rival at x (n, d), from the same product."""
        layer, n = self.layer, np.arange(len(classes))
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

    def _exact_margin(self, z: list[Fraction], t: int, most: int) -> tuple[float, NDArray[np.intp]]:
        """The margin with the close rivals taken in fractions and all others bounded in float64,
        rounded down.

        -inf with more than ``most`` close rivals. Beside it the rivals that are not beaten,
        strongest first.
        """
        if self.layer.classes == 1:
            return np.inf, np.zeros(0, np.intp)
        rounded = np.array([_to_float(value) for value in z])
        with np.errstate(over="ignore", invalid="ignore"):
            x, moved = self.features.features_at(rounded[None])
            logits = _float_logits(self.layer, x[0].astype(np.float64))
            # Twice: the point itself was rounded, by less than the products are.
            error = 2 * float(self._error(x.astype(np.float64), moved, np.float64)[0])
            gap = logits[t] - np.delete(logits, t)
            far = gap > 4 * error
        rivals = np.delete(np.arange(self.layer.classes), t)
        close = rivals[~far]
        if len(close) > most:
            return -np.inf, np.zeros(0, np.intp)
        exact_x = self.features.features_exactly(z)
        own = _exact_logit(self.layer, t, exact_x)
        exact = {int(i): own - _exact_logit(self.layer, int(i), exact_x) for i in close}
        lead = [Fraction(float(gap[far].min()) - 3 * error)] if far.any() else []
        smallest = min([*exact.values(), *lead])
        stronger = sorted((i for i, value in exact.items() if value <= 0), key=exact.__getitem__)
        value = _to_float(smallest)
        if abs(Fraction(value)) > abs(smallest):
            value = float(np.nextafter(value, 0.0))
        # positive is positive, however small
        margin = max(value, 5e-324) if smallest > 0 else min(value, 0.0)
        return margin, np.array(stronger, dtype=np.intp)


def _to_float(value: Fraction) -> float:
    """The nearest float, the largest where there is none."""
    try:
        return float(value)
    except OverflowError:
        return float(np.copysign(np.finfo(float).max, 1 if value > 0 else -1))


def _float_logits(layer: SoftmaxLayer, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """All logits (C,) at one x in float64, by blocks of rows."""
    size = max(1, TILE_BYTES // (8 * layer.dimension))
    blocks = [layer.W[i : i + size].astype(np.float64) @ x for i in range(0, layer.classes, size)]
    return np.concatenate(blocks) + layer.bias.astype(np.float64)


def _exact_logit(layer: SoftmaxLayer, i: int, x: list[Fraction]) -> Fraction:
    terms = (
        Fraction(w) * v
        for w, v in zip(layer.W[i].astype(float).tolist(), x, strict=True)
        if w and v
    )
    return sum(terms, Fraction(0) if layer.b is None else Fraction(float(layer.b[i])))
