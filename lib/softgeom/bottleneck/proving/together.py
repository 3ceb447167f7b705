"""Captives of one layer proven together, from the basis of one in their midst.

Heads with few features hold thousands of captives, most of them alike: rows that training never
moved. One programme (bases.py) serves them all, over a few shared rivals:

1. *The middle.* The captive nearest to the median row is found and decided by cutting planes
   (cutting.py). Its basis proves every class that lies in the same simplex: one matrix product, and
   most of the dead rows are done.
2. *The rivals.* The convex weights of largest entropy whose mean is that class (surround.py), now
   over everybody not yet proven, say which rows surround the middle; a systematic sample of them,
   flattened, is what all others share.
3. *In step.* From the middle's basis all others pivot together (lockstep.py). A class that beats
   the shared rivals at some point is left as soon as that point is found.

Where the middle's simplex holds nobody else, captives are not alike, and nothing is shared. What is
still open goes to Newton's ascent (newton.py), with the point where it has one, and what that
leaves to interior points (interior_point.py) and programmes of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.slack import certify_captives
from softgeom.bottleneck.certifying.verdict import Captors
from softgeom.bottleneck.problem import Problem
from softgeom.bottleneck.proving.bases import Bases
from softgeom.bottleneck.proving.cutting import Cut, Points, Proofs, cut
from softgeom.bottleneck.proving.lockstep import solve_in_step
from softgeom.bottleneck.searching.look import look

# pivots cost d times the shared rivals: beyond this surround.py and single programmes are as fast
MOST_FEATURES = 256
FEWEST = 16  # classes for which finding the shared rivals pays
SHARED = 12  # shared rivals per dimension
# power of the weights by which they are drawn: rows that matter little to the middle matter to
# others
FLATTEN = 0.25
TRIED = 8  # classes near the middle: the first may not be captive


def prove_together(
    problem: Problem, classes: NDArray[np.intp], seed: int = 0
) -> tuple[Proofs, Points]:
    """Proven captors of those ``classes`` (n,) that the shared rivals imprison.

    Parameters
    ----------
    problem : Problem
        The layer over its region; a ball is enlarged to the box around it, homogeneous problems are
        left alone.
    classes : (n,) integer array
        Classes for which no witness was found.
    seed : int
        Seeds the sample of shared rivals.

    Returns
    -------
    dict, dict
        Class -> its captors, at most d + 1, and the bound <= 0 that they certify; class -> a point
        (D,) at which it beats the shared rivals. Classes without either are absent.
    """
    if not shares(problem) or len(classes) < FEWEST:
        return {}, {}
    crowd = _Crowd(problem, classes)
    captors = crowd.prove_the_middle()
    if captors is None or len(crowd.proven) < 2 or not len(crowd.left):
        return crowd.proven, {}
    return crowd.proven, crowd.prove_in_step(np.union1d(captors, crowd.surrounding(seed)))


def shares(problem: Problem) -> bool:
    """Whether a layer is of the kind that ``prove_together`` is for."""
    return not problem.homogeneous and problem.dimension <= MOST_FEATURES


class _Crowd:
    """The classes still open and what was found so far."""

    def __init__(self, problem: Problem, classes: NDArray[np.intp]) -> None:
        self.problem = problem
        rows = problem.rows(classes)
        self.centre = np.median(rows, axis=0)
        order = np.argsort(((rows - self.centre) ** 2).sum(axis=1), kind="stable")
        # (n,), (n, D) nearest to the middle first
        self.left, self.rows = classes[order], rows[order]
        self.proven: Proofs = {}

    def prove_the_middle(self) -> NDArray[np.intp] | None:
        """Find a captive near the middle and try its basis on all others; its captors, None if
        there is none.
        """
        tried = self.left[:TRIED]
        far = self.problem.reach(self.rows[:TRIED])
        nearby = look(
            self.problem, far, tried, strongest=4 * self.problem.dimension, enough=np.inf
        ).strongest
        for n, t in enumerate(tried):
            found = next(cut(self.problem, np.array([t]), [nearby[n]]), None)
            if found is not None and found.is_captive:
                self.middle = int(t)
                self._settle(found)
                open_ = np.array([t not in self.proven for t in self.left.tolist()], dtype=bool)
                self.left, self.rows = self.left[open_], self.rows[open_]
                return found.captors
        return None

    def surrounding(self, seed: int) -> NDArray[np.intp]:
        """Rows that surround the middle: a sample by the flattened weights of largest entropy."""
        others = np.setdiff1d(np.arange(self.problem.classes), list(self.proven))
        bias = self.problem.b[others]
        spread = float(np.subtract(*np.quantile(bias, [0.75, 0.25]))) / 1.35
        prior = np.clip((bias - np.median(bias)) / spread, -4, 4) if spread else np.zeros(len(bias))
        p = _largest_entropy(self.problem.rows(others) - self.centre, prior) ** FLATTEN
        rng, size = (
            np.random.default_rng(seed),
            min(SHARED * (self.problem.dimension + 1), len(others)),
        )
        order = rng.permutation(len(others))
        places = np.searchsorted(
            np.cumsum(p[order]), (np.arange(size) + rng.random()) / size * p.sum()
        )
        return others[np.unique(order[np.minimum(places, len(others) - 1)])]

    def prove_in_step(self, shared: NDArray[np.intp]) -> Points:
        """Prove open classes against shared rivals; the points at which the others beat those."""
        place = np.full(self.problem.classes, -1)
        place[shared] = np.arange(len(shared))
        bases = Bases(
            self.problem.rows(shared, np.float64), self.problem.b[shared], *self.problem.box
        )
        middle = self.problem.rows(np.array([self.middle]), np.float64)[0]
        itself = int(place[self.middle])
        bases.solve(middle, float(self.problem.b[self.middle]), itself if itself >= 0 else None)
        points: Points = {}
        held: dict[int, Captors] = {}
        ended = solve_in_step(bases, self.rows, self.problem.b[self.left], place[self.left])
        for n, vertex in ended:
            t = int(self.left[n])
            if vertex is not None and vertex.value > 0:
                points[t] = vertex.z
            elif vertex is not None:
                held[t] = Captors(shared[vertex.positions], vertex.weights)
        self._prove(held)
        return points

    def _settle(self, found: Cut) -> None:
        """Prove those of the open classes that a basis is optimal for."""
        covered, weights = found.bases.covers(self.rows.astype(np.float64))
        kept = found.bases.basic < found.bases.k
        rivals = found.rivals[found.bases.basic[kept]]
        held = {}
        for n, row in zip(np.flatnonzero(covered).tolist(), weights[covered][:, kept], strict=True):
            t = int(self.left[n])
            with_weight = (row > 0) & (rivals != t)
            held[t] = Captors(rivals[with_weight], row[with_weight])
        self._prove(held)

    def _prove(self, held: dict[int, Captors]) -> None:
        """Keep what the checker accepts."""
        bounds = certify_captives(
            self.problem.layer, self.problem.features, list(held), list(held.values())
        )
        for (t, captors), bound in zip(held.items(), bounds.tolist(), strict=True):
            if bound <= 0:
                self.proven[t] = captors, bound


def _largest_entropy(
    A: NDArray[np.float32], prior: NDArray[np.float64], steps: int = 30, tolerance: float = 1e-6
) -> NDArray[np.float64]:
    """Weights (k,) proportional to ``exp(prior + A z)`` with mean row 0, by Newton's method on
    log-sum-exp; A is (k, D).

    Outside the hull there are none: the last weights are as good a guess as any.
    """

    def state(z: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        lead = A @ z.astype(np.float32) + prior
        top = lead.max()
        p = np.exp(lead - top)
        return float(top + np.log(p.sum())), p / p.sum()

    z = np.zeros(A.shape[1])
    value, p = state(z)
    for _ in range(steps):
        root = A * np.sqrt(p).astype(np.float32)[:, None]
        gradient = p @ A
        hessian = (root.T @ root).astype(np.float64) - np.outer(gradient, gradient)
        hessian[np.diag_indices_from(hessian)] += (
            1e-6 * np.trace(hessian) / len(hessian) + np.finfo(np.float32).tiny
        )
        move = -np.linalg.solve(hessian, gradient)
        gain = float(-gradient @ move)
        if not gain > tolerance:
            break
        step = 1.0
        following = state(z + move)
        while following[0] > value - 0.1 * step * gain and step > 1e-3:
            step *= 0.4
            following = state(z + step * move)
        z, (value, p) = z + step * move, following
    return p
