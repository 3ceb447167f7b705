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

from compendium import book, paths, registers

_MATHJAX = "mathjax@3.2.2"  # version 4 loads its fonts on demand and so needs a network for blackboard letters
_CHAPTERS = {"Foundations": "0", "Bottleneck": "1", "Margins": "2", "Circuits": "3", "Hardmax": "4", "Summary": "9"}
_PRACTICAL = {"Three readers", "What it costs", "How it is built", "Troubleshooting"}  # sections of the README
_LONG = 4  # line breaks of code that a reader of the text still sees unfolded
_LINKS = """Each claim leads to its notebook, figures and numbers in the [register of claims](claims.md). See also the
[corrections and negative results](corrections.md), the [papers' tables beside ours](comparisons.md), the
[provenance of every figure](provenance.md), how to [run it yourself](running.md), or drag the figures of the
[softmax](explorers/softmax.md), [attention](explorers/attention.md) and [hardmax](explorers/hardmax.md) explorers.
"""
_WIDE = "---\nhtml_theme.sidebar_secondary.remove: true\n---\n"  # no table of contents: the figure takes its place
_HOW_TO = """:::{note}
Here the lesson can be read. To work through it, with live figures and exercises that answer, run `make lab`. The
[softmax](../explorers/softmax.md), [attention](../explorers/attention.md) and [hardmax](../explorers/hardmax.md) explorers also work on this site.
:::"""
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
    _copy_files(profile, source)
    _notebooks(names, profile, source)
    pages = {
        "claims": registers.claims_page(profile),
        "comparisons": registers.comparisons_page(profile),
        "corrections": registers.corrections_page(profile),
        "provenance": registers.provenance_page(names, profile),
        "data": (paths.root() / "data" / "README.md").read_text(encoding="utf-8"),
    }
    explorers, lessons = _explorers(source), _lessons(source)
    _api_pages(source)
    front, running = _split_readme((paths.root() / "README.md").read_text(encoding="utf-8"))
    trees = [
        _tree(title, [f"notebooks/{n}" for n in names if n.startswith(digit)]) for title, digit in _CHAPTERS.items()
    ]
    trees += [_tree("Explorers", explorers), _tree("Lessons", lessons)]
    trees += [_tree("Registers", list(pages)), _tree("Use", ["running", "api/index"])]
    for name, text in (pages | {"running": running, "index": "\n".join([front, *trees])}).items():
        _write(source / f"{name}.md", text)
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


def _copy_files(profile: str, source: Path) -> None:
    """Figures, as PNG, for the pages; results, as they are, for the links that end in numbers."""
    _copy_tree(paths.figures_dir("default"), source / "figures" / "default")  # those of the README
    _copy_tree(paths.figures_dir(profile), source / "figures" / profile)
    _copy_tree(paths.results_dir(profile, ""), source / "_extra" / "results" / profile)


def _notebooks(names: list[str], profile: str, source: Path) -> None:
    folder = source / "notebooks"
    folder.mkdir()
    for name in names:
        notebook = json.loads((paths.executed_dir(profile) / f"{name}.ipynb").read_text(encoding="utf-8"))
        notebook["cells"] = _read_on(_with_figures(notebook["cells"], name, profile))
        provenance = (
            f"---\n**Provenance.** {registers.provenance(name, profile)} {registers.evidence(name, profile, '../')}."
        )
        notebook["cells"].append(_markdown_cell("provenance", provenance))
        (folder / f"{name}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")


def _with_figures(cells: list[dict[str, Any]], name: str, profile: str) -> list[dict[str, Any]]:
    """The recorded figures, with caption and alternative text, in place of the pictures that the cells showed while they ran.

    They are the same figures in the same order, but the recorded ones name their data and have a file of their own.
    """
    figures = book.load_record(name, profile)["figures"]
    aside = book.STAND_IN if book.find_results(name, profile).name == book.STAND_IN else ""
    folder = Path("../figures") / profile / aside
    if sum(_is_picture(output) for cell in cells for output in cell.get("outputs", [])) != len(figures):
        raise ValueError(
            f"executed/{profile}/{name}.ipynb and its record have not the same figures: run `make {name}` again"
        )
    result, waiting = [], iter(figures.items())
    for cell in cells:
        result.append(cell)
        for output in [output for output in cell.get("outputs", []) if _is_picture(output)]:
            cell["outputs"].remove(output)
            key, figure = next(waiting)
            place = (folder / f"{name}-{key}.png").as_posix()
            text = f"```{{figure}} {place}\n:alt: {' '.join(figure['alt'].split())}\n\n{figure['caption']}\n```"
            result.append(_markdown_cell(f"figure-{key}", text))
    return result


def _is_picture(output: dict[str, Any]) -> bool:
    return "image/png" in output.get("data", {})


def _read_on(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
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


def _markdown_cell(name: str, text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": name[:64].replace("_", "-"), "metadata": {}, "source": text}


def _split_readme(text: str) -> tuple[str, str]:
    """The front page and the page for those who run things, from the README: the register has its own page, files become links."""
    text = re.sub(r"<!-- /?(?:value|table|claims)\b.*?-->", "", text)  # the markers have done their work
    text = re.sub(r"<details>.*?</details>\s*", "", text, flags=re.DOTALL)  # claims: the register shows them at length
    text = text.replace("](data/README.md)", "](data.md)").replace("](notebooks/lessons/", "](lessons/")
    text = re.sub(
        r"\[([^\]]+)\]\((?:CITATION\.cff|CONTRIBUTING\.md|LICENSE|notebooks/start\.ipynb)\)", r"\1", text
    )  # not here
    head, *sections = re.split(r"(?m)^(?=## )", text)
    practical = [part for part in sections if part.splitlines()[0].removeprefix("## ") in _PRACTICAL]
    front = [head, *(part for part in sections if part not in practical), _LINKS]
    return "\n".join(front), "# Running it\n\n" + "\n".join(practical)


def _tree(title: str, entries: list[str]) -> str:
    return f"```{{toctree}}\n:caption: {title}\n:hidden:\n\n" + "\n".join(entries) + "\n```\n" if entries else ""


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
        address = f"../_static/explorers/{name}.html"
        frame = f'<iframe class="explorer" src="{address}" title="{title}"></iframe>'
        text = f'{_WIDE}# {title}\n\n{frame}\n\n<a href="{address}">On a page of its own</a>, for a projector or to keep.\n'
        _write(folder / f"{name}.md", text)
    return [f"explorers/{name}" for name in explorers.NAMES]


def _lessons(source: Path) -> list[str]:
    """The lessons as they are handed out: not executed, their solutions folded (they are tagged so)."""
    folder = paths.root() / "notebooks" / "lessons"
    (source / "lessons").mkdir()
    for path in sorted(folder.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            if "solution" in cell["metadata"].get("tags", []):
                cell["metadata"]["mystnb"] = {"code_prompt_show": "Show a solution", "code_prompt_hide": "Hide it"}
        notebook["cells"].insert(1, _markdown_cell("how-to", _HOW_TO))
        (source / "lessons" / path.name).write_text(json.dumps(notebook), encoding="utf-8")
    for path in folder.glob("*.md"):
        shutil.copy(path, source / "lessons" / path.name)
    return [f"lessons/{path.stem}" for path in [*sorted(folder.glob("*.ipynb")), *sorted(folder.glob("*.md"))]]


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
    _write(folder / "index.md", f"# Library\n\n```{{toctree}}\n:maxdepth: 2\n{contents}\n```\n")


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
    for path in output.rglob("*.map"):  # a third of the theme, for those who debug its scripts
        path.unlink()
    shutil.rmtree(output / "_static" / "locales", ignore_errors=True)
    return output / "index.html"


def _copy_tree(origin: Path, destination: Path) -> None:
    if origin.is_dir():
        shutil.copytree(origin, destination, ignore=shutil.ignore_patterns("*.pdf"), dirs_exist_ok=True)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
