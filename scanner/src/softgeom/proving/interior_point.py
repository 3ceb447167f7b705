"""The programme of one class after another by interior points and cutting planes: the few steps
that tell which classes win and which never can.

Over some rivals i the best lead that they must have over class t is the linear programme

    minimise m   subject to   s_i = m - lead_i(z) >= 0,   high - z >= 0,   z - low >= 0,
    lead_i(z) = (w'_i - w'_t).z + b'_i - b'_t,

with multipliers l_i of the rivals, which sum to one, and v+, v- of the box: ``sum_i l_i (w'_i -
w'_t) + v+ - v- = 0``. Mehrotra's predictor and corrector (1992) walk between both: all slacks and
multipliers stay positive, and each step brings their products down. A step weighs every rival by
l_i / s_i, so that ten or twenty steps separate those that matter from the rest, also where hundreds
of them nearly tie and first-order steps (ascent.py) creep.

Only the sign of the optimum is asked for. A point that beats the rivals ends the walk: everybody is
looked at, and the strongest join. So do multipliers whose value is positive, once they are made
exact: they prove t lost, whoever else competes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg.lapack
from numpy.typing import NDArray

from softgeom.arrays import Floats, Ints
from softgeom.certifying.verdict import BlockingClasses
from softgeom.problem import Points, Problem, Proofs, proofs_of
from softgeom.proving.caratheodory import reduce_support
from softgeom.proving.lp import CORRECTIONS, TOLERANCE
from softgeom.searching.look import STRONGEST, look

TOGETHER = 64  # classes that look together: each holds its rivals' rows, a few megabytes
FRACTION_TO_BOUNDARY = 0.95  # part of the way to a face that a step goes, and where walks begin


def walk_each(
    problem: Problem, classes: Ints, start: Sequence[NDArray[np.floating]], rivals: Sequence[Ints]
) -> tuple[Proofs, Points]:
    """Decide ``classes`` (n,) over the box (around the ball), each from its point of ``start``, the
    nearer to where it comes closest to winning the better, and its first ``rivals``, best the
    strongest there.

    Gives class -> blocking classes and the bound <= 0 that they certify, and class -> a point (D,)
    of the region at which it seems to win. Classes without either are absent, as are all where no
    bias differs: the optimum of an unargmaxable class is zero then, and has no sign.
    """
    blocking: dict[int, BlockingClasses] = {}
    points: Points = {}
    if not np.ptp(problem.b):
        return {}, {}
    for begin in range(0, len(classes), TOGETHER):
        part = slice(begin, begin + TOGETHER)
        walks = [
            _Walk(problem, t, z, few)
            for t, z, few in zip(classes[part].tolist(), start[part], rivals[part], strict=True)
            if np.any(few != t)
        ]
        while walks:
            for walk in walks:
                walk.run()
            blocking |= {walk.t: walk.blocking for walk in walks if walk.blocking is not None}
            walks = [walk for walk in walks if walk.beats_rivals]
            if walks:
                which = np.array([walk.t for walk in walks])
                # who has not joined yet may be far ahead at the end of a walk: half-way back, too
                # (in-out separation, Ben-Ameur and Neto 2007)
                far = np.array([walk.z for walk in walks])
                near = (far + np.array([walk.begin for walk in walks])) / 2
                at_far, at_near = (
                    look(problem, Z, which, strongest=STRONGEST, enough=np.inf) for Z in (far, near)
                )
                for Z, seen in (far, at_far), (near, at_near):
                    won = np.flatnonzero(seen.margin > 0)
                    points |= {walks[n].t: problem.project(Z[n]) for n in won}
                joined = map(np.union1d, at_far.strongest, at_near.strongest)
                walks = [
                    walk
                    for walk, z, fresh in zip(walks, near, joined, strict=True)
                    if walk.t not in points and walk.add(fresh, z)
                ]
    return proofs_of(problem, blocking), points


class _Walk:
    """One class; slacks, multipliers (k + 2 D,): of rivals, upper and lower faces of the box."""

    def __init__(self, problem: Problem, t: int, z: NDArray[np.floating], rivals: Ints) -> None:
        self.problem, self.t = problem, t
        self.low, self.high = problem.box
        self.k, self.D = 0, problem.dimension
        # (k, D) rows of the rivals less that of the class
        self.rivals, self.A = np.zeros(0, np.intp), np.zeros((0, self.D))
        self.blocking: BlockingClasses | None = None
        self.dtype = "float32"
        middle, half = (self.high + self.low) / 2, FRACTION_TO_BOUNDARY * (self.high - self.low) / 2
        self.add(rivals, middle + np.clip(z.astype(np.float64) - middle, -half, half))

    @property
    def beats_rivals(self) -> bool:
        """Whether the class wins against the rivals so far."""
        return self.blocking is None and float(self.lead.max()) < 0

    def add(self, rivals: Ints, z: Floats) -> bool:
        """More rivals (n,) and a fresh start at z; whether there were any."""
        fresh = np.setdiff1d(rivals, np.append(self.rivals, self.t))
        if not len(fresh):
            return False
        own = self.problem.rows(np.array([self.t]), np.float64)
        self.rivals, self.k = np.append(self.rivals, fresh), self.k + len(fresh)
        self.A = np.concatenate([self.A, self.problem.rows(fresh, np.float64) - own])
        self.narrow = self.A.astype(np.float32)
        self.c = self.problem.b[self.rivals] - self.problem.b[self.t]
        self.z = self.begin = z
        self.lead = self.A @ z + self.c
        strongest = np.sort(self.lead)[-2 * self.D :]
        top = strongest[-1]
        m = top + (top - strongest[0] or abs(top) or 1.0)
        self.slack = np.concatenate([m - self.lead, self.high - z, z - self.low])
        self.y = 1 / (self.slack * (1 / self.slack[: self.k]).sum())  # all products are equal
        return True

    def run(self) -> None:
        """Walk until the class beats its rivals, is proven lost by them, or no step leads on."""
        for _ in range(len(self.y)):  # ten or twenty do, unless rounding holds it up
            moved = self._step()
            if moved and (self.lead.max() < 0 or (self._value() > 0 and self._certify())):
                return
            if not moved or self._value() > 0:  # float32 has given what it could
                if self.dtype == "float64" and not moved:
                    return
                self.dtype = "float64"

    def _step(self) -> bool:
        """Predictor and corrector; whether there was a step."""
        if not self._factorise():
            return False
        products = float(self.slack @ self.y) / len(self.y)
        if not 0 < products < np.inf:  # below or beyond what float64 holds
            return False
        residual, lacking = self._back(self.y), 1 - float(self.y[: self.k].sum())

        def direction(target: Floats | float) -> tuple[Floats, ...]:
            """First-order changes that bring slack times multiplier to ``target``."""
            a = target / self.slack - self.y
            missing = lacking - float(a[: self.k].sum())
            dz = self._solve(-(residual + self._back(a)) - self.mean * missing)
            dslack = self._change(dz, float(self.mean @ dz) - missing / self.total)
            return dz, dslack, a - self.h * dslack

        _, dslack, dy = direction(0.0)
        slack = self.slack + _to_the_boundary(self.slack, dslack) * dslack
        left = slack @ (self.y + _to_the_boundary(self.y, dy) * dy)
        centring = (float(left) / len(self.y) / products) ** 3
        dz, dslack, dy = direction(centring * products - dslack * dy)
        if not np.isfinite(dz).all():
            return False
        far = min(1.0, FRACTION_TO_BOUNDARY * _to_the_boundary(self.slack, dslack, 2.0))
        far_y = min(1.0, FRACTION_TO_BOUNDARY * _to_the_boundary(self.y, dy, 2.0))
        self.z, self.slack = self.z + far * dz, self.slack + far * dslack
        self.y = self.y + far_y * dy
        self.lead = self.A @ self.z + self.c
        return True

    def _factorise(self) -> bool:
        """Factor the normal matrix, the covariance of the rivals' rows under h = multiplier / slack
        plus the box's diagonal; False if it is singular.

        In float32 as long as that leads on: directions need few digits, since slacks and residuals
        are computed from where a step has led.
        """
        self.h = self.y / self.slack
        self.total = float(self.h[: self.k].sum())
        faces = self.h[self.k : self.k + self.D] + self.h[self.k + self.D :]
        root = np.sqrt(self.h[: self.k] / self.total).astype(self.dtype)
        rows = (self.narrow if self.dtype == "float32" else self.A) * root[:, None]
        self.mean = (root @ rows).astype(np.float64)
        matrix = (rows.T @ rows).astype(np.float64) - np.outer(self.mean, self.mean)
        # dependent rows must not stop it
        ridge = np.finfo(self.dtype).eps * np.trace(matrix) / self.D
        matrix.flat[:: self.D + 1] += faces / self.total + ridge
        self.factor, failed = scipy.linalg.lapack.dpotrf(matrix, overwrite_a=True)
        return not failed

    def _solve(self, right: Floats) -> Floats:
        """The normal matrix's solution (D,)."""
        return scipy.linalg.lapack.dpotrs(self.factor, right / self.total)[0]

    def _back(self, y: Floats) -> Floats:
        """``sum_i l_i A_i + v+ - v-`` (D,) of multipliers y."""
        k, D = self.A.shape
        return y[:k] @ self.A + y[k : k + D] - y[k + D :]

    def _change(self, dz: Floats, dm: float) -> Floats:
        """How slacks change with z and m."""
        return np.concatenate([dm - self.A @ dz, -dz, dz])

    def _value(self) -> float:
        """The dual objective: a lower bound on m if the multipliers satisfy their equations."""
        k, D = self.A.shape
        upper, lower = self.y[k : k + D] @ self.high, self.y[k + D :] @ self.low
        return float(self.y[:k] @ self.c - upper + lower)

    def _certify(self) -> bool:
        """Keep the multipliers as blocking classes if, corrected, they leave room; whether they
        do."""
        y = self.y
        for _ in range(CORRECTIONS):
            x = self._solve(self._back(y))
            y = np.maximum(y + self.h * self._change(x, float(self.mean @ x)), 0.0)
        weights = np.where(y[: self.k] > TOLERANCE * y[: self.k].max(), y[: self.k], 0.0)
        if not self._holds(weights):
            return False
        few = reduce_support(self.A, self.c, weights)
        weights = few if self._holds(few) else weights
        self.blocking = BlockingClasses(self.rivals[weights > 0], weights[weights > 0])
        return True

    def _holds(self, weights: Floats) -> bool:
        """Whether weights (k,) of the rivals leave room, in plain float64."""
        return bool(weights @ self.c > self.problem.support(-(weights @ self.A)))


def _to_the_boundary(x: Floats, dx: Floats, most: float = 1.0) -> float:
    """The longest step along dx, at most ``most``, that leaves x >= 0."""
    return 1 / max(1 / most, float((-dx / x).max()))
