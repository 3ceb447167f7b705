"""The programmes of one class: linear ones over a box, the only door to HiGHS (paper 001, eqs. 5-6;
notes on duality in hull.py), and the least distance in a ball.

*Best margin* over a box: maximise m subject to ``(w_t - w_i).z + b_t - b_i >= m`` for the rivals i
of a working set; its dual values are the weights that prove the class lost when m <= 0. More rivals
are added as they are found to be violated; HiGHS keeps its basis, so each round is a warm start.

*Chebyshev radius*: maximise r subject to ``(w_i - w_t).x + r ||w_i - w_t|| <= b_t - b_i``, x in the
box. As in the paper, the ball is not kept inside the box.

A status other than "optimal" is never a verdict: it is raised.
"""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
import scipy.optimize

from softgeom.arrays import Array, Floats, Ints

# feasibility on rows of order one, of HiGHS and of our own simplex method: checkers repair less
TOLERANCE = 1e-9
# Newton's corrections of weights by one factorisation: each gains the digits that it has
CORRECTIONS = 3


class SolverError(RuntimeError):
    """HiGHS ended without an optimum."""


class Programme:
    """Maximise the last of D + 1 columns, which are divided by ``scale``, under rows."""

    def __init__(
        self, low: Floats, high: Floats, method: str = "simplex", limit: float = np.inf
    ) -> None:
        self.scale = float(np.maximum(np.abs(low), np.abs(high)).max())
        self.count, self.columns = 0, len(low) + 1
        self.h = highspy.Highs()
        options: dict[str, Any] = {
            "output_flag": False,
            "threads": 1,
            "solver": method,
            # presolve would discard the warm start
            "presolve": "off" if method == "simplex" else "choose",
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
            "time_limit": float(limit),
        }
        for name, value in options.items():
            self.h.setOptionValue(name, value)
        sides = (np.append(low / self.scale, -np.inf), np.append(high / self.scale, np.inf))
        self.h.addVars(self.columns, *sides)
        self.h.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self.h.changeColCost(self.columns - 1, 1.0)

    def add(self, rows: Floats, lower: Floats) -> None:
        """Add ``rows . columns >= lower``, rows (n, D + 1), lower (n,) in units of z; SolverError
        if they are too large.
        """
        n = len(rows)
        starts = np.arange(0, n * self.columns, self.columns, dtype=np.int32)
        index = np.tile(np.arange(self.columns, dtype=np.int32), n)
        upper = np.full(n, highspy.kHighsInf)
        taken = self.h.addRows(n, lower / self.scale, upper, rows.size, starts, index, rows.ravel())
        if taken == highspy.HighsStatus.kError:
            raise SolverError("HiGHS takes no coefficients of this size")
        self.count += n

    def solve(self) -> tuple[Floats, Floats]:
        """Columns (D + 1,), in units of z, and dual values (rows,) at the optimum, or SolverError.

        A right run takes some pivots a row. One that starts where the last one ended may go round
        in a circle; it starts anew then.
        """
        self.h.setOptionValue("simplex_iteration_limit", 20 * (self.count + self.columns))
        self.h.run()
        if self.h.getModelStatus() == highspy.HighsModelStatus.kIterationLimit:
            self.h.clearSolver()
            self.h.run()
        status = self.h.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            ended = self.h.modelStatusToString(status)
            raise SolverError(f"HiGHS ended with status {ended} on {self.count} rows.")
        solution = self.h.getSolution()
        return np.array(solution.col_value) * self.scale, np.array(solution.row_dual)


class MarginProgramme:
    """The best margin of a growing set of comparisons over the box ``low``, ``high`` (D,) of z."""

    def __init__(self, low: Floats, high: Floats) -> None:
        self._programme = Programme(low, high)
        self.rivals = np.zeros(0, np.intp)

    def add(self, rivals: Ints, rows: Floats, bias: Floats) -> None:
        """Add comparisons that are not there yet, ``rivals`` (n,) by any names: rows w'_t - w'_i
        (n, D) and biases b'_t - b'_i (n,).
        """
        self._programme.add(np.column_stack([rows, -np.ones(len(rows))]), -bias)
        self.rivals = np.concatenate([self.rivals, rivals])

    def solve(self) -> tuple[Floats, float, Floats]:
        """The best z (D,), its margin, and the dual weights (working set,), or SolverError."""
        columns, dual = self._programme.solve()
        return columns[:-1], float(columns[-1]), np.maximum(-dual, 0.0)

    def solve_at_one(self) -> Floats:
        """Weights (working set,) with the last coordinate fixed at 1 and all others free.

        In the homogeneous form the best margin of an unargmaxable class is 0 and its dual vertex
        may waste the room that the bias leaves. At tau = 1 the objective is that room: the weights
        have ``v = 0`` and the least ``c``. SolverError outside the hull of the rivals' rows.
        """
        h, D = self._programme.h, self._programme.columns - 1
        index, wide = np.arange(D, dtype=np.int32), np.full(D - 1, np.inf)
        old = [np.array(side[:D]) for side in (h.getLp().col_lower_, h.getLp().col_upper_)]
        h.changeColsBounds(D, index, np.append(-wide, 1.0), np.append(wide, 1.0))
        try:
            return np.maximum(-self._programme.solve()[1], 0.0)
        finally:
            h.changeColsBounds(D, index, *old)


def chebyshev_radius(
    W: Array,
    b: Array | None,
    t: int,
    low: Floats,
    high: Floats,
    *,
    method: str = "simplex",
    time_limit: float = np.inf,
) -> tuple[float, Floats]:
    """Solve the paper's programme (eqs. 5-6) for class t of W (C, d), b (C,) over the box ``low``,
    ``high`` (d,) with all rows at once, by HiGHS's "simplex" or "ipm": the radius, negative when
    the class's region is empty by that much, and the centre (d,). SolverError if HiGHS does not
    report an optimum, as after ``time_limit`` seconds.
    """
    rivals = np.delete(np.arange(len(W)), t)
    D = W[t].astype(np.float64) - W[rivals].astype(np.float64)
    c = np.zeros(len(rivals)) if b is None else b[rivals].astype(np.float64) - np.float64(b[t])
    programme = Programme(low, high, method, time_limit)
    programme.add(np.column_stack([D, -np.linalg.norm(D, axis=1)]), c)
    columns, _ = programme.solve()
    return float(columns[-1]), columns[:-1]


class NearestPointProgramme:
    """The least-norm z at which comparisons hold, for balls and ellipsoids, by non-negative least
    squares (calls as in MarginProgramme).

    Class t wins inside the ball ``||z|| <= r`` iff the nearest point to the origin of ``{z : D z >=
    h}`` is nearer than r, with ``D = w'_t - w'_i`` (k, D) and ``h = b'_i - b'_t`` (k,). Lawson and
    Hanson (1974, Section 23.4) solve it as

        minimise || E u - e ||,  u >= 0,  E = [r D^T ; h^T],  e = (0, ..., 0, 1):

    with the residual q = E u - e, the point is ``z = -r q_{1:D} / q_{D+1}``; and u is the proof
    when there is none, because ``v = D^T u`` is then so small that ``r ||v|| + sum_i u_i (b'_t -
    b'_i) <= 0``.
    """

    def __init__(self, dimension: int, radius: float) -> None:
        self.radius, self.rivals = radius, np.zeros(0, np.intp)
        self._D, self._h = np.zeros((0, dimension)), np.zeros(0)

    def add(self, rivals: Ints, rows: Floats, bias: Floats) -> None:
        """Add comparisons that are not there yet (n,): rows D (n, D) and biases -h (n,)."""
        self.rivals = np.concatenate([self.rivals, rivals])
        self._D, self._h = np.concatenate([self._D, rows]), np.concatenate([self._h, -bias])

    def solve(self) -> tuple[Floats, float, Floats]:
        """A point z (D,) of the ball, its margin, and weights; SolverError if NNLS fails."""
        size = float(np.linalg.norm(self._D, axis=1).max()) * self.radius
        if not size:
            top = self._h.max()
            return np.zeros(self._D.shape[1]), float(-top), (self._h == top).astype(float)
        # Without a bias the cone has no scale of its own: any positive margin may be asked for.
        # With one, half of the digits: winning is strict.
        strict = size * (np.finfo(float).eps ** 0.5 if self._h.any() else 1.0)
        E = np.vstack([self._D.T * self.radius / size, (self._h + strict) / size])
        if not np.isfinite(E).all():
            raise SolverError("the rows, biases and radius leave the range of float64")
        target = np.zeros(len(E))
        target[-1] = 1.0
        try:
            weights, _ = scipy.optimize.nnls(E, target, maxiter=30 * max(E.shape))
        except RuntimeError as error:
            raise SolverError(
                f"Non-negative least squares did not converge on {len(self.rivals)} rivals: {error}"
            ) from None
        residual = E @ weights - target
        # a cone without a point sends z to infinity: the next line sees to it
        with np.errstate(over="ignore"):
            z = -residual[:-1] / min(residual[-1], -np.finfo(float).tiny)
            norm = float(np.linalg.norm(z))
        if not np.isfinite(norm):
            z, norm = np.zeros(len(z)), 0.0
        within = 1.0 if self._h.any() else 1 / max(norm, np.finfo(float).tiny)
        z = z * self.radius * min(within, (1 - 1e-6) / max(norm, np.finfo(float).tiny))
        return z, float((self._D @ z - self._h).min()), weights
