"""The site's generated pages: the register of claims, what does not hold, the papers' numbers
beside ours, and the provenance of every output, from the runs that the site shows.

Figures (in `_images`) and tables (in `results`) are linked in HTML, since Markdown would copy each
for every link.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from compendium import check, claims, findings, paths
from compendium.claims import NOT_TESTABLE
from compendium.findings import Outcome
from compendium.pages import readme
from compendium.pages.entries import PENDING, entry, failing, plain, shortened, table_of_counts
from compendium.runs import NotebookRun


def claims_page(runs: Sequence[NotebookRun]) -> str:
    """Every claim as a line that unfolds, by paper; the page's script adds filters."""
    register = claims.load()
    found, faults = findings.of(runs)
    known = {finding.claim.id: finding for finding in found}
    links = {run.name: evidence(run) for run in runs}
    parts = ["# Register of claims\n", _READING, table_of_counts(found)]
    parts += ['\n<div id="claim-filters"></div>\n', *faults]
    for paper, title in register.titles.items():
        parts.append(f"## {paper}: {plain(title)}\n")
        for claim in (claim for claim in register.values() if claim.paper == paper):
            proof = links.get(claim.notebook, claim.notebook)
            parts.append(entry(claim, known.get(claim.id), register, evidence=proof) + "\n")
    return "\n".join(parts)


def corrections_page(runs: Sequence[NotebookRun]) -> str:
    """What a reader of the sources should know: shared causes, then what does not hold, by kind."""
    register = claims.load()
    found, _ = findings.of(runs)
    shared = findings.by_root(found, register)
    parts = ["# Corrections and negative results\n", "## Causes that several rows share\n"]
    for root, rows in shared.items():
        parts += [f"**{plain(register.roots[root])}**\n", *map(_line, rows), ""]
    for heading, rows in failing(found, shared).items():
        parts += [f"## {heading}\n", *map(_line, rows), ""]
    if rows := [f for f in found if f.claim.kind != "ours" and f.verdict == NOT_TESTABLE]:
        parts += ["## Not testable at this scale\n", *map(_line, rows), ""]
    return "\n".join(parts)


def comparisons_page(profile: str, runs: Sequence[NotebookRun]) -> str:
    """The papers' tables beside ours: differences in the open, equal numbers folded away."""
    parts = ["# The papers' numbers beside ours\n", _COMPARING]
    rows, links = check.compare(profile), {run.name: evidence(run) for run in runs}
    for specified in check.specification():
        chosen = [row for row in rows if row.entry["id"] == specified["id"]]
        verdicts = Counter(row.verdict for row in chosen).most_common()
        counts = ", ".join(f"{n} {verdict}" for verdict, n in verdicts)
        notebook = specified["ours"].partition("/")[0]  # the rows say how to make what it lacks
        parts += [f"## {specified['title']}\n"]
        parts += [f"{links.get(notebook, notebook)}. {len(chosen)} numbers: {counts}.\n"]
        odd = [row for row in chosen if row.verdict != "equal"]
        if table := [_beside(row) | {"reason": row.reason} for row in odd]:
            parts.append(readme.markdown(pd.DataFrame(table)) + "\n")
        if equal := [row for row in chosen if row.verdict == "equal"]:
            title, body = f"The {len(equal)} equal numbers", _table_of(equal, specified["keys"])
            parts.append(f"<details><summary>{title}</summary>\n\n{body}\n\n</details>\n")
    return "\n".join(parts)


def provenance_page(runs: Sequence[NotebookRun]) -> str:
    """Of every notebook: parameters, data, commit, and the files that it wrote."""
    parts = ["# Provenance of every figure and table\n"]
    for run in runs:
        shown = {
            f'<a href="{image(run, key)}">{run.name}-{key}.png</a>': value["caption"]
            for key, value in run.record["figures"].items()
        }
        for key, value in run.record["tables"].items():
            shown[f'<a href="{_results(run)}/{key}.csv">{key}.csv</a>'] = value
        notebook = f"[Notebook](notebooks/{run.name}.ipynb). {provenance(run)}\n"
        parts += [f"## {run.name}\n", notebook]
        if shown:
            table = pd.DataFrame(list(shown.items()), columns=["file", "what it shows"])
            parts += [readme.markdown(table), ""]
    return "\n".join(parts)


def provenance(run: NotebookRun) -> str:
    """One paragraph: profile, device, data, parameters, and, where this clone ran it, the commit."""
    path = paths.executed_dir(run.profile) / f"{run.name}.json"
    given = ", ".join(f"`{key}` = {value}" for key, value in run.record["parameters"].items())
    told = f"Profile `{run.profile}`, on {run.record['device']}"
    if path.is_file():
        execution = json.loads(path.read_text(encoding="utf-8"))
        told += f", commit `{execution['commit']}`, {execution['seconds']} s"
    return f"{told}. Data: {run.sources}. Parameters: {given or 'none'}."


def evidence(run: NotebookRun, up: str = "") -> str:
    """Links to a notebook, its figures and its record; `up` leads to the site's top folder."""
    links = [f"[{run.name}]({up}notebooks/{run.name}.ipynb)"]
    if figures := list(run.record["figures"]):
        numbered = (f'<a href="{up}{image(run, k)}">{n}</a>' for n, k in enumerate(figures, 1))
        links.append(f"figure{'s' * (len(figures) > 1)} {' '.join(numbered)}")
    links.append(f'<a href="{up}{_results(run)}/record.json">numbers</a>')
    return ", ".join(links)


def image(run: NotebookRun, key: str) -> str:
    """Where Sphinx puts a recorded figure that a notebook's page shows."""
    return f"_images/{run.name}-{key}.png"


def _results(run: NotebookRun) -> str:
    return run.results.relative_to(paths.root()).as_posix()


def _line(finding: Outcome) -> str:
    claim, says = finding.claim, plain(finding.judgement.says)
    link = f'<a href="claims.html#{claim.id}">{claim.paper}, {plain(claim.place)}</a>'
    return f"- {link} **{finding.verdict}**: {plain(shortened(claim.statement))} *{says}*"


def _beside(row: check.Comparison) -> dict[str, Any]:
    return {**row.where, "paper": row.paper, "ours": row.ours, "verdict": row.verdict}


def _table_of(rows: list[check.Comparison], keys: list[str]) -> str:
    """A grid, as papers print it, when two keys identify a number; else one row for each."""
    frame = pd.DataFrame([_beside(row) for row in rows])
    if len(keys) == 2 and not frame.duplicated(keys).any():
        grid = frame.pivot(index=keys[0], columns=keys[1], values="ours").reset_index()
        grid.columns = [f"{keys[0]} \\ {keys[1]}", *map(str, grid.columns[1:])]
        frame = grid.astype(object).map(lambda v: f"{v:.6g}" if isinstance(v, float) else v)
    return readme.markdown(frame)


_READING = f"""Each line unfolds to the statement in our words, what was found, the rule that
decides with its reason, and the notebook. Rows that share a cause count once in the table; what no
source states is our own question, and counts for or against nobody. A line that says "{PENDING}"
waits for its notebook.
"""
_COMPARING = """What `make check` compares. A difference is *explained* when its reason and its
range were written down beforehand; any other fails the check.
"""
