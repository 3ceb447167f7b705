"""The rankings of a layer with two features as polygons of the plane (001, Figures 1, 7 and 8), in
exact arithmetic.

With d = 2 every comparison w_i.x + b_i < w_j.x + b_j is a half-plane, so a ranking, and likewise a
class that wins the argmax, owns the convex polygon that is left of a window after cutting it along
lines. No grid of pixels is involved: a region is there or not, however thin it is. Points are pairs
of fractions; polygons are lists of points, counter-clockwise.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

from papers.bottleneck.counting.arrangement import braid_arrangement, exact_layer
from papers.bottleneck.counting.rankings import Ranking, rank_classes

Point2 = tuple[Fraction, Fraction]
Polygon = list[Point2]


def square(half_width: float | Fraction) -> Polygon:
    """Return the square of the given half width around the origin."""
    r = Fraction(half_width)
    if r <= 0:
        raise ValueError(f"a window needs a positive half width, not {half_width}.")
    return [(-r, -r), (r, -r), (r, r), (-r, r)]


def cut(polygon: Sequence[Point2], line: Sequence[Fraction | int]) -> tuple[Polygon, Polygon]:
    """Return the parts of a convex polygon where a_1 x_1 + a_2 x_2 + c is positive and negative,
    line = (a_1, a_2, c).

    A part without area comes back empty.
    """
    positive: Polygon = []
    negative: Polygon = []
    for (p, u), (q, v) in pairwise([(p, _height(p, line)) for p in (*polygon, polygon[0])]):
        if u >= 0:
            positive.append(p)
        if u <= 0:
            negative.append(p)
        if u * v < 0:
            t = u / (u - v)
            crossing = (p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1]))
            positive.append(crossing)
            negative.append(crossing)
    return positive if area(positive) else [], negative if area(negative) else []


def area(polygon: Sequence[Point2]) -> Fraction:
    """Return the area of a counter-clockwise polygon."""
    following = (*polygon[1:], *polygon[:1])
    turns = (p[0] * q[1] - q[0] * p[1] for p, q in zip(polygon, following, strict=True))
    return sum(turns, Fraction(0)) / 2


def centroid(polygon: Sequence[Point2]) -> Point2:
    """The centre of mass of a polygon with area: a good place for its label."""
    x = y = Fraction(0)
    for p, q in zip(polygon, (*polygon[1:], *polygon[:1]), strict=True):
        turn = p[0] * q[1] - q[0] * p[1]
        x, y = x + turn * (p[0] + q[0]), y + turn * (p[1] + q[1])
    return x / (6 * area(polygon)), y / (6 * area(polygon))


def ranking_cells(window: Sequence[Sequence[Any]], W: Any, b: Any = None) -> dict[Ranking, Polygon]:
    """Return, for every ranking (classes in increasing order of probability) realised inside a
    convex window, the polygon of its features; they tile the window, a counter-clockwise polygon. W
    (C, 2) and b (C,) count at their exact values.
    """
    rows, bias = _planar_layer(W, b)
    lines = braid_arrangement(W, b)
    if lines is None:  # two classes tie everywhere: nothing is ranked
        return {}
    cells = [_exact(window)]
    for line in lines:
        cells = [part for cell in cells for part in cut(cell, line) if part]
    return {rank_classes(_logits(rows, bias, centroid(cell))): cell for cell in cells}


def argmax_cells(window: Sequence[Sequence[Any]], W: Any, b: Any = None) -> dict[int, Polygon]:
    """Return, for every class that wins the argmax somewhere inside a convex window, the polygon
    where it does; arguments as for `ranking_cells`.
    """
    rows, bias = _planar_layer(W, b)
    cells = {}
    for t, w in enumerate(rows):
        cell = _exact(window)
        for i, v in enumerate(rows):
            difference = (w[0] - v[0], w[1] - v[1], bias[t] - bias[i])
            if i != t and cell:
                cell = cut(cell, difference)[0] if any(difference) else []
        if cell:
            cells[t] = cell
    return cells


def crossings(W: Any, b: Any = None) -> set[Point2]:
    """Return the points at which two lines of the arrangement of a layer W (C, 2), b (C,) cross."""
    _planar_layer(W, b)
    found = set()
    for (a1, a2, c), (e1, e2, f) in combinations(braid_arrangement(W, b) or [], 2):
        determinant = a1 * e2 - a2 * e1
        if determinant:
            x, y = a2 * f - e2 * c, e1 * c - a1 * f
            found.add((Fraction(x, determinant), Fraction(y, determinant)))
    return found


def bounded_rankings(W: Any, b: Any = None) -> set[Ranking]:
    """Return the rankings of a layer W (C, 2), b (C,) whose regions are bounded: large features
    never meet them.

    A region is bounded iff it stays off the border of a window that has every crossing inside.
    Zaslavsky's theorem counts them in general position: as many as a bias adds to the realisable
    rankings (001, Section 3.2.1).
    """
    reach = 1 + max((abs(x) for point in crossings(W, b) for x in point), default=Fraction(0))
    cells = ranking_cells(square(reach), W, b)
    inside = {r: max(abs(x) for p in cell for x in p) < reach for r, cell in cells.items()}
    return {ranking for ranking, bounded in inside.items() if bounded}


def _planar_layer(W: Any, b: Any) -> tuple[list[tuple[Fraction, ...]], tuple[Fraction, ...]]:
    rows, bias = exact_layer(W, b)
    if len(rows[0]) != 2:
        what = "only layers with two features have polygons for regions"
        raise ValueError(f"{what}; this one has {len(rows[0])}.")
    return rows, bias


def _exact(window: Iterable[Sequence[Any]]) -> Polygon:
    polygon = [(Fraction(p[0]), Fraction(p[1])) for p in window]
    if area(polygon) <= 0:
        what = "a polygon with area, its corners in counter-clockwise order"
        raise ValueError(f"the window must be {what}.")
    return polygon


def _height(p: Point2, line: Sequence[Fraction | int]) -> Fraction:
    return line[0] * p[0] + line[1] * p[1] + line[2]


def _logits(
    rows: Sequence[tuple[Fraction, ...]], bias: Sequence[Fraction], x: Point2
) -> list[Fraction]:
    return [w[0] * x[0] + w[1] * x[1] + c for w, c in zip(rows, bias, strict=True)]
