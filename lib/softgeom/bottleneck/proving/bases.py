"""One linear programme for many classes: warm bases, carried from class to class.

The dual of the best margin of class t over a box (notes in lp.py and hull.py) is, over the rivals i
of a set shared by all classes,

    minimise  -sum_i l_i b_i + sum_k (high_k v+_k - low_k v-_k)   subject to   sum_i l_i [w_i, 1] + [v+ - v-, 0] = [w_t, 1],

with l, v+, v- >= 0. Another class is another right side, nothing else: the optimal basis of one
class stays dual feasible for the next, and the dual simplex method (Lemke 1954) mends it in a few
pivots when the next class lies near. A vertex has at most d + 1 weights: the evidence is as short
as it can be. Its value plus b_t is t's best margin m against the shared rivals:

* m <= 0: the weights imprison t. Fewer rivals make m larger, so that the proof stands whoever else
  competes.
* m > 0: t beats the shared rivals at ``z``, the dual values; whether it beats everybody, a look
  decides.

The first basis is a corner of the box with the rival that wins there, and it is dual feasible.
Everything is dense: with d up to some hundreds one pivot is a matrix-vector product over the rivals
and a rank-one update, an order of magnitude less than a sparse solver takes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg.blas
from numpy.typing import NDArray

# weights above minus this count as non-negative: the checker repairs what is smaller
TOLERANCE = 1e-9
PIVOT = 1e-6  # entries of a tableau row up to this fraction are rounding, not pivots
REFRESH = 128  # pivots after which the inverse is computed anew
MOST_MENDING = 2  # per dimension, after rivals have joined
MOST_PIVOTS = 20  # per dimension, for one class: far more than any needs, unless it cycles


@dataclass(frozen=True, eq=False)
class Vertex:
    """Where the method ended for one class: at its optimum, or at the first point where it beats
    the shared rivals.
    """

    # margin against the shared rivals, in the solver's arithmetic: the best one if it is not
    # positive
    value: float
    positions: NDArray[np.intp]  # (n,) places in the shared set of the rivals with weights
    weights: NDArray[np.float64]  # (n,)
    z: NDArray[np.float64]  # (D,) the point of the box with that margin


class Bases:
    """The programme of the module's text over a shared set of rivals, with its current basis.

    Parameters
    ----------
    rows : (k, D) array
        Rows of the shared rivals.
    bias : (k,) array
        Their biases.
    low, high : (D,) arrays
        The box of z.
    """

    def __init__(
        self,
        rows: NDArray[np.float64],
        bias: NDArray[np.float64],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
    ) -> None:
        k, D = rows.shape
        self.D, self.k = D, k
        self.columns = np.zeros((k + 2 * D, D + 1))  # of the rivals, of v+ and of v-
        self.columns[:k, :D], self.columns[:k, D] = rows, 1.0
        self.columns[k + np.arange(D), np.arange(D)] = 1.0
        self.columns[k + D + np.arange(D), np.arange(D)] = -1.0
        # Prices need a few digits, and the product over the rivals is half of a pivot.
        self.narrow = self.columns[:k].astype(np.float32)
        self.cost = np.concatenate([-bias, high, -low])
        corner = np.where(np.abs(low) < np.abs(high), low, high)
        winner = int((rows @ corner + bias).argmax())
        # Coordinates at their upper bound have v+ in the basis, the others v-; the rival has the
        # last place.
        self.basic = np.append(np.where(corner == high, k, k + D) + np.arange(D), winner)
        self.barred = np.zeros(k + 2 * D, dtype=bool)
        self.inverse, self.reduced = self.invert(self.basic)
        self.age = 0

    def solve(
        self,
        own: NDArray[np.float64],
        bias: float,
        itself: int | None = None,
        *,
        best: bool = False,
    ) -> Vertex | None:
        """The vertex of a class with row ``own`` (D,); None if rounding or cycling stops the
        method.

        Dual objectives only grow: once one is positive the class is no captive of these rivals, and
        the method stops.

        Parameters
        ----------
        own, bias
            Row and bias of the class.
        itself : int, optional
            Its place in the shared set, if it is there: it does not compete with itself.
        best : bool
            Go on to the best margin, also of a class that beats the set.
        """
        before = self._state()
        if itself is not None:
            self.barred[itself] = True
        target = np.append(own, 1.0)
        vertex = self._descend(target, bias, best=best)
        if itself is not None:
            self.barred[itself] = False
        if vertex is None or (itself is not None and self.reduced[itself] < 0):
            # a class that beats the set must not leave a basis in which it is missing
            self._restore(before)
        return vertex

    def add(self, rows: NDArray[np.float64], bias: NDArray[np.float64]) -> None:
        """More rivals (n, D), (n,): the basis stays, and some of them may now have negative reduced
        costs (see ``improve``).
        """
        k, n = self.k, len(rows)
        columns = np.column_stack([rows, np.ones(n)])
        dual = self.cost[self.basic] @ self.inverse
        self.columns = np.concatenate([self.columns[:k], columns, self.columns[k:]])
        self.narrow = np.concatenate([self.narrow, columns.astype(np.float32)])
        self.reduced = np.concatenate([self.reduced[:k], -bias - columns @ dual, self.reduced[k:]])
        self.cost = np.concatenate([self.cost[:k], -bias, self.cost[k:]])
        self.barred = np.zeros(len(self.cost), dtype=bool)
        self.basic[self.basic >= k] += n
        self.k += n

    def improve(self, own: NDArray[np.float64], bias: float) -> Vertex | None:
        """The optimal vertex of a class whose weights in the current basis are non-negative, as
        after ``solve`` and ``add``.

        The primal simplex method, which ends at the first value that is not positive. None if
        rounding stops it, or if it would be longer than starting anew: the basis is then of no use.
        """
        target = np.append(own, 1.0)
        x = self.inverse @ target
        for _ in range(MOST_MENDING * (self.D + 1)):
            q = int(self.reduced.argmin())
            value = float(self.cost[self.basic] @ x) + bias
            if value <= 0 or self.reduced[q] >= -TOLERANCE * max(1.0, abs(value)):
                return self.vertex(self.basic, self.inverse, x, target, bias)
            direction = self.inverse @ self.columns[q]
            able = np.flatnonzero(direction > PIVOT * np.abs(direction).max())
            if not len(able):
                return None
            ratio = np.maximum(x[able], 0.0) / direction[able]
            tied = able[ratio <= ratio.min() * (1 + 1e-9) + 1e-300]
            r = int(tied[direction[tied].argmax()])
            alpha = self._prices(self.inverse[r])
            if not alpha[q] > 0:
                return None
            step = x[r] / direction[r]
            x = x - step * direction
            x[r] = step
            self._exchange(r, q, direction, alpha)
            if not self.age:
                x = self.inverse @ target
        return None

    def covers(self, own: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Which classes with rows ``own`` (n, D) the current basis is optimal for, and its weights
        (n, D + 1).
        """
        x = np.column_stack([own, np.ones(len(own))]) @ self.inverse.T
        return x.min(axis=1) >= -TOLERANCE, np.maximum(x, 0.0)

    def _descend(self, target: NDArray[np.float64], bias: float, *, best: bool) -> Vertex | None:
        pivots, limit = 0, MOST_PIVOTS * (self.D + 1)
        while True:
            x = self.inverse @ target
            r, sign = self._leaving(x)
            beats = (
                float(self.cost[self.basic] @ x) + bias > 0 and not self.barred[self.basic].any()
            )
            if r is None or (beats and not best):
                return self.vertex(self.basic, self.inverse, x, target, bias)
            if pivots >= limit or not self._pivot(r, sign):
                return None
            pivots += 1

    def _leaving(self, x: NDArray[np.float64]) -> tuple[int | None, float]:
        """The basic variable that leaves, and the sign of its error: a barred one first, else by
        dual steepest edge.
        """
        barred = np.flatnonzero(self.barred[self.basic])
        if len(barred):
            r = int(barred[0])
            return r, (1.0 if x[r] < 0 else -1.0)
        below = np.minimum(x, 0.0)
        if below.min() >= -TOLERANCE:
            return None, 0.0
        return int((below**2 / np.einsum("ij,ij->i", self.inverse, self.inverse)).argmax()), 1.0

    def _pivot(self, r: int, sign: float) -> bool:
        """Exchange the r-th basic variable for the first one whose reduced cost would turn
        negative.
        """
        row = self.inverse[r]
        alpha = self._prices(row)
        able = (sign * alpha < -PIVOT * np.abs(row).max()) & ~self.barred
        able[self.basic] = False
        entering = np.flatnonzero(able)
        if not len(entering):
            return False
        ratio = np.maximum(self.reduced[entering], 0.0) / np.abs(alpha[entering])
        least = ratio.min()
        if not np.isfinite(least):  # beyond what float64 holds
            return False
        tied = entering[ratio <= least * (1 + 1e-9) + 1e-300]
        q = int(tied[np.abs(alpha[tied]).argmax()])
        direction = self.inverse @ self.columns[q]
        if not sign * direction[r] < 0:
            return False  # the narrow price was rounding after all
        self._exchange(r, q, direction, alpha)
        return True

    def _prices(self, row: NDArray[np.float64]) -> NDArray[np.float64]:
        """A row of the tableau (k + 2 D,): a row of the inverse times all columns."""
        return np.concatenate([self.narrow @ row.astype(np.float32), row[: self.D], -row[: self.D]])

    def _exchange(
        self, r: int, q: int, direction: NDArray[np.float64], alpha: NDArray[np.float64]
    ) -> None:
        """Column q becomes the r-th basic one; ``direction`` is the inverse times it, ``alpha`` the
        r-th row of the tableau.
        """
        change = self.reduced[q] / alpha[q]
        self.reduced -= change * alpha
        self.reduced[self.basic[r]], self.reduced[q] = -change, 0.0
        scaled = self.inverse[r] / direction[r]
        direction[r] -= 1.0  # so that the r-th row becomes `scaled`
        # In place: the transpose of a row-major array is what BLAS calls column-major.
        scipy.linalg.blas.dger(-1.0, scaled, direction, a=self.inverse.T, overwrite_a=1)
        self.basic[r] = q
        self.age += 1
        if self.age >= REFRESH:
            self.refresh()

    def vertex(
        self,
        basic: NDArray[np.intp],
        inverse: NDArray[np.float64],
        x: NDArray[np.float64],
        target: NDArray[np.float64],
        bias: float,
    ) -> Vertex:
        """The vertex of the basis ``basic`` with its inverse, for a class with right side
        ``target``, where x are its weights.
        """
        matrix = self.columns[basic]  # rows are the columns of the basis
        # one step of refinement: the inverse has been updated many times
        x = x + inverse @ (target - x @ matrix)
        dual = self.cost[basic] @ inverse
        kept = (basic < self.k) & (x > 0)
        return Vertex(float(dual @ target) + bias, basic[kept].copy(), x[kept], dual[: self.D])

    def invert(self, basic: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Inverse of a basis (D + 1, D + 1) and the reduced costs (k + 2 D,) in it, computed
        anew.
        """
        inverse = np.ascontiguousarray(np.linalg.inv(self.columns[basic].T))
        dual = self.cost[basic] @ inverse
        reduced = self.cost - self.columns @ dual
        reduced[basic] = 0.0
        return inverse, reduced

    def refresh(self) -> None:
        """Inverse and reduced costs of the current basis, computed anew."""
        self.inverse, self.reduced = self.invert(self.basic)
        self.age = 0

    def _state(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp], int]:
        return self.inverse.copy(), self.reduced.copy(), self.basic.copy(), self.age

    def _restore(
        self, state: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp], int]
    ) -> None:
        self.inverse, self.reduced, self.basic, self.age = state
