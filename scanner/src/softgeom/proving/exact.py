"""An order decided in exact arithmetic, where floating point cannot: over every feature set every
verdict is rational.

Rows, biases, boxes and squared radii are rational. Over a box (and the cone of unbounded features)
the best margin is a linear programme (simplex.py). Over a ball: if no z in the box around it obeys,
those weights are the proof; otherwise the set ``D z + c >= 0`` has interior and a rational nearest
point z*, and the order is possible in the ball iff ``||z*|| < r``, near z*. A
working set of comparisons grows by those that a candidate breaks, as in decide.py.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from softgeom.arrays import Ints
from softgeom.certifying.checker import Checker
from softgeom.certifying.hull import exact_row
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import Comparisons, Witness
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.proving.simplex import TooLargeError, best_margin
from softgeom.searching.look import STRONGEST

SECONDS = 10.0  # of one order, on this thread: 64 features take 7, 120 more than 30

Row = list[Fraction]


def decide_exactly(
    checker: Checker, order: Order, known: Ints
) -> tuple[Witness | Comparisons, float]:
    """A witness of an order, or comparisons that make it impossible, and what they certify: points
    or weights are fractions where floats do not do.

    The first working set is ``known`` (k,), comparisons as ``above * C + below``. TooLargeError if
    it takes longer than ``SECONDS``.
    """
    layer, features = checker.layer, checker.features
    deadline = time.thread_time() + SECONDS
    working: list[int] = known.tolist()
    difference = _differences(layer, features)
    D: list[Row] = []
    c: Row = []
    while True:
        for row, constant in map(difference, working[len(D) :]):
            D.append(row)
            c.append(constant)
        z, weights = decide_region(
            features, D, c, layer.b is not None, deadline - time.thread_time()
        )
        if z is None:
            used = [n for n, weight in enumerate(weights) if weight]
            codes = np.array([working[n] for n in used], dtype=np.intp)
            pairs = split(codes, layer.classes)
            evidence = Comparisons(*pairs, np.array([weights[n] for n in used], dtype=object))
            return evidence, checker.bound(order, evidence)
        for point in _ever_longer(z):
            margin = checker.margin(order, point)
            if margin > 0:
                return Witness(point), margin
        x = np.array([float(value) for value in features.features_exactly(z)])
        seen, logits = set(working), checker.logits(x)
        fresh = [code for code in closest_pairs(order, logits).tolist() if code not in seen]
        if not fresh:  # rounding hides which are broken
            others = closest_pairs(order, logits, order.comparisons(layer.classes)).tolist()
            rows = {code: difference(code) for code in others if code not in seen}
            leads = {code: _dot(row, z) + constant for code, (row, constant) in rows.items()}
            fresh = sorted((code for code in leads if leads[code] <= 0), key=leads.__getitem__)
            fresh = fresh[:STRONGEST]
        if not fresh:
            raise TooLargeError("in fractions a point obeys, which the checker does not see")
        working += fresh


def _differences(
    layer: SoftmaxLayer, features: FeatureSet
) -> Callable[[int], tuple[Row, Fraction]]:
    """What turns a comparison into the row and the constant of its margin, in fractions."""
    reduced = functools.cache(lambda i: features.reduce_exactly(*exact_row(layer, i)))

    def difference(code: int) -> tuple[Row, Fraction]:
        (own, bias), (row, b) = map(reduced, divmod(code, layer.classes))
        return [p - q for p, q in zip(own, row, strict=True)], bias - b

    return difference


def closest_pairs(order: Order, logits: NDArray[np.floating], most: int = STRONGEST) -> Ints:
    """The comparisons that logits (C,) break or nearly break, as ``above * C + below``."""
    above, below = order.closest(logits, most)
    return above * len(logits) + below


def split(codes: Ints, classes: int) -> tuple[Ints, Ints]:
    """The upper and the lower classes of comparisons."""
    return codes // classes, codes % classes


def decide_region(
    features: FeatureSet, D: list[Row], c: Row, has_bias: bool, seconds: float
) -> tuple[Row | None, Row]:
    """A z at which ``D z + c > 0``, for k rows D of d fractions, or None and the weights (k,) that
    say why there is none. TooLargeError after ``seconds``.
    """
    region = features.region(len(D[0]), has_bias)
    if region.radius is not None:
        return _decide_ball(Fraction(region.radius), D, c, seconds)
    assert region.low is not None
    assert region.high is not None
    low, high = ([Fraction(v) for v in side.tolist()] for side in (region.low, region.high))
    if not features.is_homogeneous(has_bias):
        found = best_margin(D, c, low, high, seconds=seconds)
        return (found.z if found.value > 0 else None), found.weights
    cone = [[*row, value] for row, value in zip(D, c, strict=True)]
    found = best_margin(cone, [Fraction(0)] * len(D), low, high, seconds=seconds)
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
    if _dot(z, z) <= square:
        return z, []
    nearest, weights = nearest_point(D, [-value for value in c], seconds=seconds)
    if _dot(nearest, nearest) >= square:
        return None, weights
    # towards a point of the closed set that lies inside: every point before it wins
    while _dot(z, z) > square:
        z = [(p + q) / 2 for p, q in zip(z, nearest, strict=True)]
    return z, []


def _ever_longer(z: Row) -> list[NDArray[np.generic]]:
    """The point as floats, as fractions of ever more bits, as it is."""
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


def nearest_point(
    D: Sequence[Sequence[Fraction]], h: Sequence[Fraction], *, seconds: float
) -> tuple[list[Fraction], list[Fraction]]:
    """The nearest point z (d,) to the origin of ``D z >= h``, for k rows D of d fractions, and its
    multipliers u (k,). TooLargeError after ``seconds``; ValueError if no z satisfies the
    inequalities.

    It is the projection ``z = D^T u`` with ``u >= 0`` and ``u_i > 0`` only where ``D_i.z = h_i``
    (Lawson and Hanson 1974, Section 23.4); both are rational when D and h are. Hence over a ball
    every verdict is a comparison of rational squares: with ``c = -h`` and ``||z|| >= r``,

        r ||D^T u|| + c.u = r ||z|| - ||z||^2 <= 0

    makes u a certificate, and otherwise points near z win. Non-negative least squares on
    ``[D^T; h^T] u = (0, 1)`` finds u; its passive columns are independent, so that no step ever
    fails, and in exact arithmetic it ends.
    """
    columns = [[*row, value] for row, value in zip(D, h, strict=True)]  # of E, (k, d + 1)
    u = [Fraction(0)] * len(D)
    passive: list[int] = []
    deadline = time.thread_time() + seconds
    while True:
        residual = [-value for value in _combination(columns, u)]  # e - E u
        residual[-1] += 1
        gain = [_dot(column, residual) for column in columns]
        rest = [i for i in range(len(D)) if i not in passive]
        best = max(rest, key=gain.__getitem__, default=None)
        if best is None or gain[best] <= 0:
            break
        passive.append(best)
        while True:
            if time.thread_time() > deadline:
                raise TooLargeError(f"the exact nearest point took more than {seconds:g} s")
            s = _least_squares([columns[i] for i in passive])
            if all(value > 0 for value in s):
                break
            below = ((i, value) for i, value in zip(passive, s, strict=True) if value <= 0)
            step = min(u[i] / (u[i] - value) for i, value in below)
            for i, value in zip(passive, s, strict=True):
                u[i] += step * (value - u[i])
            passive = [i for i in passive if u[i] > 0]
        for i, value in zip(passive, s, strict=True):
            u[i] = value
    if not residual[-1]:
        raise ValueError("no point satisfies the inequalities")
    return [-value / residual[-1] for value in residual[:-1]], [value / residual[-1] for value in u]


def _combination(columns: Sequence[Sequence[Fraction]], u: Sequence[Fraction]) -> list[Fraction]:
    total = [Fraction(0)] * len(columns[0])
    for column, weight in zip(columns, u, strict=True):
        if weight:
            total = [a + weight * b if b else a for a, b in zip(total, column, strict=True)]
    return total


def _dot(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(p, q, strict=True) if a and b), Fraction(0))


def _least_squares(columns: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    """``argmin_s || sum_i s_i column_i - (0, ..., 0, 1) ||``, columns independent."""
    n = len(columns)
    rows = [[_dot(p, q) for q in columns] + [p[-1]] for p in columns]
    for r in range(n):
        pivot = next(i for i in range(r, n) if rows[i][r])
        rows[r], rows[pivot] = rows[pivot], rows[r]
        top = [value / rows[r][r] for value in rows[r]]
        rows[r] = top
        for i in range(n):
            if i != r and (factor := rows[i][r]):
                rows[i] = [a - factor * b if b else a for a, b in zip(rows[i], top, strict=True)]
    return [row[n] for row in rows]
