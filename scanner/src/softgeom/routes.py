"""The routes to a verdict, as a table: what each solves, when it applies, where it comes from, what
it costs.

The search (searching/ascent.py) finds most winners. What it leaves goes down ``ROUTES``, the first
row first: a route is given the classes that are still open and returns findings for those that it
decides, each with evidence that the checkers have accepted. What a route learns on the way (points
that come close, rivals that matter) the next ones start from.

A route may fail. An exception ends that route for these classes, not the scan: the next route tries
them, and a class that none decides is undecided, with a reason that names what failed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from softgeom.arrays import Floats, Ints
from softgeom.certifying.checker import Checker, wins
from softgeom.certifying.verdict import (
    BlockingClasses,
    Comparisons,
    Evidence,
    Finding,
    Unknown,
    Witness,
)
from softgeom.problem import FEW, Points, Problem, Proofs
from softgeom.proving.decide import decide
from softgeom.proving.interior_point import walk_each
from softgeom.proving.shared_basis import FEWEST, SharedBasis, prove_together, shared_basis, shares
from softgeom.proving.surround import surround
from softgeom.searching.ascent import ROUNDS, Candidates, climb
from softgeom.searching.look import STRONGEST

logger = logging.getLogger("softgeom")


@dataclass(frozen=True)
class Start:
    """What a look at all open classes of a scan says to each block of them."""

    surrounds: bool = True  # whether weights of largest entropy may prove most
    basis: SharedBasis | None = None


def make_start(problem: Problem, classes: Ints, seed: int) -> Start:
    """Where the blocks of a scan's open ``classes`` (n,) start, if they share anything."""
    if not shares(problem) or len(classes) < FEWEST:
        return Start()
    with surviving("the shared start", classes.tolist()):
        few = classes[:: len(classes) // FEWEST]
        surrounds = 2 * len(surround(problem, few, seed)) >= len(few)
        return Start(surrounds, None if surrounds else shared_basis(problem, classes, seed))
    return Start()


@dataclass
class Open:
    """What is known about the classes of a block that are still open."""

    problem: Problem
    checker: Checker
    seed: int
    classes: Ints  # (n,)
    start: Start
    # by class: points (D,) that come close to winning, and rivals that are strong there
    points: Points = field(default_factory=dict)
    rivals: dict[int, Ints] = field(default_factory=dict)
    faults: dict[int, list[str]] = field(default_factory=dict)

    def proven(self, proofs: Proofs, method: str) -> dict[int, Finding]:
        """Findings from blocking classes (and what they certify)."""
        found = proofs.items()
        return {t: Finding(t, few, method, 0, bound, np.nan) for t, (few, bound) in found}

    def won(self, points: Points, method: str) -> dict[int, Finding]:
        """Findings from points (d,) at which classes seem to win, for those that do."""
        margins = self.checker.certify_many(list(points.values()), list(points))
        return winners(self.checker, points, margins, method)

    def keep(self, classes: Ints, found: Candidates) -> dict[int, Finding]:
        """Findings from a search for classes (n,); where it did not win it shows where to start."""
        won: Points = {}
        for n, (t, z) in enumerate(zip(classes.tolist(), found.Z, strict=True)):
            self.points[t], self.rivals[t] = z, found.rivals[n]
            if found.margin[n] > 0:
                won[t] = self.problem.lift(z, float(found.margin[n]))
        return self.won(won, "ascent")


def winners(checker: Checker, points: Points, margins: Floats, method: str) -> dict[int, Finding]:
    """Findings from points (d,) whose classes win there by certified ``margins`` (n,) above 0."""
    radii = checker.radius(np.array(list(points), dtype=np.intp), margins)
    found = zip(points.items(), margins.tolist(), radii.tolist(), strict=True)
    return {
        t: Finding(t, Witness(point), method, 0, margin, radius)
        for (t, point), margin, radius in found
        if margin > 0
    }


Run = Callable[[Open, Ints], dict[int, Finding]]


@dataclass(frozen=True)
class Route:
    """One way to verdicts: its name in ``Scan.table`` (a search's is "ascent"), when it applies,
    what it finds for some of the open classes, what it solves, its source, and its cost.
    """

    name: str
    applies: Callable[[Problem], bool]
    run: Run
    solves: str
    source: str
    cost: str


def decide_open(open_: Open, without: Collection[str] = ()) -> dict[int, Finding]:
    """A finding for every class of a block, by the routes in order; some may be left out."""
    findings: dict[int, Finding] = {}
    for route in ROUTES:
        left = without_findings(open_.classes, findings)
        if len(left) and route.applies(open_.problem) and route.name not in without:
            with surviving(route.name, left.tolist(), open_.faults):
                findings |= route.run(open_, left)
    for t in open_.classes.tolist():
        missed = Unknown(np.inf, "no route led to a verdict")
        found = findings.setdefault(t, Finding(t, missed, "programme", 0, np.inf, np.nan))
        if isinstance(found.evidence, Unknown) and t in open_.faults:
            reason = "; ".join([found.evidence.reason, *open_.faults[t]])
            findings[t] = replace(found, evidence=replace(found.evidence, reason=reason))
    return findings


@contextmanager
def surviving(
    route: str, classes: Sequence[int], faults: dict[int, list[str]] | None = None
) -> Iterator[None]:
    """Exceptions of a route end it, not the scan; noted in ``faults`` of its classes.

    Too little memory is no fault of a route, and an interrupt is none at all: both go on.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as fault:
        text = f"{route} failed ({type(fault).__name__}: {fault})"
        logger.warning("%s for %d classes: others try", text, len(classes))
        if faults is not None:
            for t in classes:
                faults.setdefault(t, []).append(text)


def without_findings(classes: Ints, findings: dict[int, Finding]) -> Ints:
    """Those of classes (n,) that have no finding yet."""
    return np.array([t for t in classes.tolist() if t not in findings], dtype=np.intp)


def is_narrow(problem: Problem) -> bool:
    """Whether programmes of few features against many rivals are what proofs take."""
    return problem.classes > FEW and shares(problem)


def _always(problem: Problem) -> bool:
    return True


def _surround(open_: Open, classes: Ints) -> dict[int, Finding]:
    if not open_.start.surrounds:
        return {}
    return open_.proven(surround(open_.problem, classes, open_.seed), "surround")


def _together(open_: Open, classes: Ints) -> dict[int, Finding]:
    if open_.start.basis is None:
        return {}
    proofs, points = prove_together(open_.problem, classes, open_.start.basis)
    open_.points |= points
    return open_.proven(proofs, "together")


def _search(open_: Open, classes: Ints) -> dict[int, Finding]:
    # programmes start from these larger working sets; few rivals need no choice
    rounds = 0 if open_.problem.classes <= FEW else ROUNDS
    found = climb(open_.problem, classes, rounds=rounds, rivals=STRONGEST)
    return open_.keep(classes, found)


def _starts(open_: Open, classes: Ints) -> tuple[list[Any], list[Any]]:
    """Where to start for classes (n,), and some strong rivals of each."""
    none, listed = np.zeros(0, np.intp), classes.tolist()
    points = [open_.points.get(t, open_.problem.anchor) for t in listed]
    return points, [open_.rivals.get(t, none) for t in listed]


def _interior(open_: Open, classes: Ints) -> dict[int, Finding]:
    proofs, won = walk_each(open_.problem, classes, *_starts(open_, classes))
    return open_.proven(proofs, "interior") | open_.won(won, "interior")


def _programme(open_: Open, classes: Ints) -> dict[int, Finding]:
    findings = {}
    for t, z, few in zip(classes.tolist(), *_starts(open_, classes), strict=True):
        with surviving("programme", [t], open_.faults):
            # where scores overflow, a search may have named the class among its own rivals
            known = t * open_.problem.classes + few[few != t]
            proof, margin, rounds = decide(open_.problem, open_.checker, wins(t), z, known)
            evidence: Evidence
            if isinstance(proof, Comparisons):
                evidence = BlockingClasses(proof.below, proof.weights)
            else:
                evidence = proof
            radius = np.nan
            if isinstance(evidence, Witness):
                radius = float(open_.checker.radius(np.array([t]), np.array([margin]))[0])
            findings[t] = Finding(t, evidence, "programme", rounds, margin, radius)
    return findings


ROUTES = (
    Route(
        "surround",
        _always,
        _surround,
        "convex weights of largest entropy with mean w_t, over a sample of rivals",
        "Jaynes (1957); Newton's method with conjugate gradients",
        "two products with a few thousand rivals a step, all classes at once",
    ),
    Route(
        "together",
        shares,
        _together,
        "the linear programme of every class over the same few rivals, from one basis",
        "dual simplex method (Lemke 1954), steepest edge",
        "some pivots a class, a matrix-vector product each",
    ),
    Route(
        "search",
        _always,
        _search,
        "max of the smoothed margin over a working set of rivals",
        "Polyak's step (1969)",
        "some looks at all rivals a class",
    ),
    Route(
        "interior",
        is_narrow,
        _interior,
        "the linear programme of one class over the rivals that matter",
        "predictor and corrector (Mehrotra 1992), in-out separation",
        "ten to twenty factorisations of d x d a round",
    ),
    Route(
        "programme",
        _always,
        _programme,
        "the linear programme (over a ball least distance) of one class; where floating point "
        "does not decide, in fractions",
        "HiGHS; Lawson and Hanson (1974); Bareiss (1968)",
        "milliseconds to seconds a class",
    ),
)
