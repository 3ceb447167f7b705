"""Newton's ascent on the smoothed margin against everybody: a witness where it succeeds, captors
where it cannot.

The lead of the best rival over class t, smoothed at a temperature T and kept inside the box by a
faint barrier, is the convex function

    F(z) = T log sum_i exp(lead_i / T) - (T / 2 D) sum_k log (high_k - z_k)(z_k - low_k),    lead_i = (w'_i - w'_t).z + b'_i - b'_t,

whose Hessian is the covariance of the leading rivals' rows under p = softmax(lead / T), divided by
T. First-order steps (ascent.py) creep where hundreds of rivals nearly tie; a damped Newton step
sees how they lie. Logits of all rivals are carried along, so that a step is as long as everybody
allows, not just a working set: one product with W' a step. T falls whenever the minimum at it is
near. F below zero is a win.

A minimum above zero is a proof to the contrary: there the barrier is all that keeps ``sum_i p_i
w'_i`` from w'_t, and p with room in the bias, ``sum_i p_i b'_i > b'_t``, imprisons t once it has
been made exact. That takes some products with p's few rows, as the Hessian is the derivative of
``sum_i p_i w'_i`` and its factors are at hand. As long as there is room, T stays: lower
temperatures only make the minimum harder to find.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg.lapack
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.verdict import Captors
from softgeom.bottleneck.problem import Problem
from softgeom.bottleneck.searching.ascent import Candidates
from softgeom.bottleneck.searching.look import look

STEPS = 12  # who has not won by then is most often a captive
RIVALS = 384  # listed at the last point: the captors of a captive are mostly among them
HEAVIEST = 5  # rivals per dimension whose rows make the Hessian
FORGET = 14.0  # temperatures below the best rival at which another is lost in the sum
# the first temperature, in units of the best rival's lead, from a start that most rivals have lost
# at: such classes mostly win
HOT = 2.0
COLD = 0.2  # the same from elsewhere: captives show sooner
COOLER = 0.3  # the next temperature in units of the last one
NEAR = 0.6  # Newton decrement, squared, at which the minimum counts as near
CLOSE = 0.2  # the same, at which weights are worth making exact
# the same, at which weights that could not be made exact never will be at this temperature
THERE = 0.01
CORRECTIONS = 10  # of weights: each gains a digit or more where they are close
LEAST = 0.1  # part of a weight that a correction leaves at least
DAMPING = 2.0  # the first step tried is this over one plus the decrement
INSIDE = 0.99  # starts lie within this part of the box: the barrier is infinite on its faces
GROUP_BYTES = 8 * 2**20  # logits carried at once


def newton_ascent(
    problem: Problem,
    classes: NDArray[np.intp],
    start: NDArray[np.floating],
    *,
    first: NDArray[np.floating] | float = COLD,
    steps: int = STEPS,
    rivals: int = RIVALS,
) -> tuple[Candidates, dict[int, Captors]]:
    """Search a witness for each of ``classes`` (n,), or captors that show that there is none.

    Parameters
    ----------
    problem : Problem
        The layer over its region; a ball is searched in the box around it and the result is brought
        back.
    classes : (n,) integer array
        The classes to search for.
    start : (n, D) array
        Where to start: the more rivals they beat there, the better.
    first : (n,) array or float
        The first temperature of each, in units of the best rival's lead at its start.
    steps : int
        Newton steps of each.
    rivals : int
        The strongest rivals at the last point that are listed.

    Returns
    -------
    Candidates, dict
        The last point of each class, its margin there, and its strongest rivals; class -> captors
        that hold in plain float64 and are still to be certified. Classes that neither win nor have
        captors may be either.
    """
    Z, taken = problem.project(np.asarray(start, dtype=np.float32)), np.zeros(len(classes), np.intp)
    first = np.broadcast_to(first, len(classes))
    left = look(problem, Z, classes).losers
    size = max(1, GROUP_BYTES // (4 * problem.classes))
    captors: dict[int, Captors] = {}
    for these in (left[begin : begin + size] for begin in range(0, len(left), size)):
        group = _Group(problem, classes[these], Z[these], first[these])
        for _ in range(steps):
            group.step()
        Z[these], taken[these] = problem.project(group.Z.astype(np.float32)), group.taken
        captors |= group.captors
    seen = look(problem, Z, classes, strongest=rivals, enough=np.inf)
    return Candidates(Z, seen.margin, taken, taken + 2, list(seen.strongest)), captors


@dataclass(frozen=True, eq=False)
class _Step:
    """A Newton step of one class."""

    move: NDArray[np.float64]  # (D,)
    decrement: float  # squared
    is_last: bool  # at this temperature


class _Group:
    """Classes that step together: where they are, their leads, and their temperatures."""

    def __init__(
        self,
        problem: Problem,
        classes: NDArray[np.intp],
        start: NDArray[np.floating],
        first: NDArray[np.floating] | float,
    ) -> None:
        self.problem, self.classes = problem, classes
        self.low, self.high = problem.box
        middle, half = (self.high + self.low) / 2, INSIDE * (self.high - self.low) / 2
        self.Z = middle + np.clip(start.astype(np.float64) - middle, -half, half)
        self.barrier = 1 / (2 * problem.dimension)
        self.leads = self._leads(self.Z, classes, problem.b)  # (n, C); -inf for the class itself
        self.T = np.maximum(first * self.leads.max(axis=1), np.finfo(np.float32).eps)
        self.open = np.flatnonzero(self.leads.max(axis=1) >= 0)
        self.taken = np.zeros(len(classes), np.intp)
        self.captors: dict[int, Captors] = {}

    def step(self) -> None:
        """A damped Newton step of every class that has neither won nor captors."""
        steps = {n: self._newton_step(n) for n in self.open.tolist()}
        self.taken[self.open] += 1
        self.open = np.array(
            [n for n in steps if int(self.classes[n]) not in self.captors], dtype=np.intp
        )
        if not len(self.open):
            return
        open_ = self.open.tolist()
        moves = np.array([steps[n].move for n in open_])
        change = self._leads(moves, self.classes[self.open], np.zeros(self.problem.classes))
        lengths = np.array([self._length(n, steps[n], change[j]) for j, n in enumerate(open_)])
        self.Z[self.open] += lengths[:, None] * moves
        change[np.arange(len(change)), self.classes[self.open]] = 0.0
        self.leads[self.open] += lengths[:, None].astype(np.float32) * change
        self.T[self.open[(lengths == 0) | [steps[n].is_last for n in open_]]] *= COOLER
        self.open = self.open[self.leads[self.open].max(axis=1) >= 0]

    def _leads(
        self, Z: NDArray[np.float64], classes: NDArray[np.intp], bias: NDArray[np.float64]
    ) -> NDArray[np.float32]:
        leads, each = np.empty((len(Z), self.problem.classes), np.float32), np.arange(len(Z))
        narrow, b = Z.astype(np.float32), bias.astype(np.float32)
        for block in self.problem.row_blocks():
            np.matmul(narrow, self.problem.rows(block).T, out=leads[:, block])
            leads[:, block] += b[block]
        leads -= leads[each, classes][:, None].copy()
        leads[each, classes] = -np.inf
        return leads

    def _newton_step(self, n: int) -> _Step:
        """The Newton step of a class; near a minimum that leaves room, its weights may become its
        captors.
        """
        leads, T, z, D = self.leads[n], float(self.T[n]), self.Z[n], self.problem.dimension
        heavy = np.flatnonzero(leads >= leads.max() - FORGET * T)
        if len(heavy) > (most := HEAVIEST * (D + 1)):
            heavy = heavy[np.argpartition(leads[heavy], len(heavy) - most)[-most:]]
        p = np.exp((leads[heavy] - leads[heavy].max()) / np.float32(T))
        p /= p.sum()
        root = np.sqrt(p)
        A = self.problem.rows(heavy)  # a copy
        A -= self.problem.rows(self.classes[n : n + 1])
        A *= root[:, None]
        gradient = (root @ A).astype(np.float64)
        # times T, like all that follows
        hessian = (A.T @ A).astype(np.float64) - np.outer(gradient, gradient)
        above, below = self.high - z, z - self.low
        gradient += T * self.barrier * (1 / above - 1 / below)
        # dependent rows, and float32
        ridge = 1e-6 * np.trace(hessian) / D + np.finfo(np.float32).tiny
        hessian[np.diag_indices(D)] += self.barrier * T**2 * (above**-2.0 + below**-2.0) + ridge
        factor, move, failed = scipy.linalg.lapack.dposv(hessian, -gradient, overwrite_a=True)
        if failed:
            return _Step(np.zeros(D), 0.0, is_last=True)
        decrement = float(-gradient @ move)
        has_room = decrement < NEAR and bool(
            p @ self.problem.b[heavy] > self.problem.b[self.classes[n]]
        )
        if has_room and decrement < CLOSE:
            self._imprison(int(self.classes[n]), heavy, p, factor)
        return _Step(T * move, decrement, is_last=decrement < (THERE if has_room else NEAR))

    def _imprison(
        self, t: int, rivals: NDArray[np.intp], p: NDArray[np.float32], factor: NDArray[np.float64]
    ) -> None:
        """Keep ``p`` (k,) as captors of class t if corrections bring ``sum_i p_i w'_i`` to w'_t and
        leave room.

        A correction is ``p (1 + A mu)``, ``A = w'_i - w'_t``, with mu such that ``sum_i p_i A_i``
        vanishes to first order.
        """
        rows = self.problem.rows(np.append(rivals, t), np.float64)
        A, weights = rows[:-1] - rows[-1], p.astype(np.float64)
        for _ in range(CORRECTIONS):
            mu = scipy.linalg.lapack.dpotrs(factor, -(weights @ A))[0]
            weights *= np.maximum(1 + A @ mu, LEAST)
        room = weights @ (self.problem.b[rivals] - self.problem.b[t])
        if room > self.problem.support(-(weights @ A)):
            self.captors[t] = Captors(rivals, weights)

    def _length(self, n: int, step: _Step, change: NDArray[np.float32]) -> float:
        """How far along a step F falls enough, 0 if nowhere."""
        move, decrement = step.move, step.decrement
        T, leads = float(self.T[n]), self.leads[n]
        room = np.where(move > 0, self.high - self.Z[n], self.Z[n] - self.low) / np.maximum(
            np.abs(move), 1e-300
        )
        length = min(1.0, 0.9 * float(room.min()), DAMPING / (1 + max(decrement, 0.0) ** 0.5))
        after = np.float32(length) * change
        after += leads
        felt = np.flatnonzero(np.maximum(after, leads, out=after) >= leads.max() - FORGET * T)
        leads, change = leads[felt], change[felt]
        here = _smoothed(leads, T)
        for _ in range(6):
            if _smoothed(
                leads + np.float32(length) * change, T
            ) <= here - 0.05 * length * T * decrement + 1e-6 * abs(here):
                return length
            length *= 0.4
        return 0.0


def _smoothed(leads: NDArray[np.float32], T: float) -> float:
    top = float(leads.max())
    return top + T * float(np.log(np.exp((leads - np.float32(top)) / np.float32(T)).sum()))
