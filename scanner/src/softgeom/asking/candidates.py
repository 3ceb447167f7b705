"""Candidates: can a class win among a given set, and which few rivals block it?

Constrained decoding, a pronouncing dictionary, a character set, a masked head: only some classes S
compete. Class t can win among them iff the order ``{t} > S`` can be obeyed. Fewer rivals can only
help: what wins among all wins among any, and what some rivals block is blocked among any set that
holds them.

*Minimal blocking sets.* A set R blocks t when ``{t} > R`` is impossible. By Helly's theorem, on the
convex sets of features at which t beats one rival, every such set holds one of at most d + 1
rivals. The deletion filter (Chinneck and Dravnieks 1991, for infeasible programmes) makes it
minimal: leave a rival out; if t is still blocked, drop it for good, else keep it, with the point at
which t wins without it as the reason. Minimal by inclusion: another blocking set may be smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from softgeom.arrays import Ints
from softgeom.asking.ask import BOX, Answers, ask
from softgeom.certifying.checker import Checker
from softgeom.certifying.kernel import certify_answer, verify_answers
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import Answer, Comparisons, Unknown
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.names import Names


def ask_among(
    layer: SoftmaxLayer,
    among: Iterable[int | str],
    classes: Iterable[int | str] | None = None,
    *,
    features: FeatureSet = BOX,
    n_jobs: int = 1,
) -> Answers:
    """For each class, whether it can be the strict winner when only the candidates ``among``
    compete, all by number or token. Asked about are ``classes``, by default the candidates; one
    that is no candidate joins them. Options are those of ``ask``.
    """
    names = Names(layer)
    candidates = names.find_all(among, "candidates")
    asked = candidates if classes is None else names.find_all(classes, "classes")
    orders = [above([[t]], candidates) for t in asked]
    return ask(layer, orders, features=features, n_jobs=n_jobs)


def above(blocks: Sequence[Sequence[int]], candidates: Iterable[int] | None = None) -> Order:
    """The blocks above the other candidates, where there are any; by default above all classes."""
    if candidates is None:
        return Order(blocks, rest=True)
    named = {i for block in blocks for i in block}
    others = [i for i in candidates if i not in named]
    return Order([*blocks, others] if others else blocks)


@dataclass(frozen=True, eq=False)
class BlockingSet:
    """Rivals that together block a class, and the proof that none of them can be spared."""

    proof: Answer  # {t} > rivals is impossible
    leave_one_out: Answers  # for each rival, {t} > the others is possible

    @property
    def class_(self) -> int:
        """The class that they block."""
        return self.proof.order.blocks[0][0]

    @property
    def rivals(self) -> Ints:
        """The rivals (k,), k <= d + 1."""
        return np.array(self.proof.order.blocks[1], dtype=np.intp)

    @property
    def minimal(self) -> bool:
        """Whether every rival is proven to be needed; an undecided one leaves that open."""
        return self.leave_one_out.counts["possible"] == len(self.rivals)

    def verify(self) -> bool:
        """Check all proofs without a solver; EvidenceError if one fails."""
        verify_answers(self.leave_one_out.layer, self.leave_one_out.features, [self.proof])
        return self.leave_one_out.verify()


def find_blocking_set(
    layer: SoftmaxLayer,
    t: int | str,
    among: Iterable[int | str] | None = None,
    *,
    features: FeatureSet = BOX,
) -> BlockingSet | None:
    """An inclusion-minimal set of rivals that blocks class t, or None if it can win among the
    candidates (default all). ValueError if the question is undecided, or a class does not exist.
    """
    names = Names(layer)
    t = names.find(t, "the class")
    candidates = None if among is None else names.find_all(among, "candidates")
    answer = ask(layer, [above([[t]], candidates)], features=features)[0]
    if answer.verdict == "possible":
        return None
    rivals = _rivals(answer)
    reasons: dict[int, Answer] = {}
    for i in rivals.copy():
        if i not in rivals:
            continue
        without = ask(layer, [above([[t]], [r for r in rivals if r != i])], features=features)[0]
        if without.verdict == "impossible":
            rivals, answer = _rivals(without), without
        else:
            reasons[i] = without
    # a point at which t beats a larger set without i beats the smaller one without i, too
    checker = Checker(layer, features)
    orders = {i: above([[t]], [r for r in rivals if r != i]) for i in rivals}
    escapes = [about(checker, reasons[i], order) for i, order in orders.items()]
    proof = about(checker, answer, Order([[t], rivals]))
    return BlockingSet(proof, Answers(layer, features, escapes))


def about(checker: Checker, answer: Answer, order: Order) -> Answer:
    """The same evidence about another order that it decides alike, such as a part of its own."""
    if isinstance(answer.evidence, Unknown):
        return replace(answer, order=order)
    return replace(answer, order=order, margin=certify_answer(checker, order, answer.evidence))


def _rivals(answer: Answer) -> list[int]:
    if isinstance(answer.evidence, Unknown):
        raise ValueError(f"{answer.order.describe()} is undecided: {answer.evidence.reason}.")
    assert isinstance(answer.evidence, Comparisons)
    return weighed(answer.evidence)


def weighed(evidence: Comparisons) -> list[int]:
    """The classes below of the comparisons that have a weight."""
    pairs = zip(evidence.below.tolist(), evidence.weights, strict=True)
    return sorted({below for below, weight in pairs if weight})
