"""What a page, a table or a record must keep to by itself, whatever the others say: sums, texts as
recorded, signs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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
_FALL = re.compile(r"\b(?:lowers|reduces|falls|shrinks|drops)(?: \w+){0,2}(?: by)?\s*$")


def faults(runs: Iterable[NotebookRun]) -> list[str]:
    """What does not keep to it, one sentence each."""
    known = list(runs)
    return [*sums(), *texts(known), *signs(known)]


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
