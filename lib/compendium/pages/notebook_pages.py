"""A notebook as a page of the site: the committed notebook, with the recorded figure, table or
verdict below each cell that makes it, long code folded, and where the results come from at the end.
"""

from __future__ import annotations

import ast
import json
from typing import Any

import pandas as pd

from compendium import claims, findings, notebooks, paths
from compendium.pages import entries, readme
from compendium.runs import NotebookRun, committed

_LONG = 4  # line breaks of code that a reader of the text still sees unfolded
_ROWS, _WIDE = 12, 60  # of a table that a page shows: rows, and characters of a cell
_MAKES = ("figure", "table", "claim")


def page(name: str) -> dict[str, Any]:
    """The notebook with its committed results; as it is where none are committed."""
    notebook = json.loads(paths.notebook(name).read_text(encoding="utf-8"))
    try:
        run = committed(name)
    except KeyError:
        return notebook
    cells = [_folded(cell) for cell in with_results(notebook["cells"], run)]
    return notebook | {"cells": [*cells, _markdown("provenance", _provenance(run))]}


def with_results(cells: list[dict[str, Any]], run: NotebookRun) -> list[dict[str, Any]]:
    """Each recorded result below the cell that makes it; those of computed names at the end."""
    shown, result = results(run), []
    for cell in cells:
        result.append(cell)
        code = "".join(cell["source"]) if cell["cell_type"] == "code" else ""
        for kind, key, _ in notebooks.calls(ast.parse(code), *_MAKES):
            if (text := shown.pop((kind, key), None)) is not None:
                result.append(_markdown(f"{kind}-{key}", text))
    return result + [_markdown(f"{kind}-{key}", text) for (kind, key), text in shown.items()]


def results(run: NotebookRun) -> dict[tuple[str, str | None], str]:
    """Markdown of everything that a run recorded, by kind and name."""
    record = run.record
    found: dict[tuple[str, str | None], str] = {}
    for key, figure in record["figures"].items():
        alt = " ".join(figure["alt"].split())
        found["figure", key] = (
            f"```{{figure}} ../{run.figure(key)}\n:alt: {alt}\n\n{figure['caption']}\n```"
        )
    for key, caption in record["tables"].items():
        found["table", key] = _table(run, key, caption)
    register = claims.load()
    for finding in findings.of([run])[0]:
        found["claim", finding.claim.id] = entries.entry(finding.claim, finding, register)
    return found


def _table(run: NotebookRun, key: str, caption: str) -> str:
    """Caption, link and first rows of a recorded table."""
    path = run.results / f"{key}.csv"
    frame = pd.read_csv(path)
    rows = frame.head(_ROWS).map(lambda v: v[:_WIDE] + "..." if len(str(v)) > _WIDE else v)
    link = f"[{key}.csv](../{path.relative_to(paths.root()).as_posix()})"
    count = f"the first {_ROWS} of " * (len(frame) > _ROWS) + f"{len(frame):,} rows"
    return f"*{caption or key}* ({count}, {link})\n\n{readme.markdown(rows)}"


def _folded(cell: dict[str, Any]) -> dict[str, Any]:
    if cell["cell_type"] == "code" and "".join(cell["source"]).count("\n") >= _LONG:
        cell["metadata"]["tags"] = [*cell["metadata"].get("tags", []), "hide-input"]
    return cell


def _provenance(run: NotebookRun) -> str:
    """One paragraph: profile, device, data and parameters."""
    given = ", ".join(f"`{key}` = {value}" for key, value in run.record["parameters"].items())
    aside = f" **{run.aside.capitalize()}.**" if run.aside else ""
    return (
        f"---\n**Provenance.** Profile `{run.profile}`, on {run.record['device']}. "
        f"Data: {run.sources}.{aside} Parameters: {given or 'none'}."
    )


def _markdown(name: str, text: str) -> dict[str, Any]:
    name = name[:64].replace("_", "-").replace(".", "-")
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": text}
