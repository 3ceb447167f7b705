"""A notebook as a page of the site: figures with caption and alternative text, long code folded,
provenance at its end; made from an executed notebook, or from the committed one.
"""

from __future__ import annotations

import ast
import json
from typing import Any

from compendium import notebooks, paths
from compendium.pages import registers
from compendium.runs import NotebookRun

_LONG = 4  # line breaks of code that a reader of the text still sees unfolded


def page(run: NotebookRun, executed: str = "") -> dict[str, Any]:
    """The page of a notebook as it was executed in a profile, or without outputs as committed."""
    folder = paths.executed_dir(executed) if executed else paths.notebook(run.name).parent
    notebook = json.loads((folder / f"{run.name}.ipynb").read_text(encoding="utf-8"))
    cells = (with_drawn_figures if executed else with_recorded_figures)(notebook["cells"], run)
    told = f"---\n**Provenance.** {registers.provenance(run)} {registers.evidence(run, '../')}."
    return notebook | {"cells": [*read_on(cells), markdown_cell("provenance", told)]}


def with_drawn_figures(cells: list[dict[str, Any]], run: NotebookRun) -> list[dict[str, Any]]:
    """The recorded figures, which name their data, in place of the pictures that the cells showed
    while they ran, in the same order.
    """
    result, waiting = [], list(run.record["figures"])
    shown = sum("image/png" in o.get("data", {}) for c in cells for o in c.get("outputs", []))
    if shown != len(waiting):
        which = f"executed/{run.profile}/{run.name}.ipynb and its record have not the same figures"
        raise ValueError(f"{which}: run `make {run.name}` again")
    for cell in cells:
        result.append(cell)
        outputs = cell.get("outputs", [])
        for output in [output for output in outputs if "image/png" in output.get("data", {})]:
            outputs.remove(output)
            result.append(_figure(run, waiting.pop(0)))
    return result


def with_recorded_figures(cells: list[dict[str, Any]], run: NotebookRun) -> list[dict[str, Any]]:
    """Each recorded figure below the cell that records it; those of computed names at the end."""
    result, left = [], dict.fromkeys(run.record["figures"])
    for cell in cells:
        result.append(cell)
        code = "".join(cell["source"]) if cell["cell_type"] == "code" else ""
        for _, key, _ in notebooks.calls(ast.parse(code), "figure"):
            if key is not None and key in left:
                del left[key]
                result.append(_figure(run, key))
    return result + [_figure(run, key) for key in left]


def read_on(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For readers: long code is folded, and of the parameters only those that ran are shown."""
    tags = [cell["metadata"].get("tags", []) for cell in cells]
    injected = any("injected-parameters" in found for found in tags)
    kept = []
    for cell, found in zip(cells, tags, strict=True):
        if "parameters" in found and injected:
            continue
        if cell["cell_type"] == "code" and "".join(cell["source"]).count("\n") >= _LONG:
            cell["metadata"]["tags"] = [*found, "hide-input"]
        kept.append(cell)
    return kept


def markdown_cell(name: str, text: str) -> dict[str, Any]:
    """A cell of prose."""
    name = name[:64].replace("_", "-")
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": text}


def _figure(run: NotebookRun, key: str) -> dict[str, Any]:
    figure = run.record["figures"][key]
    alt = " ".join(figure["alt"].split())
    # a click opens it at full size
    options = f":alt: {alt}\n:target: ../{registers.image(run, key)}"
    return markdown_cell(
        f"figure-{key}",
        f"```{{figure}} ../{run.figure(key)}\n{options}\n\n{figure['caption']}\n```",
    )
