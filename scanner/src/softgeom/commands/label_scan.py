"""A scan of a model that decides each label by itself, as sigmoids do: can its score exceed 0?

OUT/answers.safetensors, .csv   as of ``softgeom ask``; ``softgeom verify OUT MODEL`` checks them
OUT/card.html                   one page to look at
"""

from __future__ import annotations

import argparse
import json
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from softgeom.asking import Answers, ask_labels
from softgeom.card import label_card
from softgeom.certifying.folder import CARD
from softgeom.checkpoints import Head
from softgeom.commands import options as asked
from softgeom.commands.answers_folder import check_place, write_answers
from softgeom.commands.boundary import DONE, UNDECIDED
from softgeom.layer import FeatureSet
from softgeom.verdict_table import escape_token
from softgeom.writing import alone, write_text

_SHOWN = 20  # labels on the terminal; answers.csv has them all
_MEANINGLESS = ("exact", "wider", "verdicts_only", "without", "checkpoint", "fail_on", "device")


def refuse_options(head: Head, given: dict[str, Any]) -> None:
    """ValueError at the first option that says nothing about a label by itself."""
    for name in _MEANINGLESS:
        if given.get(name):
            asked.refuse_threshold(head, f"--{name.replace('_', '-')} has no meaning")


def scan_labels(
    model: str,
    head: Head,
    features: FeatureSet,
    classes: Any,
    *,
    why: str | None = None,
    out: str | None = None,
    n_jobs: int = 1,
    progress: bool = False,
) -> Answers:
    """For each label whether its score can exceed 0, checked, and written where that is asked."""
    labels = None if classes is None else [int(t) for t in classes]
    place = None if out is None else check_place(out)
    with nullcontext() if place is None else alone(place):
        how: Any = {"features": features, "n_jobs": n_jobs, "progress": progress}
        found = replace(
            ask_labels(head.layer, labels, **how), head=asked.facts(head, features, why)
        )
        found.verify()
        if place is not None:
            check_place(str(place))  # somebody may have just finished
            write_answers(place, found, with_layer=False)
            write_text(place / CARD, _page(model, head, found), "backslashreplace")
    return found


def run(
    options: argparse.Namespace, head: Head, features: FeatureSet, why: str | None, classes: Any
) -> int:
    """Ask, check, write, print."""
    started, model = time.perf_counter(), str(options.model)
    how: Any = {"why": why, "out": options.out, "n_jobs": options.jobs}
    found = scan_labels(model, head, features, classes, **how, progress=not options.quiet)
    counts, never = _counts(found), never_on(found)
    if options.json:
        about = {"model": model, "rule": "threshold", "counts": counts, "never_on": never}
        known = None if found.head is None else found.head.to_json()
        print(json.dumps({**about, "head": known, "folder": options.out}))
    elif not options.quiet:
        for verdict, count in counts.items():
            print(f"{verdict:>13}: {count:,}")
        if never:
            tokens = [escape_token(head.layer.token(t)) for t in never[:_SHOWN]]
            print(f"labels never on: {' '.join(tokens)}{' ...' if len(never) > _SHOWN else ''}")
        claimed = "every verdict but the undecided" if counts["undecided"] else "every verdict"
        written = f"; written to {options.out}" if options.out else ""
        seconds = time.perf_counter() - started
        print(f"{claimed} proven and re-checked in {seconds:.1f} s{written}")
    return UNDECIDED if counts["undecided"] else DONE


def never_on(found: Answers) -> list[int]:
    """The labels whose score is at most 0 everywhere."""
    return [a.order.blocks[0][0] for a in found.answers if a.verdict == "impossible"]


def _counts(found: Answers) -> dict[str, int]:
    counts = found.counts
    never = {"never on": counts["impossible"], "undecided": counts["undecided"]}
    return {"can be on": counts["possible"], **never}


def _page(model: str, head: Head, found: Answers) -> str:
    size = f"{head.layer.classes:,} labels over {head.layer.dimension} features"
    known = [size, found.features.describe(), *head.notes]
    known += [head.behind] if head.behind else []
    facts = [f"{line[:1].upper()}{line[1:]}." for line in known]
    return label_card(head.layer, _counts(found), never_on(found), Path(model).name, facts)
