"""``softgeom.coverage``: which characters of a text can a model never write?

OUT/coverage.csv   one row per character; the proofs beside it are those of `softgeom scan` and
                   `softgeom ceiling`, which `softgeom verify OUT MODEL` checks
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd

from softgeom import scanner
from softgeom.bounding import ceilings
from softgeom.ceiling import Ceilings
from softgeom.characters import Wanted, look_up, look_up_tokens, points
from softgeom.checkpoints import Head
from softgeom.options import (
    ScanOptions,
    WorkerOptions,
    WorkOptions,
    question,
    refuse_threshold,
    spelled_out,
    split,
)
from softgeom.results import scan_into
from softgeom.scan_result import Scan
from softgeom.verdict_table import escape_token, up
from softgeom.writing import write_text

COVERAGE = "coverage.csv"
FINE, CAPPED, OPEN = "fine", "capped", "undecided"
TIED, NEVER, MISSING = "tied", "can never win", "missing from the list"
STATUSES = (FINE, CAPPED, OPEN, TIED, NEVER, MISSING)  # the best first
_OF_VERDICT = {"argmaxable": FINE, "tied": TIED, "unargmaxable": NEVER, "undecided": OPEN}
_COLUMNS = ("character", "code points", "count", "status", "classes", "form", "ceiling")


@dataclass(frozen=True)
class Character:
    """One character of the text, or one class that was asked about: how often it stands there, its
    status, the classes that write it, the normal form under which they do ("" as it is), and the
    proven ceiling of its probability, where that was asked.
    """

    text: str
    count: int
    status: str
    classes: tuple[int, ...] = ()
    form: str = ""
    ceiling: float | None = None


@dataclass(frozen=True, eq=False)
class Coverage:
    """The characters of a text in order of appearance; ``passed_over`` counts what is none,
    ``scan`` and ``ceilings`` hold the proofs.
    """

    characters: tuple[Character, ...]
    passed_over: dict[str, int]
    scan: Scan
    below: float | None = None
    ceilings: Ceilings | None = None

    def __repr__(self) -> str:
        counted = ", ".join(f"{count:,} {status}" for status, count in self.counts.items() if count)
        return f"Coverage({len(self.characters):,} different characters: {counted})"

    def __getitem__(self, text: str) -> Character:
        """What is known about a character of the text, or a token that was asked about."""
        for each in self.characters:
            if each.text == text:
                return each
        raise KeyError(f"the text has no {text!r}")

    @property
    def counts(self) -> dict[str, int]:
        """How many different characters have each status, the worst first."""
        found = Counter(each.status for each in self.characters)
        return {status: found[status] for status in reversed(STATUSES)}

    @property
    def ok(self) -> bool:
        """Whether every character is fine."""
        return self.counts[FINE] == len(self.characters)

    @property
    def table(self) -> pd.DataFrame:
        """One row per character: the character, its code points, count, status, classes, form,
        ceiling.
        """
        rows = [(c.text, points(c.text), *list(vars(c).values())[1:]) for c in self.characters]
        return pd.DataFrame(rows, columns=list(_COLUMNS)).astype({"ceiling": float})

    def to_dict(self) -> dict[str, Any]:
        """What is found as plain JSON."""
        listed = [vars(c) | {"code_points": points(c.text)} for c in self.characters]
        facts = {"features": self.scan.features.describe(), "below": self.below}
        return {**facts, "counts": self.counts, "passed_over": self.passed_over, "text": listed}

    def verify(self) -> bool:
        """Every proof again, without a solver; EvidenceError at the first that does not hold."""
        return self.scan.verify() and (self.ceilings is None or self.ceilings.verify())


@spelled_out(ScanOptions)
def coverage(
    model: Any,
    text: str | Path | Iterable[str | int],
    *,
    below: float | None = None,
    out: str | Path | None = None,
    progress: bool = False,
    **options: Unpack[ScanOptions],
) -> Coverage:
    """Which characters of a text can a model never write?

    A character is *missing from the list* of the model, it *can never win*, it is *tied* with an
    equal row, *undecided*, *capped*: its probability is always below ``below``, or *fine*.

    Parameters
    ----------
    model : anything that `softgeom.load` takes
        With a list of characters (``tokens=`` where it has none of its own).
    text : str, path of a UTF-8 file, or list of tokens and class numbers
        A list is asked about as it is: for vocabularies of pieces of words, what the model's own
        tokenizer makes of the text.
    below : float, optional
        A probability that each character should be able to reach.
    out : path, optional
        Folder for ``coverage.csv`` and the proofs, as `softgeom.scan` and `softgeom.ceilings` write
        them.
    features, bound, low, after, weight, bias, tokens, revision, without_bias, blank, rule
        As for `softgeom.scan`.
    seed, block, n_jobs, backend, address, progress
        As for `softgeom.scan`.

    Raises
    ------
    ValueError
        When the model has no names or pieces of words for its classes, the text is empty or not
        UTF-8, or an option cannot be used as asked.

    Examples
    --------
    >>> import softgeom as sg
    >>> W = [[1, 0], [-1, 1], [-1, -1], [0, 0]]
    >>> found = sg.coverage((W, None), "a cab, d", tokens=["a", "b", "c", "d"])
    >>> found["d"].status, found[","].status
    ('can never win', 'missing from the list')
    """
    if below is not None and not 0 < below <= 1:
        raise ValueError(f"--below {below:g}: a probability lies above 0 and is at most 1.")
    work, asked = split(options, WorkOptions)
    head, features, why = question(model, **asked)
    refuse_threshold(head, "no character is the largest score")
    wanted, passed_over = _looked_up(head, text)
    chosen = np.array(sorted({t for each in wanted for part in each.parts for t in part}), np.intp)

    def decide(blocks: Path | None) -> Scan:
        how: Any = {"features": features, "checkpoint": blocks, "progress": progress}
        return scanner.scan(head.layer, chosen, **how, **work)

    if out is None:
        scan = decide(None)
    else:
        name = str(model) if isinstance(model, str | Path) else head.source.name
        scan = scan_into(out, head, name, why, decide, seed=work.get("seed", 0))[0]
    caps = None
    able = [f.index for f in scan.findings if f.verdict == "argmaxable"]
    if below is not None and able:
        how: Any = {"features": features, "out": out, "progress": progress}
        caps = ceilings(head, able, **how, **split(work, WorkerOptions)[0])
    found = Coverage(tuple(_judged(wanted, scan, caps, below)), passed_over, scan, below, caps)
    if out is not None:
        write_text(Path(out) / COVERAGE, _csv(found))
    return found


def _looked_up(head: Head, text: Any) -> tuple[list[Wanted], dict[str, int]]:
    if isinstance(text, Path):
        try:
            text = text.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            at = f"byte {error.start}"
            raise ValueError(f"{text} is not a text in UTF-8 ({at}): convert it.") from None
    if isinstance(text, str):
        return look_up(head.layer, text)
    return look_up_tokens(head.layer, text), {}


def _judged(
    wanted: Iterable[Wanted], scan: Scan, caps: Ceilings | None, below: float | None
) -> Iterator[Character]:
    place = {} if caps is None else {int(t): n for n, t in enumerate(caps.classes)}

    def judge(t: int) -> tuple[int, float | None]:
        """The place of a class's status among all, and its ceiling."""
        status, ceiling = _OF_VERDICT[scan[t].verdict], None
        if caps is not None and below is not None and t in place:
            ceiling, reached = float(caps.ceiling[place[t]]), float(caps.reached[place[t]])
            status = CAPPED if ceiling < below else FINE if reached >= below else OPEN
        return STATUSES.index(status), ceiling

    for each in wanted:
        # of several classes with one name the best decides, of several parts the worst
        parts = [min(map(judge, part), key=lambda found: found[0]) for part in each.parts]
        missing = (STATUSES.index(MISSING), None)
        worst, ceiling = max(parts, key=lambda found: found[0], default=missing)
        classes = tuple(t for part in each.parts for t in part)
        yield Character(each.text, each.count, STATUSES[worst], classes, each.form, ceiling)


def _csv(found: Coverage) -> str:
    with io.StringIO(newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for c in found.characters:
            ceiling = "" if c.ceiling is None else up(c.ceiling)
            shown = (escape_token(c.text), points(c.text), c.count, c.status)
            writer.writerow([*shown, " ".join(map(str, c.classes)), c.form, ceiling])
        return text.getvalue()
