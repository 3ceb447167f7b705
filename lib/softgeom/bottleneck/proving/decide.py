"""One class decided for good: a programme with a working set of rivals, until a witness or captors
are proven.

Each round solves the programme against the rivals seen so far (box: best margin; ball: least norm),
tries its dual weights as a proof, looks at all rivals from its point, tries that point as a
witness, and adds the strongest rivals. The programme is a relaxation, so weights that prove
captivity against a few rivals prove it for good. What ends without either is decided in fractions
(exact.py); what is too large for them is undecided, with the best bound that the weights do prove.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.checker import Checker, wins
from softgeom.bottleneck.certifying.hull import certify_captivity
from softgeom.bottleneck.certifying.verdict import Captors, Evidence, Unknown, Witness
from softgeom.bottleneck.problem import Problem
from softgeom.bottleneck.proving.exact import decide_exactly
from softgeom.bottleneck.proving.lp import MarginProgramme, SolverError
from softgeom.bottleneck.proving.nearest import NearestPointProgramme
from softgeom.bottleneck.proving.simplex import TooLargeError
from softgeom.bottleneck.searching.look import look


def decide(
    problem: Problem,
    checker: Checker,
    t: int,
    z: NDArray[np.floating],
    rivals: NDArray[np.intp],
    *,
    rounds: int = 200,
    growth: int = 64,
) -> tuple[Evidence, float, int]:
    """Decide class t, starting from a candidate ``z`` (D,) and a working set ``rivals``.

    Returns
    -------
    evidence, float, int
        The evidence, what it certifies (see ``certify_evidence``), and the rounds that it took.
    """
    own, classes = problem.rows(np.array([t]), np.float64)[0], np.array([t])
    programme = start_programme(problem, own, float(problem.b[t]))
    fresh = look(
        problem, z[None], classes, strongest=growth, enough=np.inf, dtype=np.float64
    ).strongest[0]
    fresh = np.union1d(fresh, rivals).astype(np.intp)
    shortcut = _circumscribed(problem, t, own, fresh)
    if shortcut is not None:
        return (*shortcut, 1)
    bound, reason = np.inf, f"no proof after {rounds} rounds"
    for step in range(1, rounds + 1):
        try:
            programme.add(fresh, problem.rows(fresh, np.float64), problem.b[fresh])
            z, value, weights = programme.solve()
        except SolverError as error:
            reason = str(error)
            break
        seen = look(problem, z[None], classes, strongest=growth, enough=np.inf, dtype=np.float64)
        fresh = seen.strongest[0][~np.isin(seen.strongest[0], programme.rivals)]
        last = not len(fresh) or seen.margin[0] >= value - 1e-9 * max(1.0, abs(value))
        if value <= _doubt(problem, own) or last:
            for captors in weights_worth_checking(problem, programme, weights):
                proven = certify_captivity(
                    problem.layer, problem.features, t, captors.rivals, captors.weights
                )
                if proven <= 0:
                    return captors, proven, step
                bound = min(bound, proven)
        if seen.margin[0] > 0 or last:
            witness = Witness(problem.lift(z, float(seen.margin[0])))
            margin = float(checker.certify(witness.point[None], classes)[0])
            if margin > 0:
                return witness, margin, step
        if last:
            reason = (
                f"the programme ends at a margin of {value:.1e}, but neither its point nor its "
                "weights prove a verdict"
            )
            break
    try:
        rivals = np.union1d(programme.rivals, fresh)
        return (*_exactly(problem, checker, t, rivals), step)
    except TooLargeError as error:
        return Unknown(bound, f"{reason}; {error}"), bound, step


def _exactly(
    problem: Problem, checker: Checker, t: int, rivals: NDArray[np.intp]
) -> tuple[Witness | Captors, float]:
    """The verdict in fractions and what it certifies."""
    found = decide_exactly(problem.layer, problem.features, t, rivals)
    if isinstance(found, Witness):
        return found, checker.margin(wins(t), found.point)
    return found, certify_captivity(problem.layer, problem.features, t, found.rivals, found.weights)


def start_programme(
    problem: Problem, own: NDArray[np.float64], bias: float
) -> MarginProgramme | NearestPointProgramme:
    """The programme of a class over the region, with no rivals yet."""
    if problem.low is not None and problem.high is not None:
        return MarginProgramme(own, bias, problem.low, problem.high)
    assert problem.radius is not None
    return NearestPointProgramme(own, bias, problem.radius)


def _circumscribed(
    problem: Problem, t: int, own: NDArray[np.float64], rivals: NDArray[np.intp]
) -> tuple[Captors, float] | None:
    """Captors over the ball around the box, when they exist: least squares is several times faster
    than the programme.

    A class that cannot win in the larger set cannot in the smaller; most captives have v = 0 and
    are caught so.
    """
    if not problem.is_box or problem.homogeneous:
        return None
    programme = NearestPointProgramme(
        own, float(problem.b[t]), problem.scale * problem.dimension**0.5
    )
    programme.add(rivals, problem.rows(rivals, np.float64), problem.b[rivals])
    try:
        _, _, weights = programme.solve()
    except SolverError:
        return None
    captors = Captors(programme.rivals[weights > 0], weights[weights > 0])
    bound = certify_captivity(problem.layer, problem.features, t, captors.rivals, captors.weights)
    return (captors, bound) if bound <= 0 else None


def weights_worth_checking(
    problem: Problem,
    programme: MarginProgramme | NearestPointProgramme,
    weights: NDArray[np.float64],
) -> Iterator[Captors]:
    """The dual's weights and, in the homogeneous form, those that leave the most room in the
    bias.
    """
    if problem.homogeneous and isinstance(programme, MarginProgramme):
        try:
            roomy = programme.solve_at_one()
            yield Captors(programme.rivals[roomy > 0], roomy[roomy > 0])
        except SolverError:
            pass  # outside the hull of these rivals' rows: the dual's weights remain
    yield Captors(programme.rivals[weights > 0], weights[weights > 0])


def _doubt(problem: Problem, own: NDArray[np.float64]) -> float:
    """A best margin up to this may be zero within the solver's tolerance, so that weights are worth
    checking.
    """
    return 1e-6 * problem.scale * max(float(np.linalg.norm(own)), 1e-3)
