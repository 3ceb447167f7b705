"""The programme of bases.py for many classes in step: every class from one shared basis, a pivot of
each at a time.

A class's programme takes some fifty pivots of a tenth of a millisecond, half of it in handing small
arrays to NumPy. Here a group of classes pivots together: the prices of all their leaving rows are
one matrix product over the shared rivals, and ratios and edges are taken for the group at once. A
class that is done makes room for the next. All begin at the same basis, best that of a class in
their midst: the programme of a class does not depend on which others there are, nor on their order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg.blas
from numpy.typing import NDArray

from softgeom.bottleneck.proving.bases import MOST_PIVOTS, PIVOT, REFRESH, TOLERANCE, Bases, Vertex

BEYOND = 1e15  # ratios of columns that cannot enter lie above
GROUP = 32  # classes in step: their inverses stay in the cache, and one call serves enough of them


def solve_in_step(
    bases: Bases, own: NDArray[np.floating], bias: NDArray[np.float64], itself: NDArray[np.intp]
) -> Iterator[tuple[int, Vertex | None]]:
    """The vertex of each class, as ``Bases.solve`` gives it, in the order in which they end;
    ``bases`` stays at its basis.

    Parameters
    ----------
    bases : Bases
        The shared rivals, at a basis that is optimal for some class.
    own, bias : (n, D) and (n,) arrays
        Rows and biases of the classes.
    itself : (n,) integer array
        Place of each class in the shared set, against which it does not compete; -1 where it is not
        there.

    Yields
    ------
    int, Vertex or None
        Which class, and its vertex; None where rounding or cycling stops the method.
    """
    if len(own):
        yield from _Group(bases, own, bias, itself).run()


class _Group:
    """Up to GROUP classes and the bases at which they are; all arrays have them as first axis.

    What must not enter (a class's own column, and those in its basis) has an infinite reduced cost.
    """

    def __init__(
        self,
        bases: Bases,
        own: NDArray[np.floating],
        bias: NDArray[np.float64],
        itself: NDArray[np.intp],
    ) -> None:
        bases.refresh()
        self.bases, self.bias, self.itself = bases, bias, itself
        self.targets = np.column_stack([own, np.ones(len(own))]).astype(np.float64)  # (n, D + 1)
        self.start = self.targets @ bases.inverse.T  # the weights of each class in the first basis
        self.edges = np.einsum("ij,ij->i", bases.inverse, bases.inverse)
        self.narrow = np.ascontiguousarray(bases.columns.T, dtype=np.float32)  # (D + 1, k + 2 D)
        g, m, n = min(GROUP, len(own)), self.targets.shape[1], len(bases.columns)
        self.which, self.next = np.zeros(g, np.intp), 0
        self.inverse = np.zeros((g, m, m))
        self.basic = np.zeros((g, m), np.intp)
        # weights; squared lengths of the inverse's rows
        self.x, self.edge = np.zeros((g, m)), np.zeros((g, m))
        self.reduced = np.zeros((g, n), np.float32)
        self.pivots, self.age = np.zeros(g, np.intp), np.zeros(g, np.intp)
        self.alpha, self.gain, self.ratio = (np.zeros((g, n), np.float32) for _ in range(3))
        self._replace(np.arange(g))

    def run(self) -> Iterator[tuple[int, Vertex | None]]:
        limit = MOST_PIVOTS * self.targets.shape[1]
        while len(self.which):
            for place in np.flatnonzero(self.age >= REFRESH).tolist():
                self._refresh(place)
            r, sign, ended = self._leaving()
            for place in np.flatnonzero(ended).tolist():
                yield int(self.which[place]), self._vertex(place)
            if not ended.any():
                ended = ~self._pivot(r, sign) | (self.pivots >= limit)
                for place in np.flatnonzero(ended).tolist():
                    yield int(self.which[place]), None
            if ended.any():
                self._replace(np.flatnonzero(ended))

    def _leaving(self) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.bool_]]:
        """Which basic variable of each class leaves, the sign of its error, and which classes have
        ended instead.
        """
        below = np.minimum(self.x, 0.0)
        r = (below**2 / self.edge).argmax(axis=1)
        each = np.arange(len(r))
        optimal = below[each, r] >= -TOLERANCE
        barred = self.basic == self.itself[self.which][:, None]
        barring = barred.any(axis=1)
        value = np.einsum("gm,gm->g", self.bases.cost[self.basic], self.x) + self.bias[self.which]
        r = np.where(barring, barred.argmax(axis=1), r)
        sign = np.where(barring & (self.x[each, r] >= 0), -1.0, 1.0)
        return r, sign, ~barring & (optimal | (value > 0))

    def _pivot(self, r: NDArray[np.intp], sign: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Exchange the r-th basic variable of each class; for which of them that was possible (the
        others are spoilt).
        """
        each, g = np.arange(len(r)), len(r)
        row = self.inverse[each, r]  # (g, D + 1)
        q, change = self._entering(row, sign)
        # Both products with the inverse at once: it is read once.
        both = np.matmul(self.inverse, np.stack([self.bases.columns[q], row], axis=2))
        direction, along = both[:, :, 0].copy(), both[:, :, 1]
        pivot = direction[each, r]
        # else the narrow price was rounding after all
        possible = np.isfinite(change) & (sign * pivot < 0)
        pivot = np.where(possible, pivot, 1.0)
        left = self.basic[each, r]
        self.reduced[each, left] = np.where(left == self.itself[self.which], np.inf, -change)
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
            scipy.linalg.blas.dger(
                -1.0, scaled[n], direction[n], a=self.inverse[n].T, overwrite_a=1
            )
        self.basic[each, r] = q
        self.pivots += 1
        self.age += 1
        return possible

    def _entering(
        self, row: NDArray[np.float64], sign: NDArray[np.float64]
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """The first column of each class whose reduced cost would turn negative, and the change of
        the leaving one's (updates all others).
        """
        g, each = len(row), np.arange(len(row))
        alpha, gain, ratio = self.alpha[:g], self.gain[:g], self.ratio[:g]
        np.matmul(row.astype(np.float32), self.narrow, out=alpha)
        # a column that can enter has a positive one
        np.multiply(alpha, -sign.astype(np.float32)[:, None], out=gain)
        # Without masks, which cost more than the divisions: what cannot enter gets a ratio beyond
        # all others.
        np.subtract(gain, (PIVOT * np.abs(row).max(axis=1)).astype(np.float32)[:, None], out=ratio)
        np.maximum(ratio, 1e-30, out=ratio)
        np.divide(np.maximum(self.reduced, 1e-12), ratio, out=ratio)
        least = ratio.min(axis=1)
        # of those tied the largest pivot
        np.copyto(gain, 0.0, where=ratio > (least * np.float32(1 + 1e-6))[:, None])
        q = gain.argmax(axis=1)
        change = np.where(least < BEYOND, self.reduced[each, q] / alpha[each, q], np.inf).astype(
            np.float32
        )
        np.multiply(alpha, change[:, None], out=gain)
        self.reduced -= gain
        return q, change

    def _replace(self, places: NDArray[np.intp]) -> None:
        """The next classes at the first basis, where others have ended; without a next one the
        group shrinks.
        """
        fresh = np.arange(self.next, min(self.next + len(places), len(self.targets)))
        self.next += len(fresh)
        filled, empty, bases = places[: len(fresh)], places[len(fresh) :], self.bases
        self.which[filled], self.x[filled] = fresh, self.start[fresh]
        self.inverse[filled], self.basic[filled], self.edge[filled] = (
            bases.inverse,
            bases.basic,
            self.edges,
        )
        self.pivots[filled], self.age[filled] = 0, bases.age
        for place in filled:
            self._price(place, bases.reduced)
        if len(empty):
            for name in ("which", "inverse", "reduced", "basic", "edge", "x", "pivots", "age"):
                setattr(self, name, np.delete(getattr(self, name), empty, axis=0))

    def _price(self, place: int, reduced: NDArray[np.float64]) -> None:
        self.reduced[place] = reduced
        self.reduced[place, self.basic[place]] = np.inf
        if (itself := self.itself[self.which[place]]) >= 0:
            self.reduced[place, itself] = np.inf

    def _vertex(self, place: int) -> Vertex:
        basic, inverse = self.basic[place], self.inverse[place]
        target, bias = self.targets[self.which[place]], float(self.bias[self.which[place]])
        return self.bases.vertex(basic, inverse, inverse @ target, target, bias)

    def _refresh(self, place: int) -> None:
        self.inverse[place], reduced = self.bases.invert(self.basic[place])
        self._price(place, reduced)
        self.edge[place] = np.einsum("ij,ij->i", self.inverse[place], self.inverse[place])
        self.x[place] = self.inverse[place] @ self.targets[self.which[place]]
        self.age[place] = 0
