"""A page for each numbered notebook, `docs/notebooks/NAME.md`: its prose with the committed figures,
tables, verdicts and conclusion, so that results are read without running anything.

Code stands in the notebook; the site folds it in below the prose that it belongs to.
"""

import ast
import posixpath
import re
from collections.abc import Iterable

import pandas as pd

from compendium import findings, markdown, notebooks, paths
from compendium.pages import gallery
from compendium.runs import NotebookRun, all_committed

FOLDER = "docs/notebooks"
_UP = "../../"  # from a page to the top of the repository
_LINK = re.compile(r"(\[[^\]]*\]\()(?![a-z]+:|[#/])([^)#\s]+)")  # up to the address, the address
_CODE = ("<details><summary>Code</summary>\n\n```python\n", "\n```\n\n</details>")
_KINDS = ("figure", "table", "claim", "conclude")  # calls of the book that leave something to show


def pages() -> dict[str, str]:
    """Every page: its path in the repository and its text."""
    shown = all_committed()
    made = {f"{FOLDER}/{run.name}.md": page(run) for run in shown}
    lines = ["| notebook | profile | verdicts |", "| --- | --- | --- |"]
    found, _ = findings.of(shown)
    for run in shown:
        verdicts = [f.verdict for f in found if f.claim.notebook == run.name]
        counts = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
        title = markdown.plain(gallery.title_of(run.name))
        lines.append(f"| [{title}]({run.name}.md) | {run.profile} | {counts} |")
    told = "Each page shows the committed results of one notebook; nothing needs to be run."
    made[f"{FOLDER}/README.md"] = (
        "\n\n".join(["# Results by notebook", told, "\n".join(lines)]) + "\n"
    )
    return made


def page(run: NotebookRun, *, code: bool = False) -> str:
    """The page of one run; with `code`, each cell's program is folded in."""
    results = _results(run)
    cells = notebooks.in_order(paths.notebook(run.name))
    calls = [_calls(source) if kind == "code" else [] for kind, source in cells]
    named = {key for cell in calls for call in cell for key in _fitting(call, results)}
    parts = list[str]()
    for number, (kind, source) in enumerate(cells):
        if kind == "markdown":
            parts.append(_moved(source))
            parts += [] if number else [_opening(run)]
        elif code:
            parts.append(_folded(source))
        for call in calls[number]:
            # a call whose name is computed elsewhere makes what no other call makes
            other = [key for key in results if key not in named]
            for key in _fitting(call, results) or _fitting((call[0], ".*"), other):
                parts.append(results.pop(key))
    text = "\n\n".join([*parts, *results.values(), *_values(run)]) + "\n"
    return text.replace(f"{_CODE[1]}\n\n{_CODE[0]}", "\n\n\n")  # cells that follow each other


def _opening(run: NotebookRun) -> str:
    """Profile, data and where the code is, in one line."""
    place, params = f"notebooks/{run.name}.ipynb", f"notebooks/params/{run.name}.yaml"
    aside = f" {run.aside.capitalize()}." if run.aside else ""
    links = f"[Notebook]({_UP}{place}) · [parameters]({_UP}{params}) · [all results](README.md)"
    return f"*Profile {run.profile}. Data: {markdown.plain(run.sources)}.{aside}* {links}"


def _results(run: NotebookRun) -> dict[tuple[str, str], str]:
    """Markdown of everything that a run recorded, by kind and name."""
    made: dict[tuple[str, str], str] = {}
    for key, figure in run.record["figures"].items():
        caption = markdown.plain(figure["caption"])
        made["figure", key] = f"{gallery.picture(run, key, _UP)}\n\n*{caption}*"
    for key, caption in run.record["tables"].items():
        path = run.results / f"{key}.csv"
        link = f"[all as CSV]({_UP}{path.relative_to(paths.root()).as_posix()})"
        made["table", key] = markdown.captioned(pd.read_csv(path), caption or key, link)
    for found in findings.of([run])[0]:
        made["claim", found.claim.id] = markdown.claim(found.claim, found.judgement)
    if said := run.record.get("conclusion"):
        made["conclude", ""] = f"## What we see\n\n{said}"
    return made


def _calls(source: str) -> list[tuple[str, str]]:
    """The calls of a cell that leave something to show: kind, and a pattern of names."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    found = []
    for call in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
        kind = getattr(call.func, "attr", "")
        if kind in _KINDS and call.args:
            found.append((kind, "" if kind == "conclude" else _pattern(call.args[0])))
    return found


def _fitting(call: tuple[str, str], keys: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The keys of results that a call can have made."""
    return [key for key in keys if key[0] == call[0] and re.fullmatch(call[1], key[1])]


def _pattern(name: ast.expr) -> str:
    """A pattern of what a name in a call can be; of one that is computed elsewhere, nothing."""
    if isinstance(name, ast.JoinedStr):
        return "".join(map(_pattern, name.values))
    if isinstance(name, ast.FormattedValue):
        return ".+"
    return re.escape(str(name.value)) if isinstance(name, ast.Constant) else "(?!)"


def _folded(source: str) -> str:
    return f"{_CODE[0]}{source.rstrip()}{_CODE[1]}"


def _moved(prose: str) -> str:
    """Prose of a notebook, its links led from its page: to pages of notebooks, else to the file."""

    def address(found: re.Match[str]) -> str:
        target = posixpath.normpath(f"notebooks/{found[2]}")
        numbered = re.fullmatch(r"notebooks/(\d\w+)\.ipynb", target)
        return found[1] + (f"{numbered[1]}.md" if numbered else f"{_UP}{target}")

    return _LINK.sub(address, prose.strip())


def _values(run: NotebookRun) -> list[str]:
    """The recorded numbers, each with what it is and its interval."""
    rows = [
        f"| {markdown.plain(entry.get('about', key))} | {markdown.digits(entry.get('value'))} "
        f"| {_interval(entry)} |"
        for key, entry in run.record["values"].items()
    ]
    if not rows:
        return []
    head = "| number | value | interval |\n| --- | ---: | --- |"
    table = "\n".join([head, *rows])
    return [f"<details><summary>Recorded numbers</summary>\n\n{table}\n\n</details>"]


def _interval(entry: dict[str, object]) -> str:
    ends = [markdown.digits(entry[end]) for end in ("low", "high") if end in entry]
    return f"{ends[0]} to {ends[1]}" if len(ends) == 2 else ""
