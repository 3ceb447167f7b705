"""The least distance programme behind balls and ellipsoids, by non-negative least squares.

Class t wins inside the ball ``||z|| <= r`` iff the nearest point to the origin of ``{z : D z >=
h}`` is nearer than r, with ``D = w'_t - w'_i`` (k, D) and ``h = b'_i - b'_t`` (k,). Lawson and
Hanson (1974, Section 23.4) solve it as

    minimise || E u - e ||,  u >= 0,  E = [r D^T ; h^T],  e = (0, ..., 0, 1):

with the residual q = E u - e, the point is ``z = -r q_{1:D} / q_{D+1}``; and u is the proof when
there is none, because ``v = D^T u`` is then so small that ``r ||v|| + sum_i u_i (b'_t - b'_i) <=
0``.
"""

from __future__ import annotations

import numpy as np
import scipy.optimize

from softgeom.arrays import Floats, Ints
from softgeom.bottleneck.proving.lp import SolverError

# the margin asked for, relative to the size of the rows times the radius: winning is strict
STRICT = 1e-7


class NearestPointProgramme:
    """The least-norm z at which comparisons hold (calls as in MarginProgramme)."""

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
        strict = size * (STRICT if self._h.any() else 1.0)
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
