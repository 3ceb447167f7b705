"""The best margin over a box in exact arithmetic: the simplex method on integers, no rounding at
all.

Over ``low <= z <= high`` the best margin of a class with differences ``D = w_t - w_i`` (k, d), ``c
= b_t - b_i`` (k,) is

    max_z min_i (D_i.z + c_i) = min { c0.l + u.p : D^T l - p + n = 0, sum l = 1, l, p, n >= 0 },

with ``u = high - low`` and ``c0 = c + D low`` (duality; ``p - n`` splits v = D^T l by sign). Every
rival alone is a feasible start, every feasible l of value <= 0 is a certificate, and the
reduced costs of n are ``z - low``. Integer pivoting (Edmonds 1967, Bareiss 1968): all entries share
one denominator, the last pivot, and divisions are exact.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


class TooLargeError(RuntimeError):
    """An exact computation that would take longer than it was given."""


@dataclass(frozen=True)
class Optimum:
    """Value, weights l (k,), and the dual's z (d,), which is None after an early stop."""

    value: Fraction
    weights: list[Fraction]
    z: list[Fraction] | None


def best_margin(
    D: Sequence[Sequence[Fraction]],
    c: Sequence[Fraction],
    low: Sequence[Fraction],
    high: Sequence[Fraction],
    *,
    seconds: float,
) -> Optimum:
    """The best margin over the box, or any proof that it is at most 0, in fractions: k rows D =
    ``w_t - w_i`` of length d, and c = ``b_t - b_i``. TooLargeError after ``seconds``.
    """
    table = _Table(D, c, low, high)
    deadline = time.thread_time() + seconds
    pivots = 0
    while table.value() > 0:
        # by largest gain; after as many pivots as columns by Bland's rule, which cannot cycle
        column = table.entering(greedy=pivots < len(table.cost))
        if column is None:
            return Optimum(table.value(), table.weights(), table.point(low))
        table.pivot(table.leaving(column), column)
        pivots += 1
        if time.thread_time() > deadline:
            late = f"the exact programme took more than {seconds:g} s ({pivots} pivots)"
            raise TooLargeError(late)
    return Optimum(table.value(), table.weights(), None)


class _Table:
    """d + 1 rows and reduced costs, over l (k columns), p (d), n (d) and the right side."""

    def __init__(
        self,
        D: Sequence[Sequence[Fraction]],
        c: Sequence[Fraction],
        low: Sequence[Fraction],
        high: Sequence[Fraction],
    ) -> None:
        k, d = len(D), len(low)
        self.k, self.d, self.denominator = k, d, 1
        shifts = (
            sum((a * b for a, b in zip(row, low, strict=True) if a), Fraction(0)) for row in D
        )
        c0 = [value + shift for value, shift in zip(c, shifts, strict=True)]
        columns = [[row[j] for row in D] for j in range(d)]
        # each coordinate in units that make it whole
        self.scales = [_common_denominator(column) for column in columns]
        first = min(range(k), key=c0.__getitem__)
        rows, self.basis = [], []
        for j, column in enumerate(columns):
            whole = [int(value * self.scales[j]) for value in column]
            split = [0] * (2 * d)
            split[j], split[d + j] = -1, 1
            row = [value - whole[first] for value in whole] + split + [-whole[first]]
            positive = row[-1] >= 0
            rows.append(row if positive else [-value for value in row])
            self.basis.append(k + d + j if positive else k + j)
        rows.append([1] * k + [0] * (2 * d) + [1])
        self.basis.append(first)
        prices = [(b - a) / scale for a, b, scale in zip(low, high, self.scales, strict=True)]
        cost = [*c0, *prices, *[Fraction(0)] * d, Fraction(0)]
        for basic, row in zip(self.basis, rows, strict=True):
            if price := cost[basic]:
                cost = [a - price * b if b else a for a, b in zip(cost, row, strict=True)]
        self.unit = _common_denominator(cost)
        self.cost = [int(value * self.unit) for value in cost]
        self.rows = rows

    def value(self) -> Fraction:
        return Fraction(-self.cost[-1], self.denominator * self.unit)

    def entering(self, *, greedy: bool) -> int | None:
        costs = self.cost[:-1]
        if greedy:
            column = min(range(len(costs)), key=costs.__getitem__)
            return column if costs[column] < 0 else None
        return next((j for j, value in enumerate(costs) if value < 0), None)

    def leaving(self, column: int) -> int:
        """The row of least ratio, ties to the smallest basic column (Bland): one exists."""
        best, best_ratio = -1, Fraction(0)
        for r, row in enumerate(self.rows):
            if row[column] > 0:
                ratio = Fraction(row[-1], row[column])
                tie = ratio == best_ratio and self.basis[r] < self.basis[best]
                if best < 0 or ratio < best_ratio or tie:
                    best, best_ratio = r, ratio
        return best

    def pivot(self, r: int, column: int) -> None:
        top, old = self.rows[r], self.denominator
        p = top[column]
        for i, row in enumerate([*self.rows, self.cost]):
            if i != r:
                factor = row[column]
                if factor:
                    row[:] = [(a * p - factor * b) // old for a, b in zip(row, top, strict=True)]
                else:
                    row[:] = [a * p // old for a in row]
        self.denominator = p
        self.basis[r] = column

    def weights(self) -> list[Fraction]:
        found = [Fraction(0)] * self.k
        for basic, row in zip(self.basis, self.rows, strict=True):
            if basic < self.k:
                found[basic] = Fraction(row[-1], self.denominator)
        return found

    def point(self, low: Sequence[Fraction]) -> list[Fraction]:
        unit, slopes = self.denominator * self.unit, self.cost[self.k + self.d : -1]
        steps = (Fraction(v, unit) * s for v, s in zip(slopes, self.scales, strict=True))
        return [a + step for a, step in zip(low, steps, strict=True)]


def _common_denominator(values: Sequence[Fraction]) -> int:
    return math.lcm(*(value.denominator for value in values)) if values else 1
