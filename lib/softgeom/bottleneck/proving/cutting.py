"""One class by cutting planes over rows of the shared-basis programme (bases.py): solve, look at everybody, add the strongest.

The programme over few rivals is a relaxation: weights that prove captivity against them prove it for good, and a point that beats them either beats
all others, or shows who is missing. Captives of one layer share most of their captors, so that the captors of one are a good start for the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.problem import Problem
from softgeom.bottleneck.proving.bases import Bases, Vertex
from softgeom.bottleneck.searching.look import look

CUTS = 40  # rounds
STRONGEST = 64  # rivals that join in each


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


def cut(
    problem: Problem, t: int, rivals: NDArray[np.intp], low: NDArray[np.float64], high: NDArray[np.float64]
) -> Cut | None:
    """Decide class t over the box from ``low`` to ``high`` (D,), starting from some rivals (k,); None if the rounds do not end.

    A winner is left at the first point that shows it: a look in float32, which the checker has to confirm.
    """
    own, bias, classes = problem.rows(np.array([t]), np.float64)[0], float(problem.b[t]), np.array([t])
    rivals = rivals[rivals != t]
    for _ in range(CUTS):
        bases = Bases(problem.rows(rivals, np.float64), problem.b[rivals], low, high)
        vertex = bases.solve(own, bias)
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
