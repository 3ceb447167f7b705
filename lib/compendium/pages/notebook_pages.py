"""A notebook as a page of the site: figures with caption and alternative text, long code folded,
provenance at its end.

A page is made from an executed notebook, or, when nothing was executed here, from the notebook as
it is committed: its figures then stand below the cells that record them.
"""

from __future__ import annotations

import ast
import json
from typing import Any

from compendium import codebase, paths
from compendium.pages import registers
from compendium.runs import NotebookRun

_LONG = 4  # line breaks of code that a reader of the text still sees unfolded


def from_execution(run: NotebookRun, profile: str) -> dict[str, Any]:
    """The page of a notebook that was executed in a profile."""
    path = paths.executed_dir(profile) / f"{run.name}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return _page(notebook, with_drawn_figures(notebook["cells"], run), run)


def from_record(run: NotebookRun) -> dict[str, Any]:
    """The page of a notebook as it is committed, without outputs, with the figures of its committed
    run.
    """
    notebook = json.loads(paths.notebook(run.name).read_text(encoding="utf-8"))
    return _page(notebook, with_recorded_figures(notebook["cells"], run), run)


def with_drawn_figures(cells: list[dict[str, Any]], run: NotebookRun) -> list[dict[str, Any]]:
    """The recorded figures in place of the pictures that the cells showed while they ran.

    They are the same figures in the same order, but the recorded ones name their data and have a
    file of their own.
    """
    figures = run.record["figures"]
    if sum(_is_picture(output) for cell in cells for output in cell.get("outputs", [])) != len(
        figures
    ):
        raise ValueError(
            f"executed/{run.profile}/{run.name}.ipynb and its record have not the same "
            f"figures: run `make {run.name}` again"
        )
    result, waiting = [], iter(figures)
    for cell in cells:
        result.append(cell)
        for output in [output for output in cell.get("outputs", []) if _is_picture(output)]:
            cell["outputs"].remove(output)
            result.append(_figure(run, next(waiting)))
    return result


def with_recorded_figures(cells: list[dict[str, Any]], run: NotebookRun) -> list[dict[str, Any]]:
    """Each recorded figure below the cell that records it (`book.figure("name", ...)`); those of
    computed names at the end.
    """
    result, left = [], dict.fromkeys(run.record["figures"])
    for cell in cells:
        result.append(cell)
        code = "".join(cell["source"]) if cell["cell_type"] == "code" else ""
        for _, key, _ in codebase.calls(ast.parse(code), "figure"):
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
    return {
        "cell_type": "markdown",
        "id": name[:64].replace("_", "-"),
        "metadata": {},
        "source": text,
    }


def _page(
    notebook: dict[str, Any], cells: list[dict[str, Any]], run: NotebookRun
) -> dict[str, Any]:
    told = f"---\n**Provenance.** {registers.provenance(run)} {registers.evidence(run, '../')}."
    return notebook | {"cells": [*read_on(cells), markdown_cell("provenance", told)]}


def _figure(run: NotebookRun, key: str) -> dict[str, Any]:
    figure = run.record["figures"][key]
    alt = " ".join(figure["alt"].split())
    # a click opens it at full size
    options = f":alt: {alt}\n:target: ../{registers.image(run, key)}"
    return markdown_cell(
        f"figure-{key}",
        f"```{{figure}} ../{run.figure(key)}\n{options}\n\n{figure['caption']}\n```",
    )


def _is_picture(output: dict[str, Any]) -> bool:
    return "image/png" in output.get("data", {})
