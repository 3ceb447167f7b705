"""``softgeom scan MODEL``: which outputs can this model never produce? And ``softgeom survey``.

    OUT/verdicts.csv     one row per class, a copy for people
    OUT/summary.json     counts, feature set, where the layer was found, fingerprint, versions
    OUT/evidence.safetensors  the proofs; ``softgeom verify OUT MODEL`` checks them anywhere
    OUT/card.html        one page to look at and to pass on

Finished blocks are kept in OUT/blocks, so that a scan that was stopped goes on where it was.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from softgeom import scanner
from softgeom.asking import Answers
from softgeom.checkpoints import Head
from softgeom.commands.boundary import DONE, TOO_MANY, UNDECIDED
from softgeom.layer import Ellipsoid, FeatureSet
from softgeom.names import Names
from softgeom.options import ScanOptions, SurveyOptions, WorkOptions, question, read_lines, split
from softgeom.results import folder_for, scan_into
from softgeom.scan_result import Scan
from softgeom.scanning import (
    count_labels,
    decided,
    never_on,
    refuse_label_options,
    scan_labels,
    side_question,
)
from softgeom.surveying import surveyed, table_of
from softgeom.verdict_table import escape_token, read_verdicts

_EXAMPLES = 20  # classes that are named on the terminal; the tables have them all
# layers of at most so many classes are scanned over the network's own set, too
_SMALL = 1000
_FAIL_ON = re.compile(r"(unargmaxable|tied|undecided)(?:=([0-9]{1,18}))?")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


def scan(
    model: str,
    *,
    classes: str | None = None,
    wider: bool = False,
    verdicts_only: bool = False,
    out: str | None = None,
    fail_on: str | None = None,
    expected: Path | None = None,
    json: bool = False,
    quiet: bool = False,
    **options: Unpack[ScanOptions],
) -> int:
    """Scan, check, write, print."""
    limit = _limit(fail_on, expected)
    excused = _excused(expected, limit)
    work, asked = split(options, WorkOptions)
    head, features, why = question(model, **asked)
    chosen = None if classes is None else parse_classes(classes, head.layer.classes)
    more: Any = {"wider": wider, "verdicts_only": verdicts_only}
    if of_labels := head.readout.rule == "threshold":
        refuse_label_options(head, more | {"fail_on": fail_on, **work})
    else:  # a folder that cannot be taken is refused before anything is printed
        folder_for(out, model, head.layer)
    started, box = time.perf_counter(), options.get("features", "box") == "box"
    if printed := not (quiet or json):
        _introduce(model, head, features, why, suggest=box)
    how: Any = {"why": why, "progress": not quiet}
    if of_labels:
        how |= {"out": out, "n_jobs": work.get("n_jobs", 1)}
        answers = scan_labels(model, head, features, chosen, **how)
        return _tell_labels(model, answers, started, out, json=json, printed=printed)

    def decide(blocks: Path) -> Scan:
        return decided(head, features, chosen, checkpoint=blocks, **more, **how, **work)

    seed = work.get("seed", 0)
    found, summary, folder = scan_into(out, head, model, why, decide, seed=seed)
    if json:
        print(dumps({**summary, "folder": str(folder)}))
    if printed:
        _print_scan(found, started, folder)
        if box and options.get("low") is None and options.get("after") is None:
            _print_smaller(head, chosen, options.get("bound"), work)
    return _judged(found, limit, excused)


def survey(models: Sequence[str], *, json: bool = False, **options: Unpack[SurveyOptions]) -> int:
    """Scan each model; one that cannot be read is a row that says why."""
    rows, worst = surveyed(models, progress=True, **options)
    if json:
        print(dumps(rows))
    else:
        table = table_of(rows).drop(columns="refused", errors="ignore")
        print(table.to_string(index=False, na_rep="-"))
    return worst


def _tell_labels(
    model: str, found: Answers, started: float, out: str | None, *, json: bool, printed: bool
) -> int:
    """Print what was found of a model that decides label by label; the exit code."""
    counts, never = count_labels(found), never_on(found)
    if json:
        facts = {"rule": "threshold", "counts": counts, "never_on": never}
        known = found.head and found.head.to_json()
        print(dumps({"model": model, **facts, "head": known, "folder": out}))
    if printed:
        _print_counts(counts)
        if never:
            print(f"labels never on: {_named([found.layer.token(t) for t in never])}")
        _print_end(counts, started, out)
    return UNDECIDED if counts["undecided"] else DONE


def _introduce(
    model: str, head: Head, features: FeatureSet, why: str | None, *, suggest: bool
) -> None:
    layer, described = head.layer, features.describe()
    bias = "no bias" if layer.b is None else "with bias"
    print(
        f"{escape_token(model)}: {layer.classes:,} classes, {layer.dimension} "
        f"features, {bias}; {described}"
    )
    for note in (*head.notes, head.behind, why):
        if note:
            print(f"  {note}")
    smaller, because = head.feature_set()
    if not why and suggest and smaller.describe() != described:
        print(f"  --features auto would use a smaller set: {because}")
    if layer.b is None and isinstance(features, Ellipsoid) and features.holds_a_ball:
        print(
            "  without a bias, size and gain of this normalisation change no verdict: "
            "--features unbounded decides the same in half the time"
        )


def _print_scan(found: Scan, started: float, folder: Path) -> None:
    _print_counts(found.counts)
    lost = [f.index for f in found.findings if f.evidence.verdict == "unargmaxable"]
    if lost:
        print(f"outputs that can never win: {_named([found.layer.token(t) for t in lost])}")
        for part in found.wider:
            print(f"  {len(part):,} of these {part.features.condition()}")
    _print_end(found.counts, started, str(folder))


def _print_counts(counts: dict[str, int]) -> None:
    for verdict, count in counts.items():
        print(f"{verdict:>13}: {count:,}")


def _print_end(counts: dict[str, int], started: float, folder: str | None) -> None:
    claimed = "every verdict but the undecided" if counts["undecided"] else "every verdict"
    written = f"; written to {folder}" if folder else ""
    seconds = time.perf_counter() - started
    print(f"{claimed} proven and re-checked in {seconds:.1f} s{written}")


def _print_smaller(head: Head, classes: Any, bound: float | None, work: Any) -> None:
    """How many outputs are lost where the step before the layer puts its features, beside the box
    that was scanned: two numbers about one model otherwise look like a contradiction.
    """
    if head.activation is None or head.layer.classes > _SMALL:
        return
    with side_question("how many can never win where the model's own features lie"):
        smaller, because = head.feature_set(bound)
        found = scanner.scan(head.layer, classes, features=smaller, **work)
        found.verify()
        lost = f"{found.counts['unargmaxable']:,} can never win {smaller.condition()}"
        print(f"{lost} ({because}); --features auto writes the proofs")


def _named(tokens: list[str]) -> str:
    shown = [escape_token(token) if token.strip() else repr(token) for token in tokens[:_EXAMPLES]]
    return " ".join(shown) + (" ..." if len(tokens) > _EXAMPLES else "")


def _limit(fail_on: str | None, expected: Path | None) -> tuple[str, int] | None:
    if fail_on is None:
        if expected is not None:
            raise ValueError("--expected lists what --fail-on does not count: pass --fail-on too.")
        return None
    match = _FAIL_ON.fullmatch(fail_on)
    if match is None:
        raise ValueError(
            f"--fail-on {fail_on!r}: write unargmaxable, tied or undecided, with =N "
            "where N are allowed."
        )
    return match[1], int(match[2] or 0)


def _excused(
    expected: Path | None, limit: tuple[str, int] | None
) -> tuple[Sequence[str], Counter[str]]:
    """What is expected to have the verdict: lines that name classes, and how many classes of each
    token had it in an earlier scan.
    """
    if expected is None or limit is None:
        return (), Counter()
    if expected.is_dir():
        table = read_verdicts(expected)
        return (), Counter(table["token"][table["verdict"] == limit[0]])
    return read_lines(expected, f"--expected {expected}", "class"), Counter()


def _judged(
    found: Scan, limit: tuple[str, int] | None, excused: tuple[Sequence[str], Counter[str]]
) -> int:
    """The exit code; above the limit a sentence that says so."""
    if limit is not None and (count := _counted(found, limit[0], *excused)) > limit[1]:
        over = f"{count} classes are {limit[0]} and not expected; {limit[1]} are allowed."
        print(f"softgeom: {over}", file=sys.stderr)
        return TOO_MANY
    return UNDECIDED if found.counts["undecided"] else DONE


def _counted(found: Scan, verdict: str, lines: Sequence[str], tokens: Counter[str]) -> int:
    lost = {f.index for f in found.findings if f.evidence.verdict == verdict}
    names = Names(found.layer)
    new = lost.difference(*(names.named(line) for line in lines))
    return (Counter(found.layer.token(t) for t in new) - tokens).total()


def parse_classes(text: str, classes: int) -> np.ndarray:
    """``0-3,17`` as [0, 1, 2, 3, 17]; ValueError when a part is not a number or no class."""
    chosen: set[int] = set()
    for part in text.replace(" ", "").split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(
                f"--classes {text!r}: {part!r} is neither a class number nor a range such as 0-99."
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < classes:
            raise ValueError(
                f"--classes {text!r}: {part!r} does not lie between 0 and {classes - 1}."
            )
        chosen |= set(range(first, last + 1))
    return np.array(sorted(chosen))
