"""Verdicts on tiny integer layers by enumeration: an oracle that shares nothing with the search,
the solvers or the checkers.

Weights ``l >= 0`` of sum 1 on the rivals prove t lost iff ``f(l) = support(v) + c.l <= 0`` with
``v = D^T l`` (duality, hull.py). Over a box f is linear between the planes ``v_j = 0``, so its
least value, which is the class's best margin, lies at a point of the simplex where as many ``v_j``
vanish as fix it: s rivals, s - 1 coordinates. Cramer's rule gives each such point as s minors of D,
and all minors come from Laplace's expansion, in integers, with no division. Without bounds on x all
of v has to vanish.

Over a ball: never without bounds, or the nearest point of ``{z : D z >= h}``, ``D_S^T (D_S
D_S^T)^-1 h_S`` for some independent active set S, is not inside: squared norms and radii are
rational.
"""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[Any]  # int64, or Python's integers (dtype object) where int64 is too small
Region = (
    tuple[Literal["box"], Integers, Integers]
    | tuple[Literal["ball"], Fraction]
    | tuple[Literal["unbounded"]]
)
ROOM = 2**62


class Truth(NamedTuple):
    """The verdict on a class and, over a box, its best margin."""

    verdict: Literal["argmaxable", "unargmaxable", "tied"]
    margin: Fraction | None


def enumerate_verdicts(W: Integers, b: Integers, region: Region, *, unit: int = 1) -> list[Truth]:
    """The verdict on every class of the layer ``W z + b / unit``, z in the region.

    Parameters
    ----------
    W, b : (C, d) and (C,) integers
        Rows and biases; for a normalisation the effective ones.
    region : ("box", low, high), ("ball", squared radius) or ("unbounded",)
        Where z may lie; low, high (d,) integers.
    unit : int
        What biases are counted in: with 2**1074 a bias of 1 is the smallest float.
    """
    if len(W) == 1:
        return [Truth("argmaxable", None)]
    others = np.array([np.delete(np.arange(len(W)), t) for t in range(len(W))])  # (C, k)
    D, c = W[:, None] - W[others], b[:, None] - b[others]
    same = (D == 0).all(axis=2)
    beaten = (same & (c < 0)).any(axis=1)
    tied = (same & (c == 0)).any(axis=1) & ~beaten
    if region[0] == "ball":
        never, margins = _unargmaxable_in_ball(D, c, region[1] * unit**2), [None] * len(W)
    else:
        least = _least(D, c, region, unit)
        never = np.array([value is not None and value <= 0 for value in least])
        margins = least if region[0] == "box" else [None] * len(W)  # type: ignore[assignment]
    names = np.where(beaten | (never & ~tied), "unargmaxable", np.where(tied, "tied", "argmaxable"))
    return [Truth(name, margin) for name, margin in zip(names.tolist(), margins, strict=True)]


def _least(D: Integers, c: Integers, region: Region, unit: int = 1) -> list[Fraction | None]:
    """The least f(l) of every class; None where all of v must vanish and cannot. D is (C, k, d), c
    (C, k).
    """
    least: list[Fraction | None] = [None] * len(D)
    d = D.shape[2]
    D = D.astype(_dtype(D, d + 2, 4 * d * d))
    for classes, S, weights in _corners(D):
        v = (weights[:, :, None] * D[classes[:, None], S]).sum(axis=1)  # (n, d)
        if region[0] == "unbounded":
            kept = (v == 0).all(axis=1)
            classes, S, weights, reach = classes[kept], S[kept], weights[kept], 0
        else:
            _, low, high = region  # type: ignore[misc]
            reach = np.maximum(low * v, high * v).sum(axis=1)
        largest = np.array([weights.sum(axis=1).max(initial=1), np.abs(c).max()])
        if unit == 1 and _dtype(largest, 2) is np.int64:
            value = (weights * c[classes[:, None], S]).sum(axis=1) + reach
        else:
            weights = weights.astype(object)
            value = (weights * c[classes[:, None], S]).sum(axis=1) + unit * (
                reach + np.zeros(len(weights), object)
            )
        total = weights.sum(axis=1)
        for n in _smallest_of_each(classes, value, total):
            exact, known = Fraction(int(value[n]), int(total[n]) * unit), least[classes[n]]
            least[classes[n]] = exact if known is None else min(known, exact)
    return least


def _smallest_of_each(
    classes: NDArray[np.intp], value: Integers, total: Integers
) -> NDArray[np.intp]:
    """Places that may hold the least ``value / total`` of their class: those within rounding of
    it.
    """
    small = value.dtype != object
    rough = (
        value / total
        if small
        else np.array([_rounded(p, int(q)) for p, q in zip(value, total, strict=True)])
    )
    best = np.full(int(classes.max(initial=0)) + 1, np.inf)
    np.minimum.at(best, classes, rough)
    return np.flatnonzero(rough <= best[classes] + 1e-12 * np.minimum(np.abs(best[classes]), 1e300))


def _rounded(p: int, q: int) -> float:
    try:
        return p / q
    except OverflowError:
        return float("inf") if p > 0 else -float("inf")


def _corners(D: Integers) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], Integers]]:
    """Classes (n,), rivals S (n, s) and weights (n, s), not normalised: where s - 1 coordinates of
    v vanish and fix them.
    """
    k = D.shape[1]
    for s, minors in enumerate(_minors(D), start=1):  # of size s - 1
        sets = _sets(k, s)
        signs = (-1) ** np.arange(s)
        weights = minors[:, _without_one(k, s)] * signs[:, None]  # (C, sets, s, coordinates)
        weights = np.moveaxis(weights, 2, 3)
        weights = weights * np.where((weights < 0).any(axis=3, keepdims=True), -1, 1)
        valid = (weights >= 0).all(axis=3) & (weights > 0).any(axis=3)
        classes, n, m = np.nonzero(valid)
        yield classes, sets[n], weights[classes, n, m]


def _minors(D: Integers) -> Iterator[Integers]:
    """Minors of size 0, 1, ..., min(k - 1, d): (C, sets of rows, sets of columns), by expansion
    along the first row.
    """
    C, k, d = D.shape
    minors: Integers = np.ones((C, 1, 1), D.dtype)
    yield minors
    for r in range(1, min(k - 1, d) + 1):
        rows, columns, fewer = _sets(k, r), _sets(d, r), _without_one(d, r)
        below = minors[:, _without_one(k, r)[:, 0]]  # of the rows after the first
        first = D[:, rows[:, 0]]
        terms = (
            (-1) ** j * first[:, :, columns[:, j]] * below[:, :, fewer[:, j]] for j in range(r)
        )
        minors = sum(terms, np.zeros((C, len(rows), len(columns)), D.dtype))
        yield minors


def _unargmaxable_in_ball(D: Integers, c: Integers, square: Fraction) -> NDArray[np.bool_]:
    """Which classes (C,) win nowhere in the ball ``||z||^2 <= square``; c counts what z counts."""
    never = np.array([value is not None and value <= 0 for value in _least(D, c, ("unbounded",))])
    open_ = np.flatnonzero(~never & (c <= 0).any(axis=1))  # elsewhere the origin wins
    while_open = set(open_.tolist())
    D, h = D.astype(object), -c
    for s in range(1, min(D.shape[1:]) + 1):
        if not while_open:
            break
        sets = _sets(D.shape[1], s)
        B = D[open_][:, sets].astype(_dtype(D, 2, D.shape[2]))  # (n, sets, s, d)
        G = B @ np.swapaxes(B, 2, 3)
        G = G.astype(_dtype(G, s, s))
        inverse, det = _adjugate(G)
        right = h[open_][:, sets]
        largest = np.array([np.abs(inverse).max(), np.abs(right).max()])
        u = (inverse.astype(_dtype(largest, 2, s)) * right[:, :, None]).sum(axis=3)
        for n, m in np.argwhere((det > 0) & (u >= 0).all(axis=2)):
            t, multipliers, scale = int(open_[n]), u[n, m].astype(object), int(det[n, m])
            z = multipliers @ B[n, m].astype(object)  # the point, times the determinant
            if t in while_open and (D[t] @ z >= scale * h[t].astype(object)).all():
                while_open.remove(t)
                never[t] = Fraction(int(multipliers @ right[n, m].astype(object)), scale) >= square
    assert not while_open, "a non-empty polyhedron has a nearest point"
    return never


def _adjugate(G: Integers) -> tuple[Integers, Integers]:
    """Adjugates (..., s, s) and determinants (...) of symmetric matrices G (..., s, s)."""
    s = G.shape[-1]
    if s == 1:
        return np.ones_like(G), G[..., 0, 0]
    adjugate = np.empty_like(G)
    for i in range(s):
        for j in range(s):
            minor = np.delete(np.delete(G, i, axis=-2), j, axis=-1)
            adjugate[..., i, j] = (-1) ** (i + j) * _adjugate(minor)[1]
    return adjugate, (G[..., 0, :] * adjugate[..., 0, :]).sum(axis=-1)


def _dtype(values: Integers, factors: int, terms: int = 1) -> Any:
    """int64 where it holds a sum of so many ``terms``, each a product of so many ``factors`` of
    these sizes; else object.
    """
    largest = max(int(np.abs(values).max(initial=1)), 1) if values.size else 1
    return np.int64 if math.factorial(factors) * terms * largest**factors < ROOM else object


@lru_cache(maxsize=256)
def _sets(n: int, size: int) -> NDArray[np.intp]:
    """All sets of so many out of n, one a row."""
    if not size:
        return np.zeros((1, 0), np.intp)
    return np.array([*itertools.combinations(range(n), size)], np.intp).reshape(-1, size)


@lru_cache(maxsize=256)
def _without_one(n: int, size: int) -> NDArray[np.intp]:
    """For each set the places of the sets without its first, second, ... member: (sets, size)."""
    place = {tuple(row): m for m, row in enumerate(_sets(n, size - 1).tolist())}
    return np.array(
        [[place[(*row[:i], *row[i + 1 :])] for i in range(size)] for row in _sets(n, size).tolist()]
    )
