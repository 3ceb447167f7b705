"""Squared error under a stability margin, and its interior-point path, on the line (003, Section
4.1, eqs. 19-22).

The past x_1..x_n is given, the tail y = (x_{n+1}, ..., x_T) is free.  With residuals e_i and
margins m_i = 1 - c Var_i,

    minimise  1/2 sum e_i(y)^2   subject to   m_i(y) >= level for every i in the tail          (22)

is relaxed to  1/2 sum e_i^2 - t sum log(m_i - level), whose minimisers for t -> 0 form the central
path.  At t = s^2 and level = 0 the relaxation is s^2 times the negative log-density of the model
(19, 21).  The margins are not concave in y: the feasible set may fall into pieces, and each piece
has its own path and its own local optimum.

Shapes: past (n,), tail (k,), margins and multipliers (k,).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from papers.margins.scalar import sequence_moments
from softgeom.arrays import Floats


class Point(NamedTuple):
    """A minimiser: tail y, 1/2 sum e^2, margins, multipliers of m_i >= level, weight t (or 0)."""

    tail: Floats
    error: float
    margins: Floats
    multipliers: Floats
    weight: float

    def row(self, first: int = 1) -> dict[str, float]:
        """As a row: weight, squared error; token, margin, multiplier by position from ``first``."""
        columns = {"x": self.tail, "margin_": self.margins, "multiplier_": self.multipliers}
        parts = {
            f"{name}{i}": value
            for name, values in columns.items()
            for i, value in enumerate(values, first)
        }
        return {"weight": self.weight, "squared_error": 2 * self.error, **parts}


def tail_error(tail: Floats, past: Floats, c: float) -> float:
    """Compute 1/2 sum of squared residuals over the tail."""
    e, _ = _tail(tail, past, c)
    return float(0.5 * e @ e)


def tail_margins(tail: Floats, past: Floats, c: float) -> Floats:
    """Compute m_i = 1 - c Var_i over the tail, (k,)."""
    return _tail(tail, past, c)[1]


def barrier_path(
    start: Floats, past: Floats, c: float, level: float, weights: Floats
) -> list[Point]:
    """Follow the minimisers of the barrier problem through decreasing ``weights`` t, from a
    feasible ``start``, with the multipliers t / (m_i - level). ValueError: ``start`` is not inside.
    """
    if np.any(tail_margins(start, past, c) <= level):
        raise ValueError(
            f"start {start} has a margin at or below level = {level}: start inside the "
            "feasible set."
        )
    path, y = [], start.astype(float)
    for t in weights:
        y = _minimise_barrier(y, past, c, level, float(t))
        m = tail_margins(y, past, c)
        path.append(Point(y, tail_error(y, past, c), m, t / (m - level), float(t)))
    return path


def constrained_optimum(start: Floats, past: Floats, c: float, level: float) -> Point:
    """Solve (22) without a barrier, by sequential quadratic programming from ``start``: a local
    optimum. ValueError: The solver did not converge.
    """
    constraint = {"type": "ineq", "fun": lambda y: tail_margins(y, past, c) - level}
    solution = minimize(
        tail_error,
        start,
        args=(past, c),
        method="SLSQP",
        constraints=[constraint],
        options={"ftol": 1e-15, "maxiter": 500},
    )
    if not solution.success:
        raise ValueError(f"no constrained optimum from {start}: {solution.message}")
    y, m = solution.x, tail_margins(solution.x, past, c)
    return Point(y, tail_error(y, past, c), m, _multipliers(y, past, c, level), 0.0)


def _multipliers(y: Floats, past: Floats, c: float, level: float) -> Floats:
    """Solve grad error = sum_i lambda_i grad m_i over the active margins, by least squares."""
    active = tail_margins(y, past, c) - level < 1e-6

    def gradient(f: Callable[..., Any]) -> Floats:
        steps = 1e-6 * np.eye(len(y))
        return np.array([(f(y + h, past, c) - f(y - h, past, c)) / 2e-6 for h in steps])

    slope, normals = gradient(tail_error), gradient(tail_margins)  # (y,), (y, m)
    multipliers = np.zeros(len(y))
    if active.any():
        multipliers[active] = np.linalg.lstsq(normals[:, active], slope, rcond=None)[0]
    return multipliers


def _minimise_barrier(y: Floats, past: Floats, c: float, level: float, t: float) -> Floats:
    def relaxed(z: Floats) -> float:
        slack = tail_margins(z, past, c) - level
        return (
            tail_error(z, past, c) - t * float(np.log(slack).sum()) if np.all(slack > 0) else np.inf
        )

    # The simplex method needs no derivative, and simply never accepts a point outside.
    options = {"xatol": 1e-10, "fatol": 1e-15, "maxiter": 4000, "maxfev": 4000}
    return np.asarray(minimize(relaxed, y, method="Nelder-Mead", options=options).x)


def _tail(tail: Floats, past: Floats, c: float) -> tuple[Floats, Floats]:
    sequence = np.concatenate([past, tail])
    mean, variance = sequence_moments(sequence[None], c)
    n = len(past)
    return sequence[n:] - mean[0, n:], 1.0 - c * variance[0, n:]
