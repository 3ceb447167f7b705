"""A class decided in exact arithmetic, where floating point cannot: every verdict is rational, over
every feature set.

Rows, biases, boxes and squared radii are rational. Over a box (and the cone of unbounded features)
the best margin is a linear programme (simplex.py). Over a ball: if no z in the box around it wins,
those weights are the proof; otherwise the set ``D z + c >= 0`` has interior and a rational nearest
point z* (least_distance.py), and the class wins in the ball iff ``||z*|| < r``, near z*. A working
set of rivals grows by those that a candidate does not beat, as in decide.py.
"""

from __future__ import annotations

import contextlib
import time
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.checker import Checker, wins
from softgeom.bottleneck.certifying.hull import exact_row
from softgeom.bottleneck.certifying.verdict import Captors, Witness
from softgeom.bottleneck.proving.least_distance import nearest_point
from softgeom.bottleneck.proving.simplex import TooLargeError, best_margin
from softgeom.layer import FeatureSet, SoftmaxLayer

MOST_FEATURES = 32  # seconds a class there; entries of the tableau grow with the dimension
MOST_RIVALS = 400  # in the working set
SECONDS = 30.0

Row = list[Fraction]


def decide_exactly(
    layer: SoftmaxLayer,
    features: FeatureSet,
    t: int,
    rivals: NDArray[np.intp],
    *,
    seconds: float = SECONDS,
) -> Witness | Captors:
    """A witness or captors of class t, whose points or weights are fractions where floats do not
    do.

    Parameters
    ----------
    layer, features
        The layer (C, d) and where x may lie.
    t : int
        The class.
    rivals : (k,) integer array
        The first working set; others join as needed.
    seconds : float
        Time that it may take.

    Raises
    ------
    TooLargeError
        If there are too many features or rivals, or the time is over.
    """
    if layer.dimension > MOST_FEATURES:
        raise TooLargeError(
            f"{layer.dimension} features are too many for exact arithmetic (at most "
            f"{MOST_FEATURES})"
        )
    deadline = time.monotonic() + seconds
    checker = Checker(layer, features)
    own, bias = features.reduce_exactly(*exact_row(layer, t))
    working = [int(i) for i in rivals if i != t] or [0 if t else 1]
    D, c = [], []  # type: ignore[var-annotated]
    while True:
        for i in working[len(D) :]:
            row, b = features.reduce_exactly(*exact_row(layer, i))
            D.append([p - q for p, q in zip(own, row, strict=True)])
            c.append(bias - b)
        z, weights = decide_region(layer, features, D, c, deadline - time.monotonic())
        if z is None:
            used = [n for n, weight in enumerate(weights) if weight]
            return Captors(
                np.array([working[n] for n in used]),
                np.array([weights[n] for n in used], dtype=object),
            )
        for point in shorter(z):
            if features.contains_exactly(_fractions(point)) and _wins(D, c, _fractions(point)):
                break
        if checker.margin(wins(t), point) > 0:
            return Witness(point)
        exact = np.array(_fractions(point), dtype=object)
        if checker.margin(wins(t), exact) > 0:  # products of the floats overflow
            return Witness(exact)
        fresh = [int(i) for i in checker.not_beaten(t, exact) if int(i) not in set(working)][:64]
        if not fresh or len(working) + len(fresh) > MOST_RIVALS:
            raise TooLargeError(
                f"{len(working) + len(fresh)} rivals are too many for exact arithmetic (at "
                f"most {MOST_RIVALS})"
            )
        working += fresh


def decide_region(
    layer: SoftmaxLayer, features: FeatureSet, D: list[Row], c: Row, seconds: float
) -> tuple[Row | None, Row]:
    """A z that wins against the working set, or None and the weights that say why there is none."""
    has_bias = layer.b is not None
    region, homogeneous = (
        features.region(layer.dimension, has_bias),
        features.is_homogeneous(has_bias),
    )
    if region.radius is not None:
        return _decide_ball(Fraction(region.radius), D, c, seconds)
    assert region.low is not None
    assert region.high is not None
    low, high = (
        [Fraction(v) for v in region.low.tolist()],
        [Fraction(v) for v in region.high.tolist()],
    )
    if not homogeneous:
        found = best_margin(D, c, low, high, seconds=seconds)
        return (found.z if found.value > 0 else None), found.weights
    found = best_margin(
        [[*row, value] for row, value in zip(D, c, strict=True)],
        [Fraction(0)] * len(D),
        low,
        high,
        seconds=seconds,
    )
    if found.value <= 0 or found.z is None:
        return None, found.weights
    *x, tau = found.z
    if not tau:  # wins far out: a small tau costs less than the margin
        tau = min(Fraction(1), found.value / (2 * max(abs(value) for value in c) or 1))
    return [value / tau for value in x], []


def _decide_ball(radius: Fraction, D: list[Row], c: Row, seconds: float) -> tuple[Row | None, Row]:
    d = len(D[0])
    found = best_margin(D, c, [-radius] * d, [radius] * d, seconds=seconds)
    if found.value <= 0 or found.z is None:
        return None, found.weights
    z, square = found.z, radius * radius
    if _square(z) <= square:
        return z, []
    nearest, weights = nearest_point(D, [-value for value in c], seconds=seconds)
    if _square(nearest) >= square:
        return None, weights
    # towards a point of the closed set that lies inside: every point before it wins
    while _square(z) > square:
        z = [(p + q) / 2 for p, q in zip(z, nearest, strict=True)]
    return z, []


def _square(z: Row) -> Fraction:
    return sum((value * value for value in z), Fraction(0))


def _wins(D: list[Row], c: Row, z: Row) -> bool:
    return all(
        sum((a * b for a, b in zip(row, z, strict=True) if a), value) > 0
        for row, value in zip(D, c, strict=True)
    )


def shorter(z: Row) -> list[NDArray[np.generic]]:
    """The point as floats, as fractions of ever more bits, as it is: the first that still wins will
    do.
    """
    points = []
    with np.errstate(over="ignore"), contextlib.suppress(OverflowError):
        points.append(np.array([float(value) for value in z]))
    size = max((abs(value) for value in z), default=Fraction(0))
    lead = size.numerator.bit_length() - size.denominator.bit_length() if size else 0
    for bits in (64, 128, 256, 512):
        unit = Fraction(2) ** (lead - bits)
        points.append(np.array([round(value / unit) * unit for value in z], dtype=object))
    points = [point for point in points if point.dtype == object or np.isfinite(point).all()]
    return [*points, np.array(z, dtype=object)]


def _fractions(point: NDArray[np.generic]) -> Row:
    return [value if isinstance(value, Fraction) else Fraction(float(value)) for value in point]
