"""What becomes "proven": each verdict, margin and radius against its evidence, without a solver.

Whatever is verified goes through here: a scan in memory, a file, a folder, a block of a checkpoint,
answers and experts. Claims are compared with what the evidence proves: a margin > 0 or a radius may
be at most that, a bound <= 0 at least that. What float64 cannot confirm, fractions do, so that a
claim that is true is confirmed by every machine (docs/verdicts.md).

=============  ==========================================================
evidence       checked by
=============  ==========================================================
a point        rounding bounds, else fractions: checker.py; in large layers partial.py first
weights        ``max_x v.x + c <= 0``: slack.py, hull.py
a twin         equality, entry by entry: hull.py
=============  ==========================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from softgeom.certifying.checker import POSITIVE, Checker, wins
from softgeom.certifying.hull import CHECK, are_twins, certify_unargmaxable
from softgeom.certifying.order import Order
from softgeom.certifying.partial import PartialLook, certify_by, partial_look
from softgeom.certifying.slack import slack_bounds
from softgeom.certifying.verdict import (
    Answer,
    BlockingClasses,
    Comparisons,
    Evidence,
    EvidenceError,
    Finding,
    Twin,
    Unknown,
    Witness,
)
from softgeom.layer import Box, FeatureSet, SoftmaxLayer
from softgeom.rounding import demand_standard_model

TOGETHER = 1024  # points of one product
MANY = 8192  # points below which whole products take less time than preparing for a part of each
BRANCHES = 10**6  # of a search for experts that meet all sets: 10 seconds


@np.errstate(all="ignore")
def certify_evidence(
    layer: SoftmaxLayer, features: FeatureSet, t: int, evidence: Evidence
) -> float:
    """What evidence about class t certifies: a witness a lower bound > 0 on its margin, blocking
    classes an upper bound <= 0 on the best one, a twin 0. Nothing is claimed for an undecided
    class, whose bound is returned as it is. EvidenceError if it does not prove its verdict.
    """
    demand_standard_model()
    named = f"Class {t} ({layer.token(t) if 0 <= t < layer.classes else '?'})"
    if isinstance(evidence, Witness):
        point = np.asarray(evidence.point)
        if 0 <= t < layer.classes and point.shape == (layer.dimension,):
            margin = float(Checker(layer, features).certify(point[None], np.array([t]))[0])
            if margin > 0:
                return margin
        raise EvidenceError(f"{named}: the witness does not certainly win inside the feature set.")
    if isinstance(evidence, BlockingClasses):
        bound = certify_unargmaxable(layer, features, t, evidence.rivals, evidence.weights)
        if not bound <= 0:
            raise EvidenceError(f"{named}: the weights do not prove that it can never win.")
        return bound
    if isinstance(evidence, Twin):
        if not are_twins(layer, features, t, evidence.twin):
            raise EvidenceError(
                f"{named} is no twin of class {evidence.twin}: their logits differ."
            )
        return 0.0
    return evidence.bound


@np.errstate(all="ignore")
def certify_answer(checker: Checker, order: Order, evidence: Witness | Comparisons) -> float:
    """What evidence about an order certifies: a lower bound > 0 on its margin, or an upper bound <=
    0 on the best one; EvidenceError if it proves neither.
    """
    if isinstance(evidence, Witness):
        margin = checker.margin(order, evidence.point)
        verdict, proven = "possible", margin > 0
    else:
        margin = checker.bound(order, evidence)
        verdict, proven = "impossible", margin <= 0
    if not proven:
        raise EvidenceError(
            f"{order.describe(checker.layer)}: the evidence does not prove {verdict}."
        )
    return margin


@np.errstate(all="ignore")
def verify_findings(layer: SoftmaxLayer, features: FeatureSet, findings: Sequence[Finding]) -> None:
    """Check every verdict, margin and radius about classes; EvidenceError at the first class that
    is out of range, occurs twice, or whose evidence does not prove what is filed under it.
    """
    checker = Checker(layer, features)
    seen: set[int] = set()
    for f in findings:
        whole = isinstance(f.index, int | np.integer)  # 2.5 would be cut to 2
        if f.index in seen or not whole or not 0 <= f.index < layer.classes:
            said = "occurs twice" if f.index in seen else "is none of the layer's"
            raise EvidenceError(f"Class {f.index} {said}.")
        if not (isinstance(f.margin, float) and isinstance(f.radius, float)):
            raise EvidenceError(f"Class {f.index}: its margin and radius must be floats.")
        seen.add(f.index)
    margins, radii = _proven_weights(checker, findings), set[int]()
    look = _partial_look(checker, findings)
    for start in range(0, len(findings), TOGETHER):
        some, near = _proven_points(checker, findings[start : start + TOGETHER], look)
        margins, radii = margins | some, radii | near
    for f in findings:
        if f.index not in margins and not _proves_margin(checker, f):
            _complain(checker, f, "margin")
        if f.index not in radii and not _proves_radius(checker, f):
            _complain(checker, f, "radius")


def verify_parts(
    layer: SoftmaxLayer,
    features: FeatureSet,
    findings: Sequence[Finding],
    wider: Iterable[tuple[FeatureSet, Sequence[Finding]]],
) -> None:
    """Check a scan, and of some of its unargmaxable classes that they are so over further sets;
    EvidenceError also where a set is there twice, says nothing, or says it of a class that the scan
    itself does not file as unargmaxable.
    """
    verify_findings(layer, features, findings)
    lost, sets = {f.index for f in findings if isinstance(f.evidence, BlockingClasses)}, [features]
    for others, more in wider:
        again = any(_are_equal(others, one, layer.dimension) for one in sets)
        if again or not more:
            said = "occurs twice" if again else "says nothing about any class"
            raise EvidenceError(f"The set {others.describe()} {said}.")
        sets.append(others)
        for f in more:
            if f.index not in lost or not isinstance(f.evidence, BlockingClasses):
                raise EvidenceError(
                    f"Class {f.index}: over {others.describe()} only proofs about the scan's own "
                    "unargmaxable classes are of use."
                )
        verify_findings(layer, others, more)


def _are_equal(one: FeatureSet, other: FeatureSet, dimension: int) -> bool:
    """Whether two sets are one; of a box a bound may be a number or a list of it."""
    if isinstance(one, Box) and isinstance(other, Box):
        return np.array_equal(one.bounds(dimension), other.bounds(dimension))
    return one == other


def _partial_look(checker: Checker, findings: Sequence[Finding]) -> PartialLook | None:
    """What shows most of the points to win by a part of each product, if anything does."""
    if len(findings) < MANY:
        return None
    won = _won(checker, findings, narrow=True)
    if len(won) < MANY:
        return None
    points, claimed = [f.evidence.point for f in won], np.array([f.margin for f in won])  # type: ignore[union-attr]
    return partial_look(checker, points, np.array([f.index for f in won], np.intp), claimed)


def _won(checker: Checker, findings: Sequence[Finding], narrow: bool = False) -> list[Finding]:
    """Those with a point and a margin that it may prove; a ``narrow`` one float32 holds."""
    return [
        f
        for f in findings
        if isinstance(f.evidence, Witness)
        and f.margin > 0
        and np.shape(f.evidence.point) == (checker.layer.dimension,)
        and (not narrow or checker.is_narrow(f.evidence.point))
    ]


def _proven_points(
    checker: Checker, findings: Sequence[Finding], look: PartialLook | None = None
) -> tuple[set[int], set[int]]:
    """Classes whose points prove their margins, and their radii, as far as products together show
    it.
    """
    won = _won(checker, findings)
    classes, claimed = np.array([f.index for f in won], np.intp), np.array([f.margin for f in won])
    points = [f.evidence.point for f in won]  # type: ignore[union-attr]
    margins = np.full(len(won), -np.inf)
    if look is not None:
        narrow = [n for n, point in enumerate(points) if checker.is_narrow(point)]
        if narrow:
            stacked = np.stack([points[n] for n in narrow])
            margins[narrow] = certify_by(checker, look, stacked, classes[narrow])
    left = np.flatnonzero(~(margins >= claimed))
    some = [points[n] for n in left]
    margins[left] = checker.certify_many(some, classes[left], claimed[left])
    radius = np.array([f.radius for f in won])
    near = (radius >= 0) & (radius <= checker.radius(classes, claimed))
    return set(classes[margins >= claimed].tolist()), set(classes[near].tolist())


def _proven_weights(checker: Checker, findings: Sequence[Finding]) -> set[int]:
    """Classes whose weights prove their bounds, as far as products together show it."""
    held = [f for f in findings if isinstance(f.evidence, BlockingClasses)]
    blocking = [f.evidence for f in held if isinstance(f.evidence, BlockingClasses)]
    classes = [f.index for f in held]
    bounds = slack_bounds(checker.layer, checker.features, classes, blocking, CHECK)
    shown = zip(held, bounds.tolist(), strict=True)
    return {f.index for f, bound in shown if bound <= f.margin <= 0}


def _proves(
    checker: Checker, order: Order, evidence: Evidence | Comparisons, margin: float
) -> bool:
    """Whether evidence proves the margin of one order, in fractions where float64 does not show
    it; a class is the order ``{t} > rest``.
    """
    if isinstance(evidence, Unknown):
        return True
    if isinstance(evidence, Witness):
        point = np.asarray(evidence.point)
        return margin > 0 and checker.margin(order, point, margin) >= margin
    t = order.blocks[0][0]
    if isinstance(evidence, Twin):
        about = margin == 0 and order == wins(t)
        return about and are_twins(checker.layer, checker.features, t, evidence.twin)
    if isinstance(evidence, BlockingClasses):
        above = np.full(np.shape(evidence.rivals), t)
        evidence = Comparisons(above, evidence.rivals, evidence.weights)
    return checker.proves(order, evidence, margin)


def _proves_margin(checker: Checker, f: Finding) -> bool:
    return _proves(checker, wins(f.index), f.evidence, f.margin)


def _proves_radius(checker: Checker, f: Finding) -> bool:
    """Whether a margin that is proven proves the radius; only a point has one."""
    if not isinstance(f.evidence, Witness):
        return bool(np.isnan(f.radius))
    if f.margin == np.inf:
        return f.radius >= 0
    # The stored margin may be POSITIVE, which says no more, or capped at the end of float64.
    if f.margin > POSITIVE and checker.proves_radius(f.index, f.radius, Fraction(f.margin)):
        return True
    exact = checker.exact_margin(wins(f.index), f.evidence.point)
    return exact is not None and checker.proves_radius(f.index, f.radius, exact)


def _complain(checker: Checker, f: Finding, name: str) -> None:
    """EvidenceError: the evidence proves nothing, or less than is filed under it."""
    ours = certify_evidence(checker.layer, checker.features, f.index, f.evidence)
    if name == "radius":
        won = isinstance(f.evidence, Witness)
        ours = float(checker.radius(np.array([f.index]), np.array([ours]))[0]) if won else np.nan
    raise EvidenceError(
        f"Class {f.index} ({checker.layer.token(f.index)}): the stored {name} is "
        f"{getattr(f, name)!r}, but its evidence proves {ours!r}."
    )


@np.errstate(all="ignore")
def verify_answers(layer: SoftmaxLayer, features: FeatureSet, answers: Iterable[Answer]) -> None:
    """Check every verdict and margin about orders; EvidenceError at the first that is not
    proven.
    """
    checker = Checker(layer, features)
    for answer in answers:
        order, evidence, claimed = answer.order, answer.evidence, answer.margin
        if isinstance(evidence, Unknown):
            continue
        order.check(layer.classes)
        if not _proves(checker, order, evidence, claimed):
            ours = certify_answer(checker, order, evidence)
            raise EvidenceError(
                f"{order.describe(layer)}: the stored margin is {claimed!r}, but its evidence "
                f"proves {ours!r}."
            )


def verify_expert(
    layer: SoftmaxLayer,
    features: FeatureSet,
    expert: int,
    k: int,
    verdict: str,
    answers: Sequence[Answer],
    blank: int | None = None,
) -> None:
    """Check that answers about orders ``{e} > R`` prove whether expert e can be among the top k.

    *Possible* takes a point of one order that leaves at most k - 1 other experts out; *impossible*
    impossible orders such that no k - 1 other experts have a member in each R: whoever lets e be
    chosen has a member of every R ahead of it. A ``blank`` is no rival: no R holds it, and where it
    is does not count. EvidenceError if they prove neither.
    """
    if verdict not in ("possible", "impossible", "undecided") or not (
        0 <= expert < layer.classes and 1 <= k <= layer.classes
    ):
        raise EvidenceError(
            f"Expert {expert}: {verdict!r:.20} is no verdict about an expert among the top {k} of "
            f"{layer.classes}."
        )
    verify_answers(layer, features, answers)
    orders = [answer.order for answer in answers]
    for order in orders:
        if order.rest or order.blocks[0] != (expert,) or len(order.blocks) > 2:
            raise EvidenceError(f"Expert {expert}: an answer is about another order.")
        if blank is not None and blank in order.named:
            raise EvidenceError(f"Expert {expert}: an order names the blank, which is no rival.")
    if verdict == "possible":
        if [answer.verdict for answer in answers] != ["possible"]:
            raise EvidenceError(
                f"Expert {expert}: it takes one point to prove that it is possible."
            )
        ahead = layer.classes - len(orders[0].named) - (blank is not None)
        if ahead >= k:
            raise EvidenceError(
                f"Expert {expert}: the point leaves {ahead} experts that may be ahead."
            )
    if verdict == "undecided" and any(answer.verdict == "possible" for answer in answers):
        raise EvidenceError(f"Expert {expert}: a point is no part of an open question.")
    if verdict == "impossible":
        # An order of one block demands nothing: it cannot be impossible.
        proven = all(answer.verdict == "impossible" for answer in answers)
        rivals = [set(order.blocks[1]) for order in orders if len(order.blocks) == 2]
        if not proven or hitting_set(rivals, k - 1) is not None:
            raise EvidenceError(
                f"Expert {expert}: {k - 1} experts ahead of it may be enough to let it be chosen."
            )


def hitting_set(sets: Sequence[set[int]], size: int, most: int = BRANCHES) -> set[int] | None:
    """Some set of at most ``size`` members that meets each of the sets, or None if there is none.

    Branches on the members of the smallest set that is not met, unless more than ``size`` of the
    sets are disjoint: each of those takes a member of its own. EvidenceError after ``most``
    branches, or where they go deeper than Python does.
    """
    left = iter(range(most))

    def meet(sets: Sequence[set[int]], size: int) -> set[int] | None:
        if not sets:
            return set()
        if next(left, None) is None:
            raise EvidenceError(f"Which experts suffice is open after {most} branches.")
        apart: list[set[int]] = []
        for some in sorted(sets, key=len):
            if all(some.isdisjoint(other) for other in apart):
                apart.append(some)
        if len(apart) > size:
            return None
        for member in sorted(apart[0]):
            found = meet([other for other in sets if member not in other], size - 1)
            if found is not None:
                return {member} | found
        return None

    try:
        return meet(sets, size)
    except RecursionError:
        raise EvidenceError("Which experts suffice is open: they are too many to try.") from None
