"""The report: executed notebooks, registers and an API reference as one site that opens from a plain folder.

Pages are assembled as sources in `build/report`, then Sphinx builds them into `build/html`. Nothing is executed: what is shown is what ran.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pandas as pd

from softgeom import paths, record
from softgeom.compendium import check, readme

_MATHJAX = "mathjax@3.2.2"  # version 4 loads its fonts on demand and so needs a network for blackboard letters
_CHAPTERS = {
    "Foundations": ("0",),
    "Bottleneck": ("1",),
    "Margins": ("2",),
    "Circuits": ("3",),
    "Hardmax": ("4",),
    "Summary": ("9",),
}
_API = {
    "Bottleneck": "bottleneck",
    "Margins": "margins",
    "Circuits": "circuits",
    "Hardmax": "hardmax",
    "Language models": "language_model",
    "Checkpoints": "checkpoints",
    "Corpora": "corpora",
    "Explorers": "explorers",
    "Lessons": "lessons",
}
_LEAVES = ("layer", "paths", "record", "style", "progress", "parallel")


def build(profile: str) -> Path:
    """Assemble the sources and build the site; return its front page.

    Raises
    ------
    FileNotFoundError
        When a notebook has not been executed in this profile; the message names it and the command.
    """
    source = paths.root() / "build" / "report"
    if source.exists():
        shutil.rmtree(source)
    shutil.copytree(paths.root() / "report", source)
    names = _executed(profile)
    _copy_notebooks(names, profile, source)
    _copy_tree(paths.figures_dir(profile), source / "figures" / profile)
    _write(source / "comparisons.md", _comparisons(profile))
    _write(source / "claims.md", _claims_page(profile))
    _write(source / "corrections.md", _corrections_page(profile))
    _write(source / "provenance.md", _provenance_page(names, profile))
    explorers = _explorers(source)
    lessons = _lessons(source)
    _api_pages(source)
    shutil.copy(paths.root() / "data" / "README.md", source / "data.md")
    _write(source / "index.md", _front_page(names, explorers, lessons))
    _fetch_mathjax(source / "_static")
    return _sphinx(source, paths.root() / "build" / "html")


def _executed(profile: str) -> list[str]:
    names = sorted(path.stem for path in paths.notebook("x").parent.glob("[0-9]*.ipynb"))
    for name in names:
        if not (paths.executed_dir(profile) / f"{name}.ipynb").is_file():
            raise FileNotFoundError(
                f"executed/{profile}/{name}.ipynb is missing: run `make {name} PROFILE={profile}`, or `make all` for everything"
            )
    return names


def _copy_notebooks(names: list[str], profile: str, source: Path) -> None:
    folder = source / "notebooks"
    folder.mkdir()
    for name in names:
        notebook = json.loads((paths.executed_dir(profile) / f"{name}.ipynb").read_text(encoding="utf-8"))
        _describe_images(notebook, record.load_record(name, profile))
        notebook["cells"].append(_provenance_cell(name, profile))
        (folder / f"{name}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")


def _describe_images(notebook: dict[str, Any], recorded: dict[str, Any]) -> None:
    """Give the pictures in the outputs the alternative texts of the recorded figures, in order."""
    texts = [figure["alt"] for figure in recorded["figures"].values()]
    pictures = [
        (cell, output)
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    for position, (cell, _) in enumerate(pictures):
        text = texts[position] if position < len(texts) else "Figure; the text around it says what it shows."
        cell["metadata"].setdefault("mystnb", {})["image"] = {"alt": text}


def _provenance_cell(name: str, profile: str) -> dict[str, Any]:
    recorded, execution = record.load_record(name, profile), _execution(name, profile)
    sources = "; ".join(str(record.Source(**source)) for source in recorded["sources"]) or "none"
    folder = record.find_results(name, profile).relative_to(paths.root()).as_posix()
    text = (
        f"---\n**Provenance.** Profile `{profile}`, parameters `{json.dumps(recorded['parameters'])}`; data: {sources}; "
        f"device: {recorded['device']}; commit `{execution.get('commit', 'unknown')}`, {execution.get('seconds', '?')} s. "
        f"Results: `{folder}`."
    )
    return {"cell_type": "markdown", "id": "provenance", "metadata": {}, "source": text}


def _execution(name: str, profile: str) -> dict[str, Any]:
    path = paths.executed_dir(profile) / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _front_page(names: list[str], explorers: list[str], lessons: list[str]) -> str:
    text = (paths.root() / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"<!-- /?(?:value|table|claims)\b.*?-->", "", text)  # the markers have done their work
    text = re.sub(r"\]\(notebooks/([\w/]+)\.ipynb\)", r"](notebooks/\1.ipynb)", text)
    text = text.replace("](data/README.md)", "](data.md)").replace("](notebooks/lessons/", "](lessons/")
    text = text.replace("](notebooks/start.ipynb)", "]")  # for JupyterLab only
    text = re.sub(r"\]\((CITATION\.cff|CONTRIBUTING\.md|LICENSE)\)", r"]", text)  # not part of the site
    trees = []
    for title, prefixes in _CHAPTERS.items():
        entries = [f"notebooks/{name}" for name in names if name.startswith(prefixes)]
        trees.append(_tree(title, entries))
    if explorers:
        trees.append(_tree("Explorers", explorers))
    if lessons:
        trees.append(_tree("Lessons", lessons))
    pages = ["claims", "comparisons", "corrections", "provenance", "data"]
    trees += [_tree("Registers", pages), _tree("Library", ["api/index"])]
    return text + "\n" + "\n".join(trees)


def _tree(title: str, entries: list[str]) -> str:
    return f"```{{toctree}}\n:caption: {title}\n:hidden:\n\n" + "\n".join(entries) + "\n```\n" if entries else ""


def _comparisons(profile: str) -> str:
    rows = check.compare(profile)
    parts = ["# The papers' numbers beside ours\n", "Made by `make check`; tolerances are relative.\n"]
    for title in dict.fromkeys(row.title for row in rows):
        chosen = [row for row in rows if row.title == title]
        frame = pd.DataFrame(
            [
                {**row.where, "paper": row.paper, "ours": row.ours, "verdict": row.verdict, "reason": row.reason}
                for row in chosen
            ]
        )
        parts += [f"## {title}\n", readme.markdown(frame), ""]
    return "\n".join(parts)


def _claims(profile: str) -> pd.DataFrame:
    frame = record.load_table("90_summary", "claims", profile).fillna("")
    frame["notebook"] = [f"[{name}](notebooks/{name}.ipynb)" for name in frame["notebook"]]
    frame["interval"] = [
        f"{low:.4g} to {high:.4g}" if not isinstance(low, str) and not isinstance(high, str) else ""
        for low, high in zip(frame["low"], frame["high"], strict=True)
    ]
    return frame


def _claims_page(profile: str) -> str:
    frame = _claims(profile)
    parts = ["# Register of claims\n", "Every claim of the four sources that a notebook tested, with its verdict.\n"]
    for paper, chosen in frame.groupby("paper"):
        columns = ["source", "statement", "verdict", "value", "interval", "reason", "notebook"]
        parts += [f"## Paper {str(paper).zfill(3)}\n", readme.markdown(chosen[columns]), ""]
    return "\n".join(parts)


def _corrections_page(profile: str) -> str:
    frame = _claims(profile)
    parts = ["# Corrections and negative results\n"]
    for verdict in ("corrected", "not reproduced", "not testable here", "beyond the paper"):
        chosen = frame[frame["verdict"] == verdict]
        if len(chosen):
            parts.append(f"## {verdict.capitalize()}\n")
            parts += [
                f"- **{row.source}** {row.statement} {row.reason} ({row.notebook})" for row in chosen.itertuples()
            ]
            parts.append("")
    return "\n".join(parts)


def _provenance_page(names: list[str], profile: str) -> str:
    parts = ["# Provenance of every figure and table\n"]
    for name in names:
        recorded, execution = record.load_record(name, profile), _execution(name, profile)
        folder = record.find_results(name, profile).relative_to(paths.root()).as_posix()
        sources = "; ".join(str(record.Source(**source)) for source in recorded["sources"]) or "none"
        parts += [
            f"## {name}\n",
            f"Notebook: [{name}](notebooks/{name}.ipynb). Data: {sources}. Commit: `{execution.get('commit', 'unknown')}`.\n",
        ]
        rows = [
            {"kind": "figure", "name": f"{name}-{key}", "what": value["caption"]}
            for key, value in recorded["figures"].items()
        ]
        rows += [
            {"kind": "table", "name": f"{folder}/{key}.csv", "what": value} for key, value in recorded["tables"].items()
        ]
        if rows:
            parts += [readme.markdown(pd.DataFrame(rows)), ""]
    return "\n".join(parts)


def _explorers(source: Path) -> list[str]:
    """One page per explorer: the standalone page, framed, so that it runs without a kernel."""
    from softgeom import explorers

    folder = source / "explorers"
    folder.mkdir()
    static = source / "_static" / "explorers"
    static.mkdir(parents=True)
    for name in explorers.NAMES:
        title = f"{name.capitalize()} explorer"
        (static / f"{name}.html").write_text(explorers.page(name), encoding="utf-8")
        frame = f'<iframe class="explorer" src="../_static/explorers/{name}.html" title="{title}"></iframe>'
        link = f"[Open it on a page of its own](../_static/explorers/{name}.html)"
        _write(folder / f"{name}.md", f"# {title}\n\n```{{raw}} html\n{frame}\n```\n\n{link}\n")
    return [f"explorers/{name}" for name in explorers.NAMES]


def _lessons(source: Path) -> list[str]:
    folder = paths.root() / "notebooks" / "lessons"
    if not folder.is_dir():
        return []
    (source / "lessons").mkdir()
    entries = []
    for path in sorted([*folder.glob("*.md"), *folder.glob("*.ipynb")]):
        shutil.copy(path, source / "lessons" / path.name)
        entries.append(f"lessons/{path.stem}")
    return entries


def _api_pages(source: Path) -> None:
    folder = source / "api"
    folder.mkdir()
    package = Path(__file__).resolve().parent.parent
    entries = []
    for title, name in _API.items():
        modules = [
            f"softgeom.{name}.{path.stem}" for path in sorted((package / name).glob("*.py")) if path.stem != "__init__"
        ]
        _write(folder / f"{name}.md", _api_page(title, f"softgeom.{name}", modules))
        entries.append(name)
    _write(folder / "leaves.md", _api_page("Leaves", "", [f"softgeom.{name}" for name in _LEAVES]))
    contents = "\n".join([*entries, "leaves"])
    _write(folder / "index.md", f"# Library\n\n```{{toctree}}\n{contents}\n```\n")


def _api_page(title: str, package: str, modules: list[str]) -> str:
    parts = [f"# {title}\n"]
    if package:
        parts.append(f"```{{eval-rst}}\n.. automodule:: {package}\n   :no-members:\n```\n")
    for module in modules:
        parts += [f"## {module.removeprefix('softgeom.')}\n", f"```{{eval-rst}}\n.. automodule:: {module}\n```\n"]
    return "\n".join(parts)


def _fetch_mathjax(static: Path) -> None:
    """MathJax from npm into the site; without npm or network the formulas will need a network, and the build says so."""
    cache = paths.root() / "build" / "mathjax"
    script = cache / "package" / "es5" / "tex-svg.js"
    if not script.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        npm = shutil.which("npm")
        done = (
            npm
            and subprocess.run(
                [npm, "pack", _MATHJAX, "--silent"], cwd=cache, capture_output=True, text=True
            ).returncode
            == 0
        )
        if not done:
            print("report: MathJax could not be had from npm; formulas in this build need a network")
            return
        with tarfile.open(next(cache.glob("mathjax-*.tgz"))) as archive:
            archive.extract("package/es5/tex-svg.js", cache, filter="data")
    shutil.copy(script, static / "tex-svg.js")


def _sphinx(source: Path, output: Path) -> Path:
    if output.exists():
        shutil.rmtree(output)
    doctrees = str(output.parent / "doctrees")  # beside the site, not inside it
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-j", "2", "-d", doctrees, str(source), str(output)]
    if subprocess.run(command).returncode != 0:
        raise ValueError("Sphinx could not build the report; its messages stand above")
    return output / "index.html"


def _copy_tree(origin: Path, destination: Path) -> None:
    """Figures as PNG only: the site shows no PDF."""
    if origin.is_dir():
        shutil.copytree(origin, destination, ignore=shutil.ignore_patterns("*.pdf"))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
