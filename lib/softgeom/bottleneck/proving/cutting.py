"""One class by cutting planes over rows of the shared-basis programme (bases.py): solve, look at everybody, add the strongest.

The programme over few rivals is a relaxation: weights that prove captivity against them prove it for good, and a point that beats them either beats
all others, or shows who is missing. Captives of one layer share most of their captors, so that the captors of one are a good start for the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.hull import certify_captivity
from softgeom.bottleneck.certifying.verdict import Captors
from softgeom.bottleneck.problem import Problem
from softgeom.bottleneck.proving.bases import Bases, Vertex
from softgeom.bottleneck.searching.look import look

CUTS = 40  # rounds
STRONGEST = 64  # rivals that join in each

Proofs = dict[int, tuple[Captors, float]]
Points = dict[int, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Cut:
    """Where the rounds ended: with weights that prove captivity (vertex.value <= 0), or at a point that beats everybody."""

    rivals: NDArray[np.intp]  # (k,) the working set
    bases: Bases  # over it
    vertex: Vertex

    @property
    def is_captive(self) -> bool:
        """Whether the vertex holds weights (the checker has the last word), rather than a point that wins."""
        return self.vertex.value <= 0

    @property
    def captors(self) -> NDArray[np.intp]:
        """The rivals in the last basis."""
        return self.rivals[self.bases.basic[self.bases.basic < self.bases.k]]


def cut_each(
    problem: Problem, classes: NDArray[np.intp], rivals: Sequence[NDArray[np.intp]], known: Iterable[Captors]
) -> tuple[Proofs, Points]:
    """Cutting planes for each of ``classes`` (n,), from its own ``rivals`` and from all captors that are known so far.

    Returns
    -------
    dict, dict
        Class -> its captors and the bound <= 0 that they certify; class -> a point (D,) of the region at which it seems to win.
        Classes without either are absent.
    """
    pool = np.unique(np.concatenate([np.zeros(0, np.intp), *(captors.rivals for captors in known)]))
    proofs: Proofs = {}
    points: Points = {}
    for t, own in zip(classes.tolist(), rivals, strict=True):
        found = cut(problem, t, np.union1d(pool, own))
        if found is None:
            continue
        if not found.is_captive:
            points[t] = problem.project(found.vertex.z)
            continue
        captors = Captors(found.rivals[found.vertex.positions], found.vertex.weights)
        bound = certify_captivity(problem.layer, problem.features, t, captors.rivals, captors.weights)
        if bound <= 0:
            proofs[t] = captors, bound
            pool = np.union1d(pool, captors.rivals)
    return proofs, points


def cut(problem: Problem, t: int, rivals: NDArray[np.intp]) -> Cut | None:
    """Decide class t over the box (around the ball), starting from some rivals (k,); None if the rounds do not end.

    A point that wins does so in a look in float32, which the checker has to confirm.
    """
    own, bias, classes = problem.rows(np.array([t]), np.float64)[0], float(problem.b[t]), np.array([t])
    rivals = rivals[rivals != t]
    if not len(rivals):
        return None
    for _ in range(CUTS):
        bases = Bases(problem.rows(rivals, np.float64), problem.b[rivals], *problem.box)
        vertex = bases.solve(own, bias, best=True)
        if vertex is None:
            return None
        if vertex.value <= 0:
            return Cut(rivals, bases, vertex)
        seen = look(problem, vertex.z[None], classes, strongest=STRONGEST, enough=np.inf)
        if seen.margin[0] > 0:
            return Cut(rivals, bases, vertex)
        if np.isin(seen.strongest[0], rivals).all():
            return None
        rivals = np.union1d(rivals, seen.strongest[0])
    return None
