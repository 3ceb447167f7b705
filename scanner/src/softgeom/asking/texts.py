"""Texts: which classes are never in the most probable text of a CTC decoder?

CTC (Graves et al. 2006) reads one class a frame, merges repeats and drops the *blank*; the
probability of a text is the sum over its alignments. Class t is in no most probable text, at any
number of frames and without a language model, if at every feature vector at least `RIVALS` classes
other than the blank score at least as high as t (docs/texts.md has the proof). So the question is
that of an expert (experts.py): can t be among the best `RIVALS` where the blank is no rival?

Removing the blank and any two classes must leave weights that rule t out. Random parts find such
weights for most classes at once: the rivals are dealt into `PARTS`, and what a scan of the layer
without two of them proves holds whichever members of those two are removed. For what is left one
set after the other is sought that as few as possible of the remaining pairs meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from softgeom.arrays import Array, Floats, Ints
from softgeom.asking.ask import BOX
from softgeom.asking.candidates import about, above
from softgeom.asking.experts import MOST_QUESTIONS, Chosen, OpenError, Router, Search
from softgeom.certifying.checker import Checker
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import (
    Answer,
    BlockingClasses,
    Comparisons,
    EvidenceError,
    Twin,
    Unknown,
    Witness,
)
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.names import Names
from softgeom.parallel import run_blocks
from softgeom.proving.cheapest import CheapestWeights
from softgeom.proving.lp import SolverError
from softgeom.scanner import scan

RIVALS = 3  # other than the blank: both neighbours of t in a text, and one to take its place
PARTS = 3  # that the rivals are dealt into


def ask_texts(
    layer: SoftmaxLayer,
    classes: Sequence[int | str] | None = None,
    *,
    blank: int | str = 0,
    features: FeatureSet = BOX,
    seed: int = 0,
    n_jobs: int = 1,
    most: int = MOST_QUESTIONS,
    progress: bool = False,
) -> Router:
    """Decide for each class whether `RIVALS` others always score at least as high: *impossible* is
    never in a most probable text of CTC where its margin is below 0, and else tied with one without
    it at best; *possible* is not excluded by this argument.

    Parameters
    ----------
    layer
        Weights (C, d), bias (C,) or none.
    classes
        By number or token; default all that can never win a frame.
    blank
        The class that CTC drops.
    features
        Where the layer's inputs lie, at every frame; a convex set.
    seed, n_jobs
        Of the parts; workers.
    most
        Questions about one class before it is left undecided.
    progress
        Print how far it is.

    Raises
    ------
    ValueError
        If a class does not exist or is the blank.
    """
    names = Names(layer)
    blank = names.find(blank, "the blank")
    how: Any = {"seed": seed, "n_jobs": n_jobs, "progress": progress}
    if classes is None:
        found = scan(layer, features=features, **how)
        asked = [f.index for f in found.findings if not isinstance(f.evidence, Witness)]
        asked = [t for t in asked if t != blank]
    else:
        asked = sorted(names.find_all(classes, "classes"))
    if blank in asked:
        raise ValueError(f"class {blank} is the blank, which is in no text: leave it out.")
    deal = _Deal(layer, blank, features, {t: [] for t in asked})
    rng = np.random.default_rng(seed)
    if layer.classes > 2 + RIVALS:
        deal.play(np.array_split(rng.permutation(deal.rivals), PARTS), **how)
    jobs = [([t], deal.blocking[t], deal.freed.get(t), most) for t in asked]
    nothing = _Deal(layer, blank, features, {})
    title = "meeting all proofs" if progress else None
    shared: Any = {"description": title, "shared": nothing, "unit": "classes"}
    return Router(layer, features, run_blocks(_decide, jobs, n_jobs, **shared), blank)


def blank_of(names: Names) -> int:
    """The class that is called the blank; ValueError where none is, or several may be."""
    tokens = names.layer.tokens or ()
    marked = [t for t, token in enumerate(tokens) if token == "<blank>"]
    # the word may be an output like others, elsewhere than where a decoder's blank stands
    marked = marked or [0] * (tokens[:1] == ("blank",))
    if len(marked) != 1:
        raise ValueError(
            f"{len(marked) or 'no'} classes are called <blank>: name the decoder's blank with "
            "--ctc-blank."
        )
    return marked[0]


@dataclass(eq=False)
class _Deal:
    """The blocking sets that were found for each class, and the points that free one."""

    layer: SoftmaxLayer
    blank: int
    features: FeatureSet
    blocking: dict[int, list[Answer]]
    freed: dict[int, Answer] = field(default_factory=dict)

    @cached_property
    def rivals(self) -> Ints:
        return np.delete(np.arange(self.layer.classes), self.blank)

    @cached_property
    def checker(self) -> Checker:
        return Checker(self.layer, self.features)

    def play(self, parts: list[Ints], **how: Any) -> None:
        """Scan the open classes against all rivals but each two of the parts."""
        for removed in combinations(range(len(parts)), RIVALS - 1):
            open_ = np.array([t for t in self.blocking if not self._closed(t)], dtype=np.intp)
            if not len(open_):
                return
            kept = np.concatenate([part for n, part in enumerate(parts) if n not in removed])
            ids = np.concatenate([np.setdiff1d(kept, open_), open_])
            layer = SoftmaxLayer(self.layer.W[ids], self.layer.bias[ids])
            where = np.arange(len(ids) - len(open_), len(ids))
            found = scan(layer, where, features=self.features, **how)
            for t, f in zip(open_.tolist(), found.findings, strict=True):
                if isinstance(f.evidence, Witness):
                    self._free(t, f.evidence)
                elif isinstance(f.evidence, BlockingClasses | Twin):
                    self._block(t, ids, f.evidence)

    def decided(self, t: int, most: int) -> Chosen:
        """The verdict on one class, with no more blocking sets than it needs."""
        if t in self.freed:
            return Chosen(t, RIVALS, [self.freed[t]])
        known, how = self.blocking[t], "disjoint blocking sets"
        if not self._closed(t):
            how = "meeting all blocking sets"
            search = Search(self.layer, t, RIVALS, self.features, most, self.blank)
            search.blocking += known
            try:
                free = _meet(self, search)
            except OpenError:
                open_ = Answer(Order([[t]]), Unknown(np.inf, "too many questions"), how, 0, np.inf)
                return Chosen(t, RIVALS, [open_])
            if free is not None:
                return Chosen(t, RIVALS, [free])
            known = search.blocking
        for answer in list(known):
            fewer = [other for other in known if other is not answer]
            known = fewer if _exclude(fewer) else known
        return Chosen(t, RIVALS, [replace(answer, method=how) for answer in known])

    def _closed(self, t: int) -> bool:
        return t in self.freed or _exclude(self.blocking[t])

    def _block(self, t: int, ids: Ints, evidence: BlockingClasses | Twin) -> None:
        if isinstance(evidence, Twin):
            evidence = BlockingClasses(np.array([evidence.twin]), np.ones(1))
        self.blocking[t].append(self.blocked(t, ids[evidence.rivals], evidence.weights))

    def blocked(self, t: int, rivals: Ints, weights: Array) -> Answer:
        """The blocking set of some weights; EvidenceError if they do not prove it."""
        rivals, weights = rivals[weights > 0], weights[weights > 0]
        pairs = Comparisons(np.full(len(rivals), t), rivals, weights)
        order = Order([[t], sorted(rivals.tolist())])
        return about(self.checker, Answer(order, pairs, "", 0, 0.0), order)

    def _free(self, t: int, evidence: Witness) -> None:
        """A point at which fewer than `RIVALS` are level or ahead frees the class."""
        point = evidence.point
        if point.dtype == object:
            return
        y: Floats = self.checker.logits(self.features.feature(point))
        behind = [i for i in self.rivals.tolist() if y[i] < y[t]]
        if len(self.rivals) - 1 - len(behind) < RIVALS:
            order = above([[t]], behind)
            if (margin := self.checker.margin(order, point)) > 0:
                self.freed[t] = Answer(order, evidence, "point", 0, margin)


def _decide(
    deal: _Deal, classes: list[int], blocking: list[Answer], freed: Answer | None, most: int
) -> Chosen:
    """The verdict on the one class of a worker's job, from what the parts gave."""
    (t,) = classes
    deal.blocking = {t: blocking}
    deal.freed = {} if freed is None else {t: freed}
    return deal.decided(t, most)


def _meet(deal: _Deal, search: Search) -> Answer | None:
    """A point at which only the members of a pair are ahead; None when no pair meets all sets.

    The pair that weighs most is left out of the next set. Other classes cost as much there as the
    number of pairs that they are in, so that few pairs meet the cheapest set.
    """
    if not search.blocking and (answer := search.ask(set())) is not None:
        return answer
    others = np.array(search.rivals)
    room = -0.5 * max(answer.margin for answer in search.blocking)
    programme = CheapestWeights(deal.layer, search.e, others, room)
    while search.left > 0:
        pairs = _Pairs(search.blocking)
        if not pairs.left:
            return None
        pair, costs = pairs.heaviest()
        cost = np.zeros(len(others))
        cost[np.searchsorted(others, pairs.members)] = costs
        try:
            weights = programme.solve(cost, np.searchsorted(others, sorted(pair)))
            search.blocking.append(deal.blocked(search.e, others, weights))
            search.left -= 1
        except (SolverError, EvidenceError):
            if (answer := search.ask(pair)) is not None:
                return answer
            if (less := -0.5 * search.blocking[-1].margin) < room:
                room = less
                programme = CheapestWeights(deal.layer, search.e, others, room)
    raise OpenError


class _Pairs:
    """The pairs of classes that meet all blocking sets."""

    def __init__(self, blocking: Sequence[Answer]) -> None:
        evidence = [answer.evidence for answer in blocking]
        each = [(e.below, e.weights.astype(float)) for e in evidence if isinstance(e, Comparisons)]
        self.members: Ints = np.unique(np.concatenate([below for below, _ in each]))
        shares = np.zeros((len(each), len(self.members)))
        for share, (below, weights) in zip(shares, each, strict=True):
            share[np.searchsorted(self.members, below)] = weights / weights.sum()
        self._total = shares.sum(axis=0)
        # each pair has a member in the smallest set
        self._first = np.flatnonzero(shares[(shares > 0).sum(axis=1).argmin()])
        misses = (shares == 0).astype(np.float32)
        self._meet = misses[:, self._first].T @ misses == 0

    @property
    def left(self) -> bool:
        """Whether there are any."""
        return bool(self._meet.any())

    def heaviest(self) -> tuple[set[int], Floats]:
        """The pair with most weight in all sets together; what each of ``members`` costs in a set
        without that pair: 1 where it is in a pair with one of the two, and its share of all pairs.
        """
        weight = np.where(self._meet, self._total[self._first, None] + self._total, -1.0)
        one, other = np.unravel_index(weight.argmax(), weight.shape)
        costs = self._meet.sum(axis=0, dtype=float)
        costs[self._first] += self._meet.sum(axis=1)
        costs = self._meet[one] + costs / costs.sum()
        costs[self._first] += self._meet[:, other]
        return {int(self.members[self._first[one]]), int(self.members[other])}, costs


def _exclude(blocking: Sequence[Answer]) -> bool:
    """Whether no pair of classes meets all blocking sets."""
    return bool(blocking) and not _Pairs(blocking).left
