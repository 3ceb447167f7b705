"""Exact rational linear algebra for small near-ties: Python's fractions, no rounding at all."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Row = list[Fraction]


def solve_nonnegative(
    A: Sequence[Sequence[Fraction]], y: Sequence[Fraction], near: Sequence[Fraction]
) -> list[Fraction] | None:
    """Solve ``A l = y`` exactly with the free unknowns set to ``near``; None if inconsistent or some l is negative.

    Parameters
    ----------
    A : m rows of n fractions
        The matrix.
    y : m fractions
        The right side.
    near : n fractions
        An approximate solution; unknowns without a pivot keep their value from it.
    """
    rows = [[*row, value] for row, value in zip(A, y, strict=True)]
    n, pivots, done = len(near), [], 0
    # Largest weights first: they become the pivots, so that rounding is absorbed where there is room for it.
    for column in sorted(range(n), key=lambda j: -near[j]):
        pivot = next((r for r in range(done, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[done], rows[pivot] = rows[pivot], rows[done]
        _eliminate(rows, done, column)
        pivots.append(column)
        done += 1
    if any(row[n] for row in rows[done:]):
        return None
    solution = list(near)
    free = [j for j in range(n) if j not in set(pivots)]
    for r, column in enumerate(pivots):
        solution[column] = rows[r][n] - sum((rows[r][j] * near[j] for j in free), Fraction(0))
    return solution if all(value >= 0 for value in solution) else None


def _eliminate(rows: list[Row], r: int, column: int) -> None:
    """Scale row r to a unit pivot in ``column`` and clear that column from every other row, in place."""
    inverse = 1 / rows[r][column]
    rows[r] = [value * inverse for value in rows[r]]
    for k, row in enumerate(rows):
        factor = row[column]
        if k != r and factor:
            rows[k] = [a - factor * p if p else a for a, p in zip(row, rows[r], strict=True)]
