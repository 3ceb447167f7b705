"""Captives of one layer proven together, along a chain of neighbours.

Heads with few features hold thousands of captives, most of them alike: rows that training never moved. One programme (bases.py) serves
them all, over a few shared rivals:

1. *The middle.* The captive nearest to the median row is found and decided by cutting planes (cutting.py).
   Its basis proves every class that lies in the same simplex: one matrix product, and most of the dead rows are done.
2. *The rivals.* The convex weights of largest entropy whose mean is that class (surround.py), now over everybody not yet proven, say which
   rows surround the middle; a systematic sample of them, flattened, is what all others share.
3. *The chain.* From class to nearest class the basis is mended, and tried on the next neighbours without a pivot. A class that beats the shared
   rivals at some point is left as soon as that point is found.

Where the middle's simplex holds nobody else, captives are not alike, and there is no chain. What is still open then is mostly not captive at
all: it goes back to the search, to cutting planes from the captors that are known by now, and to programmes of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.hull import certify_captivity
from softgeom.bottleneck.certifying.verdict import Captors
from softgeom.bottleneck.problem import Problem
from softgeom.bottleneck.proving.bases import Bases
from softgeom.bottleneck.proving.cutting import Proofs, cut
from softgeom.bottleneck.searching.look import look

MOST_FEATURES = (
    256  # a pivot costs d times the shared rivals: beyond this surround.py and single programmes are as fast
)
FEWEST = 16  # classes for which finding the shared rivals pays
SHARED = 12  # shared rivals per dimension
FLATTEN = 0.25  # power of the weights by which they are drawn: rows that matter little to the middle matter to others
TRIED = 8  # classes near the middle: the first may not be captive
NEIGHBOURS = 64  # classes on which each new basis is tried


def prove_together(problem: Problem, classes: NDArray[np.intp], seed: int = 0) -> Proofs:
    """Proven captors of those ``classes`` (n,) that a chain of warm bases reaches.

    Parameters
    ----------
    problem : Problem
        The layer over its region; a ball is enlarged to the box around it, homogeneous problems are left alone.
    classes : (n,) integer array
        Classes for which no witness was found.
    seed : int
        Seeds the sample of shared rivals.

    Returns
    -------
    dict
        Class -> its captors, at most d + 1, and the bound <= 0 that they certify; classes without a proof are absent.
    """
    if problem.homogeneous or problem.dimension > MOST_FEATURES or len(classes) < FEWEST:
        return {}
    chain = _Chain(problem, classes)
    shared = chain.prove_the_middle()
    if len(chain.left) and len(chain.proven) > 1 and shared is not None:
        chain.walk(np.union1d(shared, chain.surrounding(seed)))
    return chain.proven


class _Chain:
    """The classes still open and what was found so far."""

    def __init__(self, problem: Problem, classes: NDArray[np.intp]) -> None:
        self.problem = problem
        rows = problem.rows(classes)
        self.centre = np.median(rows, axis=0)
        order = np.argsort(((rows - self.centre) ** 2).sum(axis=1), kind="stable")
        self.left, self.rows = classes[order], rows[order]  # (n,), (n, D) nearest to the middle first
        self.proven: Proofs = {}

    def prove_the_middle(self) -> NDArray[np.intp] | None:
        """Find a captive near the middle and try its basis on all others; its captors, None if there is none."""
        for n, t in enumerate(self.left[:TRIED].tolist()):
            z = self.problem.reach(self.rows[n : n + 1])
            nearby = look(self.problem, z, self.left[n : n + 1], strongest=4 * self.problem.dimension, enough=np.inf)
            found = cut(self.problem, t, nearby.strongest[0])
            if found is not None and found.is_captive:
                self._settle(found.bases, found.rivals, np.arange(len(self.left)))
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
        rng, size = np.random.default_rng(seed), min(SHARED * (self.problem.dimension + 1), len(others))
        order = rng.permutation(len(others))
        places = np.searchsorted(np.cumsum(p[order]), (np.arange(size) + rng.random()) / size * p.sum())
        return others[np.unique(order[np.minimum(places, len(others) - 1)])]

    def walk(self, shared: NDArray[np.intp]) -> None:
        """Go along the chain of open classes, from each to its nearest neighbour."""
        bases, place = self._bases(shared), {t: n for n, t in enumerate(shared.tolist())}
        waiting = np.ones(len(self.left), dtype=bool)
        here = 0
        while True:
            t = int(self.left[here])
            waiting[here] = False
            vertex = bases.solve(self.rows[here].astype(np.float64), float(self.problem.b[t]), place.get(t))
            rest = np.flatnonzero(waiting)
            distance = ((self.rows[rest] - self.rows[here]) ** 2).sum(axis=1)
            if vertex is not None and vertex.value <= 0:
                self._prove(t, shared[vertex.positions], vertex.weights)
                near = np.argpartition(distance, min(NEIGHBOURS, len(rest)) - 1)[:NEIGHBOURS] if len(rest) else rest
                waiting[self._settle(bases, shared, rest[near])] = False
                distance[~waiting[rest]] = np.inf
            if not waiting.any():
                break
            here = int(rest[distance.argmin()])

    def _settle(self, bases: Bases, shared: NDArray[np.intp], where: NDArray[np.intp]) -> NDArray[np.intp]:
        """Prove those of the classes at ``where`` that the current basis is optimal for; their places."""
        covered, weights = bases.covers(self.rows[where].astype(np.float64))
        kept = bases.basic < bases.k
        rivals = shared[bases.basic[kept]]
        done = [
            n
            for n, row in zip(where[covered].tolist(), weights[covered][:, kept], strict=True)
            if self._prove(int(self.left[n]), rivals[row > 0], row[row > 0])
        ]
        return np.array(done, dtype=np.intp)

    def _prove(self, t: int, rivals: NDArray[np.intp], weights: NDArray[np.float64]) -> bool:
        apart = rivals != t
        captors = Captors(rivals[apart], weights[apart])
        bound = certify_captivity(self.problem.layer, self.problem.features, t, captors.rivals, captors.weights)
        if bound <= 0:
            self.proven[t] = captors, bound
        return bound <= 0

    def _bases(self, shared: NDArray[np.intp]) -> Bases:
        return Bases(self.problem.rows(shared, np.float64), self.problem.b[shared], *self.problem.box)


def _largest_entropy(
    A: NDArray[np.float32], prior: NDArray[np.float64], steps: int = 30, tolerance: float = 1e-6
) -> NDArray[np.float64]:
    """Weights (k,) proportional to ``exp(prior + A z)`` with mean row 0, by Newton's method on log-sum-exp; A is (k, D).

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
        hessian[np.diag_indices_from(hessian)] += 1e-6 * np.trace(hessian) / len(hessian) + np.finfo(np.float32).tiny
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
