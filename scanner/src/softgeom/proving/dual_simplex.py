"""One linear programme for many classes, solved for all of them in step.

The dual of the best margin of class t over a box (notes in lp.py and hull.py) is, over the rivals i
of a set shared by all classes,

    minimise  -sum_i l_i b_i + sum_k (high_k v+_k - low_k v-_k)
    subject to  sum_i l_i [w_i, 1] + [v+ - v-, 0] = [w_t, 1],     l, v+, v- >= 0.

Another class is another right side, nothing else: a basis that is optimal for one class stays dual
feasible for the next, and the dual simplex method (Lemke 1954) mends it in a few pivots when the
next class lies near. A vertex has at most d + 1 weights: the evidence is as short as it can be. Its
value plus b_t is t's best margin m against the shared rivals:

* m <= 0: the weights prove that t never wins. Fewer rivals make m larger, so that the proof stands
  whoever else competes.
* m > 0: t beats the shared rivals at ``z``, the dual values; whether it beats everybody, a look
  decides.

Everything is dense: with d up to some hundreds one pivot is a matrix-vector product over the rivals
and a rank-one update, a tenth of a millisecond, half of it spent in handing small arrays to NumPy.
So a group of classes pivots together: the prices of all their leaving rows are one matrix product,
ratios and edges are taken for the group at once, and a class that is done makes room for the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg.blas
from numpy.typing import NDArray

from softgeom.arrays import Bools, Floats, Ints, Singles
from softgeom.proving.lp import TOLERANCE

GROUP = 32  # classes in step: their inverses stay in the cache, and one call serves enough of them


@dataclass(frozen=True, eq=False)
class Vertex:
    """Where a class ended: at its optimum, or where it first beats the shared rivals."""

    # margin against the shared rivals, in the solver's arithmetic: the best one if it is not
    # positive
    value: float
    positions: Ints  # (n,) places in the shared set of the rivals with weights
    weights: Floats  # (n,)
    z: Floats  # (D,) the point of the box with that margin
    basic: Ints  # (D + 1,) the basis


class SharedProgramme:
    """The programme above over shared rivals, rows (k, D), biases (k,), over a box of z (D,)."""

    def __init__(self, rows: Floats, bias: Floats, low: Floats, high: Floats) -> None:
        k, D = rows.shape
        self.D, self.k = D, k
        self.columns = np.zeros((k + 2 * D, D + 1))  # of the rivals, of v+ and of v-
        self.columns[:k, :D], self.columns[:k, D] = rows, 1.0
        self.columns[k + np.arange(D), np.arange(D)] = 1.0
        self.columns[k + D + np.arange(D), np.arange(D)] = -1.0
        # prices need a few digits, and the product over the rivals is half of a pivot
        self.columns32 = np.ascontiguousarray(self.columns.T, dtype=np.float32)
        self.cost = np.concatenate([-bias, high, -low])
        # The first basis is dual feasible: a corner of the box with the rival that wins there.
        # Coordinates at their upper bound have v+ in the basis, the others v-.
        corner = np.where(np.abs(low) < np.abs(high), low, high)
        winner = int((rows @ corner + bias).argmax())
        self.first = np.append(np.where(corner == high, k, k + D) + np.arange(D), winner)

    def invert(self, basic: Ints) -> tuple[Floats, Floats]:
        """Inverse of a basis and the reduced costs (k + 2 D,), infinite for basic columns."""
        inverse = np.ascontiguousarray(np.linalg.inv(self.columns[basic].T))
        reduced = self.cost - self.columns @ (self.cost[basic] @ inverse)
        reduced[basic] = np.inf
        return inverse, reduced

    def weights(self, basic: Ints, own: NDArray[np.floating]) -> tuple[Bools, Floats]:
        """For which rows ``own`` (n, D) a basis is optimal, and all weights (n, D + 1)."""
        x = _targets(own) @ self.invert(basic)[0].T
        return x.min(axis=1) >= -TOLERANCE, x

    def vertex(self, basic: Ints, inverse: Floats, target: Floats, bias: float) -> Vertex:
        """The vertex of a basis with its inverse, for a class with right side ``target``."""
        x = inverse @ target
        # one step of refinement: the inverse has been updated many times
        x = x + inverse @ (target - x @ self.columns[basic])
        dual = self.cost[basic] @ inverse
        kept = (basic < self.k) & (x > 0)
        value = float(dual @ target) + bias
        return Vertex(value, basic[kept].copy(), x[kept], dual[: self.D], basic.copy())


def solve_batch(
    programme: SharedProgramme,
    own: NDArray[np.floating],
    bias: Floats,
    itself: Ints,
    first: Ints | None = None,
) -> Iterator[tuple[int, Vertex | None]]:
    """Yield each class and its vertex, in the order in which they end; None in its place where
    rounding or cycling stops the method, and for a class in the first basis.

    Dual objectives only grow: once one is positive the class beats the shared rivals somewhere, and
    is done. What is found of a class depends neither on the others nor on their order. ``own`` (n,
    D) and ``bias`` (n,) are rows and biases of the classes; ``itself`` (n,) is each one's place
    among the rivals, where it does not compete, or -1; all begin at the basis ``first`` (D + 1,),
    best that of a class in their midst, by default a corner's.
    """
    first = programme.first if first is None else first
    begins = ~np.isin(itself, first)
    yield from ((n, None) for n in np.flatnonzero(~begins).tolist())
    left = np.flatnonzero(begins)
    if len(left):
        group = _Group(programme, own[left], bias[left], itself[left], first)
        yield from ((int(left[n]), vertex) for n, vertex in group.run())


def _targets(own: NDArray[np.floating]) -> Floats:
    return np.column_stack([own, np.ones(len(own))]).astype(np.float64)


class _Group:
    """Up to GROUP classes and the bases at which they are; all arrays have them as first axis."""

    def __init__(
        self,
        programme: SharedProgramme,
        own: NDArray[np.floating],
        bias: Floats,
        itself: Ints,
        first: Ints,
    ) -> None:
        self.programme, self.bias, self.targets = programme, bias, _targets(own)
        self.itself = itself
        inverse, reduced = programme.invert(first)
        # basis, its inverse, squared lengths of the inverse's rows, reduced costs
        self.start = first, inverse, np.einsum("ij,ij->i", inverse, inverse), reduced
        self.start_weights = self.targets @ inverse.T
        g, m, n = min(GROUP, len(own)), self.targets.shape[1], len(programme.columns)
        self.which, self.next = np.zeros(g, np.intp), 0
        self.basic = np.zeros((g, m), np.intp)
        self.inverse = np.zeros((g, m, m))
        self.x, self.edge = np.zeros((g, m)), np.zeros((g, m))
        self.reduced = np.zeros((g, n), np.float32)
        self.pivots, self.age = np.zeros(g, np.intp), np.zeros(g, np.intp)
        self.alpha, self.gain, self.ratio = (np.zeros((g, n), np.float32) for _ in range(3))
        self._replace(np.arange(g))

    def run(self) -> Iterator[tuple[int, Vertex | None]]:
        limit = len(self.programme.columns)  # far more than any class needs, unless it cycles
        while len(self.which):
            # after as many pivots as it has columns an inverse is computed anew
            for place in np.flatnonzero(self.age >= self.targets.shape[1]).tolist():
                self._refresh(place)
            r, ended = self._leaving()
            for place in np.flatnonzero(ended).tolist():
                n = int(self.which[place])
                basic, inverse = self.basic[place], self.inverse[place]
                own = self.targets[n], float(self.bias[n])
                yield n, self.programme.vertex(basic, inverse, *own)
            if not ended.any():
                ended = ~self._pivot(r) | (self.pivots >= limit)
                for place in np.flatnonzero(ended).tolist():
                    yield int(self.which[place]), None
            if ended.any():
                self._replace(np.flatnonzero(ended))

    def _leaving(self) -> tuple[Ints, Bools]:
        """Each class's leaving variable by dual steepest edge, and which have ended."""
        below = np.minimum(self.x, 0.0)
        r = (below**2 / self.edge).argmax(axis=1)
        optimal = below[np.arange(len(r)), r] >= -TOLERANCE
        cost = self.programme.cost[self.basic]
        return r, optimal | (np.einsum("gm,gm->g", cost, self.x) + self.bias[self.which] > 0)

    def _pivot(self, r: Ints) -> Bools:
        """Exchange each class's r-th basic variable; where it failed, spoilt."""
        each, g = np.arange(len(r)), len(r)
        row = self.inverse[each, r]  # (g, D + 1)
        q, change = self._entering(row)
        # Both products with the inverse at once: it is read once.
        both = np.matmul(self.inverse, np.stack([self.programme.columns[q], row], axis=2))
        direction, along = both[:, :, 0].copy(), both[:, :, 1]
        pivot = direction[each, r]
        # else the narrow price was rounding after all
        possible = np.isfinite(change) & (pivot < 0)
        pivot = np.where(possible, pivot, 1.0)
        self.reduced[each, self.basic[each, r]] = -change
        self.reduced[each, q] = np.inf
        share, length = direction / pivot[:, None], self.edge[each, r]
        edge = self.edge - 2 * share * along + share**2 * length[:, None]
        self.edge = np.maximum(edge, 1e-8 * self.edge)
        self.edge[each, r] = length / pivot**2
        step = self.x[each, r] / pivot
        self.x -= step[:, None] * direction
        self.x[each, r] = step
        scaled = row / pivot[:, None]
        direction[each, r] -= 1.0  # so that the r-th row becomes `scaled`
        for n in range(g):
            # in place: the transpose of a row-major array is what BLAS calls column-major
            turned = self.inverse[n].T
            scipy.linalg.blas.dger(-1.0, scaled[n], direction[n], a=turned, overwrite_a=1)
        self.basic[each, r] = q
        self.pivots += 1
        self.age += 1
        return possible

    def _entering(self, row: Floats) -> tuple[Ints, Singles]:
        """Each class's first column to turn negative, and the leaving one's change."""
        g, each = len(row), np.arange(len(row))
        alpha, gain, ratio = self.alpha[:g], self.gain[:g], self.ratio[:g]
        np.matmul(row.astype(np.float32), self.programme.columns32, out=alpha)
        np.negative(alpha, out=gain)  # a column that can enter has a positive one
        # without masks, which cost more than the divisions: what cannot enter gets a ratio of inf
        # up to the rounding of a narrow product of D + 1 terms an entry is no pivot
        rounding = np.finfo(np.float32).eps * row.shape[1] ** 0.5 * np.abs(row).max(axis=1)
        np.subtract(gain, rounding.astype(np.float32)[:, None], out=ratio)
        np.maximum(ratio, 0.0, out=ratio)
        with np.errstate(divide="ignore", over="ignore"):
            np.divide(np.maximum(self.reduced, 1e-12), ratio, out=ratio)
        least = ratio.min(axis=1)
        # of those tied the largest pivot
        np.copyto(gain, 0.0, where=ratio > (least * np.float32(1 + 1e-6))[:, None])
        q = gain.argmax(axis=1)
        change = np.where(least < np.inf, self.reduced[each, q] / alpha[each, q], np.inf)
        change = change.astype(np.float32)
        np.multiply(alpha, change[:, None], out=gain)
        self.reduced -= gain
        return q, change

    def _replace(self, places: Ints) -> None:
        """The next classes at the first basis for those that ended, or a smaller group."""
        fresh = np.arange(self.next, min(self.next + len(places), len(self.targets)))
        self.next += len(fresh)
        filled, empty = places[: len(fresh)], places[len(fresh) :]
        self.which[filled], self.x[filled] = fresh, self.start_weights[fresh]
        basic, inverse, edge, reduced = self.start
        self.basic[filled], self.inverse[filled] = basic, inverse
        self.edge[filled] = edge
        for place in filled:
            self._price(place, reduced)
        self.pivots[filled] = self.age[filled] = 0
        if len(empty):
            for name in ("which", "inverse", "reduced", "basic", "edge", "x", "pivots", "age"):
                setattr(self, name, np.delete(getattr(self, name), empty, axis=0))

    def _price(self, place: int, reduced: Floats) -> None:
        self.reduced[place] = reduced
        if (itself := self.itself[self.which[place]]) >= 0:
            self.reduced[place, itself] = np.inf  # it never enters

    def _refresh(self, place: int) -> None:
        self.inverse[place], reduced = self.programme.invert(self.basic[place])
        self._price(place, reduced)
        self.edge[place] = np.einsum("ij,ij->i", self.inverse[place], self.inverse[place])
        self.x[place] = self.inverse[place] @ self.targets[self.which[place]]
        self.age[place] = 0
