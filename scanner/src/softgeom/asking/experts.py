"""Experts: which experts can a router never choose among its top k?

A mixture-of-experts layer sends x to the k experts with the largest router logits ``w_e.x + b_e``.
Expert e is among them when at most k - 1 others have a logit that is at least its own: the features
that choose e are a union of polyhedra, one for each choice L of k - 1 experts that may be ahead,
``{e} > all others but L``. Four ways, cheapest first:

1. *A point* at which few enough are ahead.
2. *k disjoint blocking sets* (a relaxation): sets R_1, ..., R_k without a common member, each with
   ``{e} > R_j`` impossible. In each somebody is at least level with e at every x, so that k others
   always are.
3. *The heaviest ahead*: of each blocking set the member with the largest weight, one after the
   other, up to k - 1 of them. The weights are the programme's prices: the margin of e gains most
   there.
4. *Meeting all blocking sets*: whoever frees e must have a member of every one ahead. Choose k - 1
   experts that meet all that were found so far, let them be ahead, ask again: a point, or one more
   blocking set. When no k - 1 experts meet them all, e is never chosen.

The second is a case of the fourth, and that no k - 1 experts meet all blocking sets is what
`verify` checks. With n <= d + 1 experts in general position nobody is ever blocked: their logits
take every order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd

from softgeom.asking.ask import BOX, ask
from softgeom.asking.candidates import about, above, weighed
from softgeom.certifying.checker import Checker
from softgeom.certifying.evidence_file import VERDICTS, load_answers, save_answers
from softgeom.certifying.kernel import hitting_set, verify_expert
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import Answer, Comparisons, EvidenceError, Unknown
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.names import Names
from softgeom.verdict_table import count_verdicts

MOST_QUESTIONS = 2000  # programmes of one expert before it is left undecided


@dataclass(frozen=True, eq=False)
class Chosen:
    """Whether an expert can be among the top k, and why."""

    expert: int
    k: int
    # one order with at most k - 1 experts left out; or blocking sets that no k - 1 experts all
    # meet; or those that were found, and an order that stayed open
    answers: list[Answer]

    @property
    def verdict(self) -> str:
        """possible, impossible or undecided, as the answers say together."""
        said = {answer.verdict for answer in self.answers}
        return next(v for v in ("undecided", "possible", "impossible") if v in said)

    @property
    def method(self) -> str:
        """point, disjoint blocking sets, heaviest ahead, or meeting all blocking sets."""
        return self.answers[0].method

    @property
    def margin(self) -> float:
        """The weakest of the bounds <= 0 that keep it out, or the margin > 0 at its point."""
        return max(answer.margin for answer in self.answers)

    def check(self, layer: SoftmaxLayer, features: FeatureSet, blank: int | None = None) -> bool:
        """Whether the evidence proves the verdict; EvidenceError where it does not."""
        verify_expert(layer, features, self.expert, self.k, self.verdict, self.answers, blank)
        return True


@dataclass(frozen=True, eq=False)
class Router:
    """Verdicts on the experts of one router, or on the classes of a CTC decoder (texts.py), whose
    ``blank`` is no rival.
    """

    layer: SoftmaxLayer
    features: FeatureSet
    experts: list[Chosen]
    blank: int | None = None

    @property
    def k(self) -> int:
        """How many experts are chosen."""
        return self.experts[0].k

    def __repr__(self) -> str:
        counted = ", ".join(f"{n:,} {verdict}" for verdict, n in self.counts.items() if n)
        asked = f"{len(self.experts):,} experts in the top {self.k}, {self.features.describe()}"
        return f"Router({asked}: {counted})"

    def _repr_html_(self) -> str:
        from softgeom.card import piece

        return piece("Which experts can be chosen?", [repr(self)], self.table)

    @property
    def counts(self) -> dict[str, int]:
        """Number of experts of each verdict."""
        return count_verdicts(self.experts, VERDICTS)

    @property
    def table(self) -> pd.DataFrame:
        """One row per expert: expert (by token), class, verdict, method, orders (in its
        evidence).
        """
        token = self.layer.token
        rows = [
            (token(e.expert), e.expert, e.verdict, e.method, len(e.answers)) for e in self.experts
        ]
        return pd.DataFrame(rows, columns=["expert", "class", "verdict", "method", "orders"])

    def verify(self) -> bool:
        """Re-check every verdict without a solver; EvidenceError at the first that fails, at two k
        in one router, or at an expert that occurs twice.
        """
        experts = [expert.expert for expert in self.experts]
        if len(set(experts)) < len(experts) or len({expert.k for expert in self.experts}) > 1:
            raise EvidenceError("An expert occurs twice, or experts differ in k.")
        return all(each.check(self.layer, self.features, self.blank) for each in self.experts)

    def save(self, path: str | Path) -> None:
        """Write the answers to one file, expert by expert, as ``Answers.save`` does."""
        experts = sorted(self.experts, key=lambda chosen: chosen.expert)
        answers = [answer for chosen in experts for answer in chosen.answers]
        save_answers(path, self.layer, self.features, answers, self.k, self.blank)

    @classmethod
    def load(cls, path: str | Path, layer: SoftmaxLayer) -> Router:
        """Read what ``save`` wrote, to ``verify``; ValueError if damaged, or of another layer."""
        features, answers, k, blank = load_answers(path, layer)
        groups = groupby(answers, key=lambda answer: answer.order.blocks[0][0])
        experts = [Chosen(e, k or 0, list(some)) for e, some in groups]
        numbers = [e.expert for e in experts]
        if not k or not numbers or numbers != sorted(set(numbers)):
            raise ValueError(f"{path} is not about experts, each once and in increasing order.")
        return cls(layer, features, experts, blank)


def ask_experts(
    layer: SoftmaxLayer,
    k: int,
    experts: list[int | str] | None = None,
    *,
    features: FeatureSet = BOX,
    most: int = MOST_QUESTIONS,
) -> Router:
    """Decide for each expert (default all) of a router, one row per expert (n, d), whether it can
    be among the top k. ``most`` orders are asked about one expert before it is left undecided.
    ValueError if k is not between 1 and the number of experts.
    """
    if not 1 <= k <= layer.classes:
        n = layer.classes
        raise ValueError(f"A router with {n} experts chooses 1 to {n} of them, not {k}.")
    every = range(layer.classes)
    asked = every if experts is None else Names(layer).find_all(experts, "experts")
    return Router(layer, features, [_decide(layer, e, k, features, most) for e in asked])


class Search:
    """The orders asked about one expert so far, and the blocking sets that they gave. A blank is
    never a rival.
    """

    def __init__(
        self,
        layer: SoftmaxLayer,
        e: int,
        k: int,
        features: FeatureSet,
        most: int,
        blank: int | None = None,
    ) -> None:
        self.layer, self.e, self.k, self.features, self.left = layer, e, k, features, most
        self.rivals = [i for i in range(layer.classes) if i not in (e, blank)]
        self.blocking: list[Answer] = []
        self.open: Answer | None = None  # the order that stayed undecided
        self.heaviest: list[int] = []  # of each the member with the largest weight
        self.checker = Checker(layer, features)

    def ask(self, ahead: set[int]) -> Answer | None:
        """``{e} > all but those ahead``: a point, k - 1 or fewer ahead; None adds what blocks e."""
        self.left -= 1
        order = above([[self.e]], [i for i in self.rivals if i not in ahead])
        answer = ask(self.layer, [order], features=self.features)[0]
        evidence = answer.evidence
        if isinstance(evidence, Unknown):
            self.open = answer
            raise OpenError
        if isinstance(evidence, Comparisons):
            held = Order([[self.e], weighed(evidence)])
            self.blocking.append(about(self.checker, answer, held))
            weights = evidence.weights.astype(float)
            self.heaviest.append(int(evidence.below[weights.argmax()]))
            return None
        if len(ahead) < self.k:
            return answer
        # fewer may be ahead at this point than were allowed to be
        y = self.checker.logits(self.features.feature(evidence.point))
        order = above([[self.e]], [i for i in self.rivals if y[i] < y[self.e]])
        few = 1 + len(self.rivals) - len(order.named) < self.k
        won = few and self.checker.margin(order, evidence.point) > 0
        return about(self.checker, answer, order) if won else None

    def disjoint(self) -> Iterator[Answer | None]:
        """Answers with the members of all former sets ahead, while those are k - 1 or fewer."""
        for _ in range(self.k):
            found = len(self.blocking)
            yield self.ask({i for each in self.blocking for i in each.order.blocks[1]})
            if len(self.blocking) == found:
                return

    def let_pass(self) -> Answer | None:
        """A point for the heaviest members ahead, one more at a time, at most k - 1; or None."""
        ahead = {self.heaviest[0]}
        while len(ahead) < self.k and self.left > 0:
            answer = self.ask(ahead)
            if answer is not None:
                return answer
            ahead.add(self.heaviest[-1])
        return None

    def meet(self) -> Answer | None:
        """A point for some k - 1 experts ahead; None when no such set meets all that block e."""
        while self.left > 0:
            blocking = [set(each.order.blocks[1]) for each in self.blocking]
            try:
                ahead = hitting_set(blocking, self.k - 1)
            except EvidenceError:  # too many ways to try
                break
            if ahead is None:
                return None
            answer = self.ask(ahead)
            if answer is not None:
                return answer
        raise OpenError


class OpenError(RuntimeError):
    """No verdict within the questions allowed."""


def _decide(layer: SoftmaxLayer, e: int, k: int, features: FeatureSet, most: int) -> Chosen:
    search = Search(layer, e, k, features, most)

    def chosen(answers: list[Answer], method: str) -> Chosen:
        return Chosen(e, k, [replace(answer, method=method) for answer in answers])

    try:
        for answer in search.disjoint():
            if answer is not None:
                return chosen([answer], "point")
        if len(search.blocking) == k:
            return chosen(search.blocking, "disjoint blocking sets")
        if (found := search.let_pass()) is not None:
            return chosen([found], "heaviest ahead")
        found = search.meet()
    except OpenError:
        open_ = Answer(Order([[e]]), Unknown(np.inf, "too many questions"), "", 0, np.inf)
        return chosen([*search.blocking, search.open or open_], "meeting all blocking sets")
    return chosen(search.blocking if found is None else [found], "meeting all blocking sets")
