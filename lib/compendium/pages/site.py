"""The site: Sphinx over the repository's pages, beside pages that stand alone (explorers, lessons,
the story and the page that scans). It shows the committed results; nothing is executed.

A notebook's page is the committed notebook, with the recorded figure, table or verdict below each
cell that makes it, long code folded, and where the results come from at the end.
"""

from __future__ import annotations

import ast
import html
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from compendium import claims, findings, notebooks, paths
from compendium.pages import article, gallery, readme
from compendium.runs import NotebookRun, committed
from papers import explorers
from softgeom.checkpoints.loading import load_softmax_layer
from softgeom.checkpoints.released import RELEASED
from softgeom.web.document import document

SETTINGS = "docs/site"  # folder of Sphinx's settings, in the repository
_TO_TRY = "ppocr-v4"  # its licence lets a page carry its last layer, where its package is installed
_LONG = 4  # line breaks of code that a reader of the text still sees unfolded
_ROWS, _WIDE = 12, 60  # of a table that a page shows: rows, and characters of a cell


def build() -> Path:
    """Build the site into `build/html`; return its front page. ValueError when Sphinx fails."""
    root = paths.root()
    write_pages(root / "build" / "pages")
    output = root / "build" / "html"
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-c", str(root / SETTINGS)]
    command += ["-E", "-d", str(root / "build" / "doctrees"), str(root), str(output)]
    if subprocess.run(command).returncode != 0:
        raise ValueError("Sphinx could not build the site: see its messages above")
    return output / "index.html"


def write_pages(folder: Path) -> None:
    """Write every page that stands alone into a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = {f"explorers/{name}.html": explorers.page(name) for name in explorers.NAMES}
    try:
        pages["story.html"] = article.page()
    except (KeyError, FileNotFoundError) as missing:
        said = (
            f"This page takes its numbers from recorded results; one is missing: {missing.args[0]}."
        )
        pages["story.html"] = document(
            article.TITLE, "", f"<main><p>{html.escape(said)}</p></main>"
        )
    more = {}
    if RELEASED[_TO_TRY].available():
        released, name = RELEASED[_TO_TRY], f"scan-{_TO_TRY}.html"
        origin = f"{released.wheel.package} {released.wheel.version}, {released.licence}"
        title, layer = f"{released.title} ({origin})", load_softmax_layer(_TO_TRY)
        pages[name] = explorers.scan_page(layer, title)
        more[f"the {released.title} ({len(pages[name]) / 1e6:.0f} MB)"] = name
    pages["scan.html"] = explorers.scan_page(more=more)
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    # the classroom stands beside the compendium: neither imports the other
    (folder / "lessons").mkdir()
    command = [sys.executable, "-m", "classroom.pages", str(folder / "lessons")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


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
    shown, result = _results(run), []
    for cell in cells:
        result.append(cell)
        code = "".join(cell["source"]) if cell["cell_type"] == "code" else ""
        for kind, key, _ in notebooks.calls(ast.parse(code), "figure", "table", "claim"):
            if (text := shown.pop((kind, key), None)) is not None:
                result.append(_markdown(f"{kind}-{key}", text))
    return result + [_markdown(f"{kind}-{key}", text) for (kind, key), text in shown.items()]


def _results(run: NotebookRun) -> dict[tuple[str, str | None], str]:
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
        found["claim", finding.claim.id] = gallery.entry(finding.claim, finding, register)
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
