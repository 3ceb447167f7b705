"""``softgeom.scan``: which outputs of a model can never be the answer?"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import numpy as np
import pandas as pd

from softgeom import scanner
from softgeom.asking import Answers, ask_labels
from softgeom.card import label_card, sentences
from softgeom.certifying.folder import CARD
from softgeom.certifying.verdict import BlockingClasses
from softgeom.checkpoints import Head
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.options import (
    LoadOptions,
    ScanOptions,
    SetOptions,
    WorkOptions,
    class_numbers,
    facts,
    question,
    refuse_threshold,
    spelled_out,
    split,
    wider_sets,
)
from softgeom.readout import Rule
from softgeom.results import folder_of_answers, scan_into, write_answers
from softgeom.scan_result import Scan
from softgeom.widening import up_to, widen
from softgeom.writing import alone, write_text

logger = logging.getLogger("softgeom")

# of a label by itself these say nothing
_MEANINGLESS = ("wider", "verdicts_only", "without", "checkpoint", "fail_on")

# numbers alone: their largest score is the answer, unless a rule says otherwise
Matrix = np.ndarray | pd.DataFrame | SoftmaxLayer | Sequence[Sequence[float]] | tuple[Any, Any]


class _Asked(LoadOptions, SetOptions, WorkOptions, total=False):
    """All options of `scan` but the rule, which decides what comes out."""

    wider: bool
    out: str | Path | None
    checkpoint: str | Path | None
    verdicts_only: bool
    without: Collection[str]
    progress: bool


@overload
def scan(
    model: Matrix,
    classes: Any = None,
    *,
    rule: Literal["argmax"] | None = None,
    **options: Unpack[_Asked],
) -> Scan: ...
@overload
def scan(
    model: Any, classes: Any = None, *, rule: Literal["argmax"], **options: Unpack[_Asked]
) -> Scan: ...
@overload
def scan(
    model: Any, classes: Any = None, *, rule: Literal["threshold"], **options: Unpack[_Asked]
) -> Answers: ...
@overload
def scan(
    model: Any, classes: Any = None, *, rule: Rule | None = None, **options: Unpack[_Asked]
) -> Scan | Answers: ...
@spelled_out(ScanOptions)
def scan(
    model: Any,
    classes: Any = None,
    *,
    wider: bool = False,
    out: str | Path | None = None,
    checkpoint: str | Path | None = None,
    verdicts_only: bool = False,
    without: Collection[str] = (),
    progress: bool = False,
    **options: Unpack[ScanOptions],
) -> Scan | Answers:
    """Which outputs can never be the answer, for anything that has a softmax layer.

    A model that decides each label by itself (sigmoids) is asked label by label whether its score
    can exceed 0: the result is `Answers`, as of ``softgeom.ask``. ``rule="argmax"`` asks about the
    largest score all the same.

    Parameters
    ----------
    model : path, hub id, released model, or an object in memory
        See `softgeom.load`; also what that returns.
    classes : integers or tokens, optional
        Which to decide; default all. All others stay rivals.
    features : "box", "auto", "norm", "ball", "unbounded", or a feature set
        Where the layer's inputs may lie; "auto" takes what the step before the layer allows.
    bound, low : float, optional
        Of the box (default 100 and its negative), or radius of the ball.
    after : str, optional
        The step before the layer, where the model does not show it, such as "relu".
    wider : bool
        Ask whether unargmaxable classes are so for any features, also where there are more than
        1,000 of them, which takes several times as long as their scan.
    out : path, optional
        Folder for verdicts, evidence, summary and card, as ``softgeom scan --out`` writes them.
    weight, bias, tokens, revision, without_bias, blank
        As for `softgeom.load`.
    seed, block, n_jobs, backend, address, checkpoint, verdicts_only, without, progress
        As for `softgeom.scanner.scan`.

    Raises
    ------
    ValueError
        When the model, a class or a feature set cannot be used as asked.

    Examples
    --------
    A class in the middle of the others can never win:

    >>> import softgeom as sg
    >>> found = sg.scan([[1, 0], [-1, 1], [-1, -1], [0, 0]])
    >>> found[3].verdict, found.counts["unargmaxable"]
    ('unargmaxable', 1)
    """
    work, given = split(options, WorkOptions)
    head, where, why = question(model, **given)
    chosen = class_numbers(head.layer, classes)
    name = str(model) if isinstance(model, str | os.PathLike) else head.source.name
    if head.readout.rule == "threshold":
        said = {"wider": wider, "verdicts_only": verdicts_only, **work}
        refuse_label_options(head, said | {"without": without, "checkpoint": checkpoint})
        how: Any = {"why": why, "out": out, "progress": progress}
        return scan_labels(name, head, where, chosen, **how, n_jobs=work.get("n_jobs", 1))
    how = {"wider": wider, "verdicts_only": verdicts_only, "without": without, "why": why, **work}

    def decide(blocks: str | Path | None) -> Scan:
        kept = blocks if checkpoint is None else checkpoint
        return decided(head, where, chosen, checkpoint=kept, progress=progress, **how)

    if out is None:
        return decide(None)
    return scan_into(out, head, name, why, decide, seed=work.get("seed", 0))[0]


def decided(
    head: Head,
    features: FeatureSet,
    classes: Any,
    *,
    wider: bool,
    why: str | None = None,
    verdicts_only: bool = False,
    without: Collection[str] = (),
    checkpoint: str | Path | None = None,
    progress: bool = False,
    **work: Unpack[WorkOptions],
) -> Scan:
    """The scan, and what holds over wider sets, or up to which bound."""
    how: Any = {"verdicts_only": verdicts_only, "without": without, "progress": progress}
    found = scanner.scan(
        head.layer, classes, features=features, checkpoint=checkpoint, **how, **work
    )
    found = replace(found, head=facts(head, features, why))
    if not any(isinstance(f.evidence, BlockingClasses) for f in found.findings):
        return found
    with side_question("over which further sets the verdicts hold"):
        found = widen(found, wider_sets(head), every=wider, **work)
    with side_question("up to which bound the verdicts hold"):
        found = up_to(found, every=wider, **work)
    return found


@contextmanager
def side_question(what: str) -> Iterator[None]:
    """A fault in what is asked besides, too little memory among them, leaves a finished scan as it
    is.
    """
    try:
        yield
    except Exception as fault:
        text = f"{type(fault).__name__}: {fault}"
        logger.warning("%s could not be asked (%s); the scan itself is whole", what, text)


def refuse_label_options(head: Head, given: dict[str, Any]) -> None:
    """ValueError at the first option that says nothing about a label by itself."""
    for name in _MEANINGLESS:
        if given.get(name):
            refuse_threshold(head, f"--{name.replace('_', '-')} has no meaning")


def scan_labels(
    model: str,
    head: Head,
    features: FeatureSet,
    classes: Any,
    *,
    why: str | None = None,
    out: str | Path | None = None,
    n_jobs: int = 1,
    progress: bool = False,
) -> Answers:
    """For each label whether its score can exceed 0, checked, and written where that is asked."""
    labels = None if classes is None else [int(t) for t in classes]
    place = None if out is None else folder_of_answers(out)
    with nullcontext() if place is None else alone(place):
        how: Any = {"features": features, "n_jobs": n_jobs, "progress": progress}
        found = replace(ask_labels(head.layer, labels, **how), head=facts(head, features, why))
        found.verify()
        if place is not None:
            write_answers(place, found)
            write_text(place / CARD, _label_page(model, head, found), "backslashreplace")
    return found


def count_labels(found: Answers) -> dict[str, int]:
    """How many labels can be on, are never on, or are undecided."""
    counts = found.counts
    never = {"never on": counts["impossible"], "undecided": counts["undecided"]}
    return {"can be on": counts["possible"], **never}


def never_on(found: Answers) -> list[int]:
    """The labels whose score is at most 0 everywhere."""
    return [a.order.blocks[0][0] for a in found.answers if a.verdict == "impossible"]


def _label_page(model: str, head: Head, found: Answers) -> str:
    size = f"{head.layer.classes:,} labels over {head.layer.dimension} features"
    facts = sentences([size, found.features.describe(), *head.notes, head.behind])
    counts, never = count_labels(found), never_on(found)
    return label_card(head.layer, counts, never, Path(model).name, facts)
