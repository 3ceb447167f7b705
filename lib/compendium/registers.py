"""The report's generated pages: claims, corrections, the papers' numbers beside ours, and the provenance of every output.

Everything is read from the records of a profile. Each claim leads to its notebook, its figures and its numbers: a figure is a file of
the site's `_images`, a table or record one of its `results`. Those are linked in HTML, since Markdown would copy each for every link.
"""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from compendium import book, check, paths, readme

PAPERS = {
    "001": "Low-rank softmax and unargmaxable classes",
    "002": "Inner workings of transformers",
    "003": "Support tokens and margins",
    "004": "Clustering under hardmax",
}
_NEGATIVE = ("corrected", "not reproduced", "not testable here", "beyond the paper")


def claims_page(profile: str) -> str:
    """Every tested claim with its verdict, value, reason and evidence, by source document."""
    frame = book.load_table("90_summary", "claims", profile).fillna("")
    parts = [
        "# Register of claims\n",
        "Every claim of the four sources that a notebook tested. Each row leads to the notebook, to its figures, and to its numbers.\n",
    ]
    for paper, chosen in frame.groupby(frame["paper"].astype(str).str.zfill(3)):
        counts = ", ".join(f"{n} {verdict}" for verdict, n in chosen["verdict"].value_counts().items())
        rows = [
            {
                "where": f"**{row.source}**<br>{evidence(str(row.notebook), profile)}",
                "claim, and what was found": _sentences(str(row.statement), *_finding(row)),
                "verdict": f'<span class="verdict">{row.verdict}</span>',
            }
            for row in chosen.itertuples()
        ]
        parts += [
            f"## {paper}: {PAPERS.get(str(paper), '')}\n",
            f"{counts}.\n",
            readme.markdown(pd.DataFrame(rows)),
            "",
        ]
    return "\n".join(parts)


def corrections_page(profile: str) -> str:
    """What a reader of the papers should know: where they are corrected, not reproduced, out of reach, or extended."""
    frame = book.load_table("90_summary", "claims", profile).fillna("")
    parts = ["# Corrections and negative results\n"]
    for verdict in _NEGATIVE:
        chosen = frame[frame["verdict"] == verdict]
        if len(chosen):
            parts.append(f"## {verdict.capitalize()}\n")
        for row in chosen.itertuples():
            lines = [f"**{row.source}** · {evidence(str(row.notebook), profile)}", f"*Claim.* {row.statement}"]
            lines += [f"*Found.* {_sentences(*_finding(row))}"]
            parts.append("\\\n".join(lines) + "\n")
    return "\n".join(parts)


def comparisons_page(profile: str) -> str:
    """The papers' tables beside ours: differences in the open, equal numbers folded away."""
    parts = [
        "# The papers' numbers beside ours\n",
        "What `make check` compares. A difference is *explained* when its reason and its range were written down beforehand; any other fails the check.\n",
    ]
    rows = check.compare(profile)
    for entry in check.specification():
        chosen = [row for row in rows if row.id == entry["id"]]
        counts = ", ".join(f"{n} {v}" for v, n in pd.Series([row.verdict for row in chosen]).value_counts().items())
        notebook = entry["ours"].partition("/")[0]
        try:
            proof = evidence(notebook, profile)
        except FileNotFoundError:  # the rows then say how to make the numbers
            proof = notebook
        parts += [f"## {entry['title']}\n", f"{proof}. {len(chosen)} numbers: {counts}.\n"]
        if odd := [row for row in chosen if row.verdict != "equal"]:
            parts.append(readme.markdown(pd.DataFrame([_beside(row) | {"reason": row.reason} for row in odd])) + "\n")
        if equal := [row for row in chosen if row.verdict == "equal"]:
            parts.append(_folded(f"The {len(equal)} equal numbers", _table_of(equal, entry["keys"])))
    return "\n".join(parts)


def provenance_page(names: list[str], profile: str) -> str:
    """Of every notebook: parameters, data, commit, and the files that it wrote."""
    parts = ["# Provenance of every figure and table\n"]
    for name in names:
        recorded, folder = book.load_record(name, profile), _site_results(name, profile)
        rows = [
            {"file": f'<a href="{image(name, key)}">{name}-{key}.png</a>', "what it shows": value["caption"]}
            for key, value in recorded["figures"].items()
        ]
        rows += [
            {"file": f'<a href="{folder}/{key}.csv">{key}.csv</a>', "what it shows": value}
            for key, value in recorded["tables"].items()
        ]
        parts += [f"## {name}\n", f"[Notebook](notebooks/{name}.ipynb). {provenance(name, profile)}\n"]
        if rows:
            parts += [readme.markdown(pd.DataFrame(rows)), ""]
    return "\n".join(parts)


def provenance(name: str, profile: str) -> str:
    """One paragraph: profile, parameters, data, device, and the commit and seconds of the execution that is shown."""
    recorded = book.load_record(name, profile)
    path = paths.executed_dir(profile) / f"{name}.json"
    execution = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    sources = "; ".join(dict.fromkeys(str(book.Source(**source)) for source in recorded["sources"])) or "none"
    parameters = ", ".join(f"`{key}` = {value}" for key, value in recorded["parameters"].items()) or "none"
    run = f"commit `{execution.get('commit', 'unknown')}`, {execution.get('seconds', '?')} s on {recorded['device']}"
    return f"Profile `{profile}`; {run}. Data: {sources}. Parameters: {parameters}."


def evidence(name: str, profile: str, up: str = "") -> str:
    """Links to a notebook, each of its figures and its record; `up` leads from the page to the site's top folder."""
    figures = list(book.load_record(name, profile)["figures"])
    links = [f"[{name}]({up}notebooks/{name}.ipynb)"]
    if figures:
        numbered = (f'<a href="{up}{image(name, key)}">{number}</a>' for number, key in enumerate(figures, 1))
        links.append(f"figure{'s' * (len(figures) > 1)} {' '.join(numbered)}")
    links.append(f'<a href="{up}{_site_results(name, profile)}/record.json">numbers</a>')
    return ", ".join(links)


def image(name: str, key: str) -> str:
    """Where Sphinx puts a recorded figure that a notebook's page shows."""
    return f"_images/{name}-{key}.png"


def _site_results(name: str, profile: str) -> str:
    return book.find_results(name, profile).relative_to(paths.root()).as_posix()


def _finding(row: Any) -> list[str]:
    interval = f" ({_number(row.low)} to {_number(row.high)})" if "" not in (row.low, row.high) else ""
    return [str(row.reason), f"Value: {_number(row.value)}{interval}" if row.value != "" else ""]


def _number(value: Any) -> str:
    """Four digits of what is not whole; a column of values also holds words, and then its numbers are texts too."""
    try:
        number = float(value)
    except ValueError:
        return str(value)
    return str(value) if number.is_integer() and isinstance(value, str) else f"{number:.4g}"


def _sentences(*texts: str) -> str:
    """The texts as sentences of their own: a capital in front, a full stop behind."""
    return " ".join(text[0].upper() + text[1:].rstrip(".") + "." for text in texts if text)


def _beside(row: check.Comparison) -> dict[str, Any]:
    return {**row.where, "paper": row.paper, "ours": row.ours, "verdict": row.verdict}


def _table_of(rows: list[check.Comparison], keys: list[str]) -> str:
    """A grid, as papers print it, when two keys identify a number; else one row for each."""
    frame = pd.DataFrame([_beside(row) for row in rows])
    if len(keys) == 2 and not frame.duplicated(keys).any():
        grid = frame.pivot(index=keys[0], columns=keys[1], values="ours").reset_index()
        grid.columns = [f"{keys[0]} \\ {keys[1]}", *map(str, grid.columns[1:])]
        return readme.markdown(grid.astype(object).map(lambda v: f"{v:.6g}" if isinstance(v, float) else v))
    return readme.markdown(frame)


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>\n"
