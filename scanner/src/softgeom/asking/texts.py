"""Texts: which classes are never in the most probable text of a CTC decoder?

CTC (Graves et al. 2006) reads one class a frame, merges repeats and drops the *blank*; the
probability of a text is the sum over its alignments. Class t is in no most probable text, at any
number of frames and without a language model, if at every feature vector at least `RIVALS` classes
other than the blank score at least as high as t (docs/texts.md has the proof). So the question is
that of an expert (experts.py): can t be among the best `RIVALS` where the blank is no rival?

Removing the blank and any two classes must leave weights that rule t out. Random parts find such
weights for most classes at once: the rivals are dealt into parts, and what a scan of the layer
without two of them proves holds whichever members of those two are removed. Finer parts follow for
what is left (`ROUNDS`), then questions about one class at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from softgeom.arrays import Floats, Ints
from softgeom.asking.ask import BOX
from softgeom.asking.candidates import about, above
from softgeom.asking.experts import MOST_QUESTIONS, Chosen, OpenError, Router, Search
from softgeom.certifying.checker import Checker
from softgeom.certifying.kernel import hitting_set
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
from softgeom.scanner import scan

RIVALS = 3  # other than the blank: both neighbours of t in a text, and one to take its place
ROUNDS = (3, 5)  # parts that the rivals are dealt into


def ask_texts(
    layer: SoftmaxLayer,
    classes: Sequence[int | str] | None = None,
    *,
    blank: int | str = 0,
    features: FeatureSet = BOX,
    seed: int = 0,
    n_jobs: int = 1,
    most: int = MOST_QUESTIONS,
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
        Of the parts; workers of the scans.
    most
        Questions about one class before it is left undecided.

    Raises
    ------
    ValueError
        If a class does not exist or is the blank.
    """
    names = Names(layer)
    blank = names.find(blank, "the blank")
    if classes is None:
        found = scan(layer, features=features, seed=seed, n_jobs=n_jobs)
        asked = [f.index for f in found.findings if not isinstance(f.evidence, Witness)]
        asked = [t for t in asked if t != blank]
    else:
        asked = sorted(names.find_all(classes, "classes"))
    if blank in asked:
        raise ValueError(f"class {blank} is the blank, which is in no text: leave it out.")
    deal = _Deal(layer, blank, features, {t: [] for t in asked})
    rng = np.random.default_rng(seed)
    for parts in ROUNDS if layer.classes > 2 + RIVALS else ():
        deal.play(np.array_split(rng.permutation(deal.rivals), parts), seed=seed, n_jobs=n_jobs)
    return Router(layer, features, [deal.decided(t, most) for t in asked], blank)


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

    def __post_init__(self) -> None:
        self.rivals = np.delete(np.arange(self.layer.classes), self.blank)
        self.checker = Checker(self.layer, self.features)

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
                free = _meet(search)
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
        rivals = ids[evidence.rivals]
        pairs = Comparisons(np.full(len(rivals), t), rivals, evidence.weights)
        order = Order([[t], sorted(rivals.tolist())])
        answer = Answer(order, pairs, "", 0, 0.0)
        self.blocking[t].append(about(self.checker, answer, order))

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


def _meet(search: Search) -> Answer | None:
    """A point at which the two that matter most may be ahead; None when no two meet all sets."""
    lightest = 1.0  # share of the other members that may be ahead, too
    while search.left > 0:
        found = _heaviest_pair(search.blocking)
        if found is None:
            return None
        pair, members = found
        # what blocks t without most of the members meets few of the other sets
        known, spared = len(search.blocking), members[: int(lightest * len(members))]
        answer = search.ask(pair | set(spared)) if spared else None
        lightest = min(1.0, 1.5 * lightest) if len(search.blocking) > known else lightest / 2
        if answer is None and len(search.blocking) == known:
            answer = search.ask(pair)
        if answer is not None:
            return answer
    raise OpenError


def _heaviest_pair(blocking: Sequence[Answer]) -> tuple[set[int], list[int]] | None:
    """Of the pairs that meet all blocking sets the one with most weight in them, and all members,
    the lightest first; None where no pair meets all.
    """
    pairs = [answer.evidence for answer in blocking]
    each = [(e.below, e.weights.astype(float)) for e in pairs if isinstance(e, Comparisons)]
    if not each:
        return set(), []
    members, place = np.unique(np.concatenate([below for below, _ in each]), return_inverse=True)
    shares = np.zeros((len(each), len(members)))
    row = np.repeat(np.arange(len(each)), [len(below) for below, _ in each])
    shares[row, place] = np.concatenate([weights / weights.sum() for _, weights in each])
    meets, total = shares > 0, shares.sum(axis=0)
    best, pair = -1.0, None
    for a in np.flatnonzero(meets[meets.sum(axis=1).argmin()]).tolist():
        others = np.flatnonzero(meets[~meets[:, a]].all(axis=0))
        if len(others) and total[a] + total[others].max() > best:
            b = others[total[others].argmax()]
            best, pair = total[a] + total[b], {int(members[a]), int(members[b])}
    if pair is None:
        return None
    return pair, members[np.argsort(total)].tolist()


def _exclude(blocking: Sequence[Answer]) -> bool:
    """Whether no `RIVALS` - 1 classes meet all blocking sets."""
    try:
        sets = [set(answer.order.blocks[1]) for answer in blocking]
        return bool(sets) and hitting_set(sets, RIVALS - 1) is None
    except EvidenceError:  # too many ways to try
        return False
