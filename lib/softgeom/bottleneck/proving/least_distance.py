"""The point of ``{z : D z >= h}`` nearest to the origin, in exact arithmetic (Lawson and Hanson
1974, Section 23.4).

It is the projection ``z = D^T u`` with ``u >= 0`` and ``u_i > 0`` only where ``D_i.z = h_i``; both
are rational when D and h are. Hence over a ball every verdict is a comparison of rational squares:
with ``c = -h`` and ``||z|| >= r``,

    r ||D^T u|| + c.u = r ||z|| - ||z||^2 <= 0

makes u a proof of captivity, and otherwise points near z win. Non-negative least squares on ``[D^T;
h^T] u = (0, 1)`` finds u; its passive columns are independent, so that no step ever fails, and in
exact arithmetic it ends.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction

from softgeom.bottleneck.proving.simplex import TooLargeError


def nearest_point(
    D: Sequence[Sequence[Fraction]], h: Sequence[Fraction], *, seconds: float = 60.0
) -> tuple[list[Fraction], list[Fraction]]:
    """The nearest point z (d,) of ``D z >= h``, for k rows D of d fractions, and its multipliers u
    (k,). TooLargeError after ``seconds``; ValueError if no z satisfies the inequalities.
    """
    columns = [[*row, value] for row, value in zip(D, h, strict=True)]  # of E, (k, d + 1)
    u = [Fraction(0)] * len(D)
    passive: list[int] = []
    deadline = time.monotonic() + seconds
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
            if time.monotonic() > deadline:
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
