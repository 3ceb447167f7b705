"""Classes by cutting planes over rows of the shared-basis programme (bases.py): solve, look at
everybody, add the strongest.

The programme over few rivals is a relaxation: weights that prove captivity against them prove it
for good, and a point that beats them either beats all others, or shows who is missing. Each class
has its own rivals and keeps its basis: those that join only mend it. All classes look at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.hull import certify_captivity
from softgeom.bottleneck.certifying.verdict import Captors
from softgeom.bottleneck.problem import Problem
from softgeom.bottleneck.proving.bases import Bases, Vertex
from softgeom.bottleneck.searching.look import look

CUTS = 60  # rounds
STRONGEST = 48  # rivals that join in each
TOGETHER = 128  # classes that look together: each holds an inverse and its rivals

Proofs = dict[int, tuple[Captors, float]]
Points = dict[int, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Cut:
    """The programme of one class and where it is: at weights that prove captivity (vertex.value <=
    0), or at a point that beats its rivals.
    """

    t: int
    rivals: NDArray[np.intp]  # (k,) the working set
    bases: Bases  # over it
    vertex: Vertex

    @property
    def is_captive(self) -> bool:
        """Whether the vertex holds weights (the checker has the last word), rather than a point
        that wins.
        """
        return self.vertex.value <= 0

    @property
    def captors(self) -> NDArray[np.intp]:
        """The rivals in the last basis."""
        return self.rivals[self.bases.basic[self.bases.basic < self.bases.k]]


def cut_each(
    problem: Problem, classes: NDArray[np.intp], rivals: Sequence[NDArray[np.intp]]
) -> tuple[Proofs, Points]:
    """Cutting planes for each of ``classes`` (n,) over the box (around the ball), each from some
    ``rivals`` of its own.

    Returns
    -------
    dict, dict
        Class -> its captors and the bound <= 0 that they certify; class -> a point (D,) of the
        region at which it seems to win. Classes without either are absent.
    """
    proofs: Proofs = {}
    points: Points = {}
    for start in range(0, len(classes), TOGETHER):
        part = slice(start, start + TOGETHER)
        for found in cut(problem, classes[part], rivals[part]):
            if not found.is_captive:
                points[found.t] = problem.project(found.vertex.z)
                continue
            captors = Captors(found.rivals[found.vertex.positions], found.vertex.weights)
            bound = certify_captivity(
                problem.layer, problem.features, found.t, captors.rivals, captors.weights
            )
            if bound <= 0:
                proofs[found.t] = captors, bound
    return proofs, points


def cut(
    problem: Problem, classes: NDArray[np.intp], rivals: Sequence[NDArray[np.intp]]
) -> Iterator[Cut]:
    """Decide classes (n,), starting from some rivals (k,) of each; those whose rounds do not end
    are left out.

    A point that wins does so in a look in float32, which the checker has to confirm.
    """
    started = (_start(problem, t, own) for t, own in zip(classes.tolist(), rivals, strict=True))
    open_ = [cut for cut in started if cut is not None]
    for _ in range(CUTS):
        yield from (cut for cut in open_ if cut.is_captive)
        open_ = [cut for cut in open_ if not cut.is_captive]
        if not open_:
            return
        Z, which = np.array([cut.vertex.z for cut in open_]), np.array([cut.t for cut in open_])
        seen = look(problem, Z, which, strongest=STRONGEST, enough=np.inf)
        going = []
        for cut, margin, strongest in zip(open_, seen.margin.tolist(), seen.strongest, strict=True):
            if margin > 0:
                yield cut
            elif (wider := _widened(problem, cut, np.setdiff1d(strongest, cut.rivals))) is not None:
                going.append(wider)
        open_ = going


def _start(problem: Problem, t: int, rivals: NDArray[np.intp]) -> Cut | None:
    rivals = rivals[rivals != t]
    if not len(rivals):
        return None
    bases = Bases(problem.rows(rivals, np.float64), problem.b[rivals], *problem.box)
    vertex = bases.solve(problem.rows(np.array([t]), np.float64)[0], float(problem.b[t]), best=True)
    return None if vertex is None else Cut(t, rivals, bases, vertex)


def _widened(problem: Problem, cut: Cut, fresh: NDArray[np.intp]) -> Cut | None:
    """The programme with more rivals: its basis mended, or where that takes long a new one. None if
    neither ends.
    """
    if not len(fresh):
        return None
    cut.bases.add(problem.rows(fresh, np.float64), problem.b[fresh])
    rivals = np.append(cut.rivals, fresh)
    vertex = cut.bases.improve(
        problem.rows(np.array([cut.t]), np.float64)[0], float(problem.b[cut.t])
    )
    return (
        _start(problem, cut.t, rivals) if vertex is None else Cut(cut.t, rivals, cut.bases, vertex)
    )
