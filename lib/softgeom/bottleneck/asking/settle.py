"""One order decided for good: a programme over the comparisons that matter, until a point or
weights are proven.

As for a single class (proving/decide.py), with comparisons in the place of rivals: each round
solves the programme over the comparisons seen so far, tries its dual weights as a proof, looks at
all logits from its point, tries that point as a witness, and adds the comparisons that it breaks.
What ends without either is decided in fractions, or stays undecided with the reason.
"""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.checker import Checker
from softgeom.bottleneck.certifying.hull import exact_row
from softgeom.bottleneck.certifying.order import Order
from softgeom.bottleneck.certifying.verdict import Comparisons, Proof, Unknown, Witness
from softgeom.bottleneck.problem import Problem
from softgeom.bottleneck.proving.decide import start_programme, weights_worth_checking
from softgeom.bottleneck.proving.exact import (
    MOST_FEATURES,
    MOST_RIVALS,
    SECONDS,
    decide_region,
    shorter,
)
from softgeom.bottleneck.proving.lp import SolverError
from softgeom.bottleneck.proving.simplex import TooLargeError

ROUNDS = 200
DOUBT = 1e-6  # of rows times region: a best margin below may be zero within the solver's tolerance


def settle(
    problem: Problem,
    checker: Checker,
    order: Order,
    z: NDArray[np.floating],
    *,
    growth: int = 64,
    rounds: int = ROUNDS,
) -> tuple[Proof, float, int]:
    """Decide an order, starting from a candidate ``z`` (D,): the evidence, what it certifies, and
    the rounds that it took.
    """
    C, zero = problem.classes, np.zeros(problem.dimension)
    programme = start_programme(problem, zero, 0.0)
    known = np.zeros(0, np.intp)  # comparisons as above * C + below
    bound, reason, doubt, step = np.inf, f"no proof after {rounds} rounds", 0.0, 0
    logits = _logits(problem, z)
    for step in range(1, rounds + 1):
        fresh = np.setdiff1d(_codes(order.closest(logits, growth), C), known)
        known = np.concatenate([known, fresh])
        if len(fresh):
            above, below = fresh // C, fresh % C
            rows = problem.rows(below, np.float64) - problem.rows(above, np.float64)
            bias = problem.b[below] - problem.b[above]
            doubt = max(
                doubt, DOUBT * problem.scale * max(float(np.linalg.norm(rows, axis=1).max()), 1e-3)
            )
            # rows that are equal need no programme
            for n in np.flatnonzero(~rows.any(axis=1) & (bias >= 0)):
                found = _tried(checker, order, above[[n]], below[[n]], np.ones(1))
                if found is not None:
                    return (*found, step)
            programme.add(fresh, rows, bias)
        try:
            z, value, weights = programme.solve()
        except SolverError as error:
            reason = str(error)
            break
        logits = _logits(problem, z)
        seen = order.margin(logits)
        last = np.isin(_codes(order.closest(logits, growth), C), known).all()
        if value <= doubt or last:
            for captors in weights_worth_checking(problem, programme, weights):
                found = _tried(
                    checker, order, captors.rivals // C, captors.rivals % C, captors.weights
                )
                if found is not None:
                    return (*found, step)
        if seen > 0 or last:
            witness = Witness(problem.lift(z, max(seen, 0.0)))
            margin = checker.margin(order, witness.point)
            if margin > 0:
                return witness, margin, step
        if last:
            reason = (
                f"the programme ends at a margin of {value:.1e}, but neither its point nor its "
                "weights prove it"
            )
            break
    try:
        return (*_exactly(checker, order, known, C), step)
    except TooLargeError as error:
        return Unknown(bound, f"{reason}; {error}"), bound, step


def _tried(
    checker: Checker,
    order: Order,
    above: NDArray[np.intp],
    below: NDArray[np.intp],
    weights: NDArray[np.float64],
) -> tuple[Comparisons, float] | None:
    evidence = Comparisons(above, below, weights)
    bound = checker.bound(order, evidence)
    return (evidence, bound) if bound <= 0 else None


def _exactly(
    checker: Checker, order: Order, known: NDArray[np.intp], C: int
) -> tuple[Proof, float]:
    """The verdict in fractions, and what it certifies; TooLargeError where that would take too
    long.
    """
    layer, features = checker.layer, checker.features
    if layer.dimension > MOST_FEATURES:
        raise TooLargeError(
            f"{layer.dimension} features are too many for exact arithmetic (at most "
            f"{MOST_FEATURES})"
        )
    deadline = time.monotonic() + SECONDS
    working: list[int] = known.tolist()
    rows: dict[int, tuple[list[Fraction], Fraction]] = {}
    D: list[list[Fraction]] = []
    c: list[Fraction] = []
    while True:
        for code in working[len(D) :]:
            for i in (code // C, code % C):
                if i not in rows:
                    rows[i] = features.reduce_exactly(*exact_row(layer, i))
            (own, bias), (row, b) = rows[code // C], rows[code % C]
            D.append([p - q for p, q in zip(own, row, strict=True)])
            c.append(bias - b)
        z, weights = decide_region(layer, features, D, c, deadline - time.monotonic())
        if z is None:
            used = [n for n, weight in enumerate(weights) if weight]
            codes = np.array([working[n] for n in used])
            evidence = Comparisons(
                codes // C, codes % C, np.array([weights[n] for n in used], dtype=object)
            )
            return evidence, checker.bound(order, evidence)
        point, margin = np.array(z, dtype=object), -np.inf
        for point in shorter(z):
            margin = checker.margin(order, point)
            if margin > 0:
                return Witness(point), margin
        exact = [
            value if isinstance(value, Fraction) else Fraction(float(value)) for value in point
        ]
        fresh = _broken(checker, order, exact, set(working), C)
        if not fresh or len(working) + len(fresh) > MOST_RIVALS:
            count = len(working) + len(fresh)
            raise TooLargeError(
                f"{count} comparisons are too many for exact arithmetic (at most {MOST_RIVALS})"
            )
        working += fresh


def _broken(
    checker: Checker, order: Order, z: list[Fraction], known: set[int], C: int
) -> list[int]:
    """Comparisons that the point breaks or ties and the programme does not know, the closest in
    float64 first.
    """
    x = np.array([float(value) for value in checker.features.features_exactly(z)])
    codes = _codes(order.closest(checker.logits(x), 64), C)
    return [code for code in codes.tolist() if code not in known]


def _codes(pairs: tuple[NDArray[np.intp], NDArray[np.intp]], C: int) -> NDArray[np.intp]:
    return pairs[0] * C + pairs[1]


def _logits(problem: Problem, z: NDArray[np.floating]) -> NDArray[np.float64]:
    blocks = [
        problem.rows(block, np.float64) @ z.astype(np.float64)
        for block in problem.row_blocks(np.float64)
    ]
    return np.concatenate(blocks) + problem.b
