"""Hyperplane arrangements with rational coefficients: their regions counted, and each visited,
without rounding.

The braid arrangement of C classes, seen from the features, is {x : (w_i - w_j).x + b_i - b_j = 0},
i < j (001, Appendix B, derivation 11); its regions are the rankings that the layer W (C, d), b (C,)
realises. Both algorithms here rest on one fact: a new hyperplane H cuts exactly those regions of an
arrangement A that meet it, and they are the regions of A restricted to H,

    regions(A and H) = regions(A) + regions(A restricted to H)          (deletion and restriction).

Counting follows that recursion down to dimension zero; visiting also carries a rational point of
each region. Neither assumes general position, so weights in special position are counted as they
are. The cost is about the number of regions times the number of hyperplanes squared: made for a
dozen classes in a few dimensions.

A hyperplane a.x + c = 0 is a tuple of integers (a_1, ..., a_d, c) without common factor, its first
non-zero entry positive.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

Hyperplane = tuple[int, ...]
Point = tuple[Fraction, ...]


def exact_layer(W: Any, b: Any = None) -> tuple[list[Point], Point]:
    """Return the rows of W (C, d) and the bias (C,) as fractions; no bias becomes zeros.

    Integers, floats (each one a dyadic fraction) and `Fraction` entries are all taken at their
    exact values. ValueError if W is not a non-empty matrix, b does not have one entry a class, or
    an entry is not finite.
    """
    weights = np.array(W, dtype=object)
    if weights.ndim != 2 or 0 in weights.shape:
        raise ValueError(f"W must be a matrix of classes x features, not of shape {weights.shape}.")
    bias = np.zeros(len(weights), dtype=int) if b is None else np.array(b, dtype=object)
    if bias.shape != weights.shape[:1]:
        asked = f"one entry for each of the {len(weights)} classes"
        raise ValueError(f"b must have {asked}, not shape {bias.shape}.")
    try:
        return [tuple(map(_fraction, row)) for row in weights], tuple(map(_fraction, bias))
    except (OverflowError, ValueError):
        what = "there is a NaN or an infinity among them"
        raise ValueError(f"W and b must be finite numbers: {what}.") from None


def braid_arrangement(W: Any, b: Any = None) -> list[Hyperplane] | None:
    """The distinct hyperplanes on which two classes of W (C, d), b (C,) tie, at their exact values,
    or None when two of them always do. Classes with equal rows and different biases never tie: they
    contribute no hyperplane.
    """
    rows, bias = exact_layer(W, b)
    # a set that keeps its order, so that results do not depend on hashing
    planes: dict[Hyperplane, None] = {}
    for j in range(len(rows)):
        for i in range(j):
            sides = zip((*rows[i], bias[i]), (*rows[j], bias[j]), strict=True)
            difference = [p - q for p, q in sides]
            if any(difference[:-1]):
                planes[_primitive(difference)] = None
            elif difference[-1] == 0:
                return None
    return list(planes)


def count_arrangement_regions(hyperplanes: Sequence[Hyperplane]) -> int:
    """The number of regions into which distinct hyperplanes cut their space, by deletion and
    restriction.

    >>> count_arrangement_regions([(1, 0, 0), (0, 1, 0), (1, 1, -1)])  # three lines of the plane
    7
    """
    inside = (_restrict(hyperplanes[:k], h) for k, h in enumerate(hyperplanes))
    return 1 + sum(map(count_arrangement_regions, inside))


def visit_regions(hyperplanes: Sequence[Hyperplane], dimension: int) -> list[Point]:
    """A rational point inside each region of distinct hyperplanes of a space of that dimension."""
    points: list[Point] = [(Fraction(0),) * dimension]
    for k, h in enumerate(hyperplanes):
        earlier = hyperplanes[:k]
        pivot = _pivot(h)
        on_h = [_lift(q, h, pivot) for q in visit_regions(_restrict(earlier, h), dimension - 1)]
        cut = {_signs(earlier, q) for q in on_h}
        # what H does not meet stays in one piece
        points = [p for p in points if _signs(earlier, p) not in cut]
        for q in on_h:
            for step in (_safe_step(earlier, q, h), -_safe_step(earlier, q, h)):
                points.append(tuple(x + step * n for x, n in zip(q, h, strict=False)))
    return points


def _fraction(value: Any) -> Fraction:
    return Fraction(value.item() if isinstance(value, np.generic) else value)


def _primitive(coefficients: Iterable[Fraction | int]) -> Hyperplane:
    """Scale to integers without common factor whose first non-zero entry is positive."""
    fractions = [Fraction(x) for x in coefficients]
    scale = math.lcm(*(x.denominator for x in fractions))
    integers = [int(x * scale) for x in fractions]
    divisor = math.gcd(*integers)
    if next(x for x in integers if x) < 0:
        divisor = -divisor
    return tuple(x // divisor for x in integers)


def _pivot(h: Hyperplane) -> int:
    return next(i for i, a in enumerate(h) if a)


def _restrict(hyperplanes: Iterable[Hyperplane], h: Hyperplane) -> list[Hyperplane]:
    """The arrangement inside h, in coordinates other than the pivot, without h's parallels."""
    p = _pivot(h)
    inside: dict[Hyperplane, None] = {}
    for g in hyperplanes:
        pairs = (pair for i, pair in enumerate(zip(g, h, strict=True)) if i != p)
        combined = [h[p] * x - g[p] * y for x, y in pairs]
        if any(combined[:-1]):
            inside[_primitive(combined)] = None
    return list(inside)


def _lift(q: Point, h: Hyperplane, pivot: int) -> Point:
    """The point of h whose coordinates other than the pivot are q."""
    rest = h[:pivot] + h[pivot + 1 :]
    value = -(sum((a * x for a, x in zip(rest, q, strict=False)), Fraction(rest[-1]))) / h[pivot]
    return (*q[:pivot], value, *q[pivot:])


def _evaluate(g: Hyperplane, p: Point) -> Fraction:
    return sum((a * x for a, x in zip(g, p, strict=False)), Fraction(g[-1]))


def _signs(hyperplanes: Sequence[Hyperplane], p: Point) -> tuple[bool, ...]:
    return tuple(_evaluate(g, p) > 0 for g in hyperplanes)


def _safe_step(hyperplanes: Sequence[Hyperplane], q: Point, h: Hyperplane) -> Fraction:
    """A step along h's normal that crosses no other; 1 / integer keeps denominators short."""
    speeds = [
        (abs(sum(a * n for a, n in zip(g[:-1], h, strict=False))), abs(_evaluate(g, q)))
        for g in hyperplanes
    ]
    return Fraction(1, max((math.floor(speed / gap) + 1 for speed, gap in speeds), default=1))
