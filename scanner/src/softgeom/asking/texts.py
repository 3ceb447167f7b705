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
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.arrays import Floats, Ints
from softgeom.asking.ask import BOX
from softgeom.asking.candidates import above
from softgeom.asking.experts import MOST_QUESTIONS, Chosen, OpenError, Router, Search
from softgeom.asking.pairs import blocked, exclude, meet
from softgeom.blocks import block_path, finished
from softgeom.certifying.checker import Checker
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import Answer, BlockingClasses, Twin, Unknown, Witness
from softgeom.layer import FeatureSet, SoftmaxLayer, fingerprint
from softgeom.names import Names
from softgeom.parallel import run_blocks
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
    checkpoint: str | Path | None = None,
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
    checkpoint
        Folder for what is finished; a second call with the same layer and options resumes there.
    progress
        Print how far it is.

    Raises
    ------
    ValueError
        If a class does not exist or is the blank.
    """
    names = Names(layer)
    blank = names.find(blank, "the blank")
    # a worker may stand in another folder
    folder = None if checkpoint is None else Path(checkpoint).absolute()
    how: Any = {"seed": seed, "n_jobs": n_jobs, "checkpoint": folder, "progress": progress}
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
    options, key = f"in text {blank} {seed} {most}", fingerprint(layer)

    def file(t: int) -> Path | None:
        """Where the search for one class is kept; the others are what its parts depend on."""
        every = np.array([t, *asked])
        return folder and block_path(folder, key, options, features, every)

    jobs = [([t], deal.blocking[t], deal.freed.get(t), most, file(t)) for t in asked]
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
            open_ = np.array([t for t in self.blocking if not self.closed(t)], dtype=np.intp)
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
        if not self.closed(t):
            how = "meeting all blocking sets"
            search = Search(self.layer, t, RIVALS, self.features, most, self.blank)
            search.blocking += known
            try:
                free = meet(search)
            except OpenError:
                open_ = Answer(Order([[t]]), Unknown(np.inf, "too many questions"), how, 0, np.inf)
                return Chosen(t, RIVALS, [open_])
            if free is not None:
                return Chosen(t, RIVALS, [free])
            known = search.blocking
        for answer in list(known):
            fewer = [other for other in known if other is not answer]
            known = fewer if exclude(fewer) else known
        return Chosen(t, RIVALS, [replace(answer, method=how) for answer in known])

    def closed(self, t: int) -> bool:
        """Whether nothing is left to be sought for a class."""
        return t in self.freed or exclude(self.blocking[t])

    def _block(self, t: int, ids: Ints, evidence: BlockingClasses | Twin) -> None:
        if isinstance(evidence, Twin):
            evidence = BlockingClasses(np.array([evidence.twin]), np.ones(1))
        self.blocking[t].append(blocked(self.checker, t, ids[evidence.rivals], evidence.weights))

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
    deal: _Deal,
    classes: list[int],
    blocking: list[Answer],
    freed: Answer | None,
    most: int,
    file: Path | None,
) -> Chosen:
    """The verdict on the one class of a worker's job, from what the parts gave, or what a finished
    search left in its file.
    """
    (t,) = classes
    deal.blocking = {t: blocking}
    deal.freed = {} if freed is None else {t: freed}
    if file is None or deal.closed(t):
        return deal.decided(t, most)
    layer = SoftmaxLayer(deal.layer.W, deal.layer.b)  # names need not be in every file

    def read(path: Path) -> Chosen:
        found = Router.load(path, layer)
        (one,) = found.experts
        held = (found.features, found.blank, one.expert, one.k)
        if held != (deal.features, deal.blank, t, RIVALS):
            raise ValueError(f"{path} is about another question.")
        found.verify()
        return one

    def write(path: Path, found: Chosen) -> None:
        Router(layer, deal.features, [found], deal.blank).save(path)

    return finished(file, read, lambda: deal.decided(t, most), write)
