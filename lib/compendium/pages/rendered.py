"""Every tracked file that is rendered from the committed results: `make readme` writes them, `make
lint` says which do not show what is committed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from compendium import findings, paths
from compendium.pages import gallery, readme
from compendium.runs import SHOWN, all_committed

_SPECIFICATION = "https://codecheck.org.uk/spec/config/2.0/"
_PAPER: dict[str, Any] = {
    "title": "Softmax Geometry: a reproducible compendium",
    "authors": [{"name": "The Softmax Geometry authors"}],
}


def fresh() -> dict[Path, str]:
    """Each rendered file and what it should hold."""
    root, pages = paths.root(), dict[Path, str]()
    for page in [*root.glob("README.md"), *sorted((root / "docs").glob("*.md"))]:
        up = "../" * (page.parent != root)
        pages[page] = readme.render(page.read_text(encoding="utf-8"), up)
    pages |= {root / path: text for path, text in gallery.pages().items()}
    for profile in SHOWN:
        found, _ = findings.of_committed((profile,))
        if found:
            pages[paths.results_dir(profile, "verdicts.csv")] = findings.baseline(found)
    return pages


def write() -> None:
    """Write every rendered file, and remove pages of the gallery that are none any more."""
    pages = fresh()
    for path in _gallery():
        if path not in pages:
            path.unlink()
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def stale() -> list[str]:
    """Files that do not show the committed results, as paths in the repository."""
    pages, odd = fresh(), list[Path]()
    for path, text in pages.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            odd.append(path)
    odd += [path for path in _gallery() if path not in pages]
    return sorted(path.relative_to(paths.root()).as_posix() for path in odd)


def manifest() -> str:
    """`codecheck.yml`: every committed figure and table with what it shows, by notebook, in the
    format of CODECHECK (https://codecheck.org.uk). The authors add ORCIDs, whoever checks adds
    `codechecker`, `certificate`, `summary` and `report`: the format forbids placeholders.
    """
    entries = []
    for run in all_committed():
        folder = run.results.relative_to(paths.root()).as_posix()
        told = {run.figure(key): figure["caption"] for key, figure in run.record["figures"].items()}
        told |= {f"{folder}/{key}.csv": text for key, text in run.record["tables"].items()}
        entries += [{"file": file, "comment": text} for file, text in told.items()]
    source = readme.addresses().get("source")
    paper = _PAPER | ({"reference": source} if source else {})
    content = {"version": _SPECIFICATION, "paper": paper, "manifest": entries}
    how: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "explicit_start": True}
    return yaml.safe_dump(content, width=120, **how)


def _gallery() -> list[Path]:
    return sorted((paths.root() / gallery.FOLDER).glob("*.md"))
