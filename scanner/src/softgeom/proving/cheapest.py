"""The cheapest proof: weights that rule a class out, with as little as possible on some rivals.

Weights l >= 0 on rivals, sum 1, with ``sum_i l_i w_i = w_t`` and ``sum_i l_i b_i - b_t >= room``
prove over any feature set that t is at least ``room`` behind. Those that minimise ``sum_i l_i
cost_i`` are the dual values of

    maximise m  subject to  (w_t - w_i).x + tau (b_t + room - b_i) + cost_i >= m,  tau >= 0,

one row per rival. Other costs move right sides only, so that HiGHS starts where it ended.
"""

from __future__ import annotations

import numpy as np

from softgeom.arrays import Floats, Ints
from softgeom.layer import SoftmaxLayer
from softgeom.proving.lp import TOLERANCE, Programme

FAR = 1e6  # bound on x and tau, rows of order one: what it lets through fails at the checker
AT_ONCE = 100  # rivals that join when they are violated most


class CheapestWeights:
    """The programme of class t of a layer against ``rivals`` (n,), which join it as they matter."""

    def __init__(self, layer: SoftmaxLayer, t: int, rivals: Ints, room: float) -> None:
        W, b = layer.W.astype(np.float64), layer.bias.astype(np.float64)
        rows, lead = W[t] - W[rivals], b[t] + room - b[rivals]
        self._rows = np.column_stack(
            [_of_order_one(rows), _of_order_one(lead), -np.ones(len(lead))]
        )
        columns = layer.dimension + 1
        self._programme = Programme(-np.ones(columns), np.ones(columns))
        low, high = np.full(columns, -FAR), np.full(columns, FAR)
        low[-1] = 0.0
        self._programme.h.changeColsBounds(columns, np.arange(columns, dtype=np.int32), low, high)
        self._joined = np.zeros(0, np.intp)

    def solve(self, cost: Floats, removed: Ints) -> Floats:
        """Weights (n,) for ``cost`` (n,) >= 0, some of it positive, and none at the places
        ``removed``. They prove nothing until they are checked: there may be no such weights.
        SolverError if HiGHS fails.
        """
        lower = -cost
        lower[removed] = -np.inf
        for row, bound in enumerate(lower[self._joined]):
            self._programme.h.changeRowBounds(row, bound, np.inf)
        fresh = np.setdiff1d(np.flatnonzero(cost), self._joined)
        while True:
            if len(fresh):
                self._programme.add(self._rows[fresh], lower[fresh])
                self._joined = np.append(self._joined, fresh)
            columns, dual = self._programme.solve()
            short = self._rows @ columns - lower
            short[self._joined] = 0.0
            fresh = np.argsort(short)[:AT_ONCE]
            fresh = fresh[short[fresh] < -TOLERANCE]
            if not len(fresh):
                break
        weights = np.zeros(len(cost))
        weights[self._joined] = np.maximum(-dual, 0.0)
        return weights


def _of_order_one(values: Floats) -> Floats:
    largest = np.abs(values).max(initial=0.0)
    return values / largest if largest else values
