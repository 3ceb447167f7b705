"""What a page, a table or a record must keep to by itself, whatever the others say: sums, texts as
recorded, signs, numbers that can be, rows that there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from compendium import codebase, paths
from compendium.runs import NotebookRun, csv_rows

# names of the parts, and of their sum where the table has it (the first that is there)
_PARTS = (
    (("argmaxable", "tied", "unargmaxable", "undecided"), ("asked", "classes")),
    (("reach_half", "never_half", "in_doubt"), ("classes",)),
    (("possible", "impossible", "undecided"), ("asked", "experts")),
    (("reach", "never", "in doubt"), ("bounded",)),
)
_VALUE = re.compile(r"<!-- value: *([^|>]*?) *(?:\|[^>]*)?-->(.*?)<!-- /value -->(%?)", re.DOTALL)
_PLACE = re.compile(r"\{\{([^}|:]+/[^}|:]+)(?:\|([^}]*))?\}\}(%?)")
_RISE = re.compile(r"\b(?:costs|raises|rises|grows|gains)(?: \w+){0,2}(?: by)?\s*$")
_SIZE = r"\d[\d,]*(?:\.\d+)?"
_SIGNED = rf"([-+\u2212]?{_SIZE})%?"
_LOSS = re.compile(rf"(?<![\w.%,])[-\u2212]({_SIZE})%")
_INTERVAL = re.compile(rf"(?<![\w.,]){_SIGNED}(?: nats| points)? \[{_SIGNED}, {_SIGNED}\]")
_PART = re.compile(
    r"(?<![\w.,^-])(?<!\bthe )(\d[\d,]*) of (?:its |the |all )?(\d[\d,]*)(?![\d.%])"
    r"(?: \((\d+)(\.\d+)?%\))?"
)
_VERDICT = "holds|fails|agree|contradicted|reproduced|not reproduced|found|not found|not testable"
_ROW = re.compile(rf"\b(00[1-4]-[a-z0-9](?:[\w.-]*\w)?)(?:[`)]* is|[`)]*:)?(?: \**({_VERDICT})\b)?")
_FALL = re.compile(r"\b(?:lowers|reduces|falls|shrinks|drops)(?: \w+){0,2}(?: by)?\s*$")


def faults(runs: Iterable[NotebookRun]) -> list[str]:
    """What does not keep to it, one sentence each."""
    known = list(runs)
    return [*sums(), *texts(known), *signs(known)]


def arithmetic(name: str, text: str) -> list[str]:
    """What a text says that no numbers can be: a change that takes away more than there is, as an
    interval of plain numbers may, a value outside its own interval, a part larger than its
    whole, a share that is not their quotient.
    """
    found = [
        f"{name} tells -{lost}%, which is more than there is"
        for lost in _LOSS.findall(text)
        if _plain(lost) > 100
    ]
    for match in _INTERVAL.finditer(text):
        value, low, high = map(_plain, match.groups())
        if not low <= value <= high:
            found.append(f"{name} tells {match[0]}, a value outside its interval")
    for match in _PART.finditer(text):
        part, whole = _plain(match[1]), _plain(match[2])
        if part > whole:
            found.append(f"{name} tells {match[0]}, a part larger than its whole")
        elif match[3]:
            share, digits = match[3] + (match[4] or ""), len(match[4] or ".") - 1
            if abs(100 * part / whole - float(share)) > 0.51 * 10.0**-digits:
                found.append(f"{name} tells {match[0]}, another share")
    return found


def rows(name: str, text: str, verdicts: Mapping[str, str]) -> list[str]:
    """Rows that a text names and the register lacks, or that it gives another verdict than they
    have (`verdicts`, empty where there is none).
    """
    found = []
    for id, said in _ROW.findall(text):
        if id not in verdicts:
            found.append(f"{name} names {id}, which is no row of the register")
        elif said and not verdicts[id].startswith(said):
            found.append(f"{name} says {said!r} of {id}, which is {verdicts[id]!r}")
    return found


def _plain(number: str) -> float:
    return float(number.replace(",", "").replace("\u2212", "-"))


def sums() -> list[str]:
    """Rows of committed tables whose parts do not add up."""
    found, top = [], paths.root()
    for path in sorted((top / "results").glob("*/**/*.csv")):
        table = csv_rows(path)
        columns = set(table[0]) if table else set()
        for parts, totals in _PARTS:
            total = next((name for name in totals if name in columns), None)
            if total is None or not columns.issuperset(parts):
                continue
            for n, row in enumerate(table, 1):
                cells = [row[name].replace(",", "") for name in (*parts, total)]
                if all(cells) and sum(map(float, cells[:-1])) != float(cells[-1]):
                    told = " + ".join(f"{name} {row[name]}" for name in parts)
                    where = path.relative_to(top).as_posix()
                    found.append(f"{where}, row {n}: {told} is not {total} {row[total]}")
    return found


def texts(runs: Iterable[NotebookRun]) -> list[str]:
    """Captions, alternative texts and notes that a notebook has otherwise than its run recorded."""
    found = []
    for run in runs:
        tree = codebase.parse(paths.notebook(run.name))
        for kind, key, given in codebase.calls(tree, "figure", "table", "value"):
            recorded = run.record[f"{kind}s"].get(key)
            for part in filter(given.__contains__, ("caption", "alt", "about")):
                text = codebase.text_of(given[part])
                told = recorded.get(part) if isinstance(recorded, dict) else recorded
                if None not in (text, told) and told != text:
                    found.append(
                        f"the {part} of {kind} {key} in {run.name} is not what profile "
                        f"{run.profile} recorded: run `make {run.name} PROFILE={run.profile}`"
                    )
    return found


def signs(runs: Iterable[NotebookRun]) -> list[str]:
    """Values on pages with a per cent sign too many or too few, or called a rise or fall amiss."""
    # the first run of a notebook is the one that pages show
    values: dict[str, dict[str, Any]] = {}
    for run in runs:
        for key, value in run.record["values"].items():
            values.setdefault(f"{run.name}/{key}", value)
    top, found = paths.root(), []
    story = top / "report" / "story" / "story.html"
    for page in (top / "README.md", *sorted((top / "docs").glob("*.md")), story):
        text = page.read_text(encoding="utf-8") if page.is_file() else ""
        for match in (_PLACE if page == story else _VALUE).finditer(text):
            what, told, sign = match.groups()
            value, before = values.get(what, {}).get("value"), text[: match.start()]
            if not isinstance(value, int | float):
                continue
            where = f"{page.relative_to(top).as_posix()}, {what}"
            if values[what].get("about", "").startswith("per cent") != bool(sign):
                found.append(f"{where}: a per cent sign {'too many' if sign else 'is missing'}")
            for said, wrong in ((_RISE, -1), (_FALL, 1)):
                words = said.search(before)
                if words and value * wrong > 0:
                    found.append(f"{where}: {words[0].strip()!r} of {told.strip()}")
    return found
