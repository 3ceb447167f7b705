"""One order decided for good: a programme over the comparisons that matter, until a point or
weights are proven. A class is the order ``{t} > rest``.

Each round solves the programme over the comparisons seen so far (box: best margin; ball: least
norm), tries its dual weights as a proof, looks at all logits from its point, tries that point as a
witness, and adds the comparisons that it breaks. The programme is a relaxation, so weights that
prove an order impossible from a few comparisons prove it for good. What ends without either is
decided in fractions (exact.py); what is too large for them is undecided, with the best bound that
the weights do prove.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import count

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softgeom.arrays import Floats, Ints
from softgeom.certifying.checker import Checker
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import Comparisons, Proof, Unknown, Witness
from softgeom.problem import Problem
from softgeom.proving.exact import closest_pairs, decide_exactly, split
from softgeom.proving.lp import TOLERANCE, MarginProgramme, NearestPointProgramme, SolverError
from softgeom.proving.simplex import TooLargeError


def decide(
    problem: Problem, checker: Checker, order: Order, z: NDArray[np.floating], known: ArrayLike = ()
) -> tuple[Proof, float, int]:
    """Decide an order, from a candidate ``z`` (D,) and first comparisons ``known``, ``above * C +
    below``: the evidence, what it certifies, and the rounds that it took.
    """
    programme = _start(problem)
    codes = np.union1d(
        np.asarray(known, dtype=np.intp),
        closest_pairs(order, problem.logits(z[None], np.float64)[0]),
    )
    bound, reason = np.inf, ""

    def proof(pairs: Ints, candidates: Iterator[Floats]) -> tuple[Comparisons, float] | None:
        nonlocal bound
        for weights in candidates:
            used = weights > 0
            evidence = Comparisons(*split(pairs[used], problem.classes), weights[used])
            proven = checker.bound(order, evidence)
            if proven <= 0:
                return evidence, proven
            bound = min(bound, proven)
        return None

    for step in count(1):  # each but the last has fresh comparisons
        fresh = np.setdiff1d(codes, programme.rivals)
        try:
            if len(fresh):
                above, below = split(fresh, problem.classes)
                rows = problem.rows(above, np.float64) - problem.rows(below, np.float64)
                bias = problem.b[above] - problem.b[below]
                if found := proof(fresh, _without_programme(problem, rows, bias, step == 1)):
                    return (*found, step)
                programme.add(fresh, rows, bias)
            z, value, weights = programme.solve()
        except SolverError as error:
            reason = str(error)
            break
        logits = problem.logits(z[None], np.float64)[0]
        margin, codes = order.margin(logits), closest_pairs(order, logits)
        last = margin >= value - TOLERANCE * max(1.0, abs(value))
        last = last or bool(np.isin(codes, programme.rivals).all())
        if value <= 0 or last:
            candidates = _worth_checking(problem, programme, weights)
            if found := proof(programme.rivals, candidates):
                return (*found, step)
        if margin > 0 or last:
            witness = Witness(problem.lift(z, max(margin, 0.0)))
            certified = checker.margin(order, witness.point)
            if certified > 0:
                return witness, certified, step
        if last:
            both = f"the programme ends at a margin of {value:.1e}, but neither its point"
            reason = f"{both} nor its weights prove a verdict"
            break
    try:
        return (*decide_exactly(checker, order, np.union1d(programme.rivals, codes)), step)
    except TooLargeError as error:
        return Unknown(bound, f"{reason}; {error}"), bound, step


def _start(problem: Problem) -> MarginProgramme | NearestPointProgramme:
    """The programme of an order over the region, with no comparisons yet."""
    if problem.low is not None and problem.high is not None:
        return MarginProgramme(problem.low, problem.high)
    assert problem.radius is not None
    return NearestPointProgramme(problem.dimension, problem.radius)


def _without_programme(
    problem: Problem, rows: Floats, bias: Floats, first: bool
) -> Iterator[Floats]:
    """Weights (n,) of fresh comparisons: of those between equal rows, and of the first ones over
    the ball around the box, where least squares is several times faster than the programme.

    What is impossible in the larger set is in the smaller; most unargmaxable classes have v = 0
    and are caught so.
    """
    yield (~rows.any(axis=1) & (bias <= 0)).astype(float)
    if first and problem.is_box and not problem.homogeneous:
        d = problem.dimension
        around = NearestPointProgramme(d, problem.scale * d**0.5)
        around.add(np.arange(len(rows)), rows, bias)
        with contextlib.suppress(SolverError):  # the programme itself is left
            yield around.solve()[2]


def _worth_checking(
    problem: Problem, programme: MarginProgramme | NearestPointProgramme, weights: Floats
) -> Iterator[Floats]:
    """The dual's weights and, if homogeneous, those that leave the bias most room."""
    if problem.homogeneous and isinstance(programme, MarginProgramme):
        # outside the hull of these rows there are none: the dual's weights remain
        with contextlib.suppress(SolverError):
            yield programme.solve_at_one()
    yield weights
