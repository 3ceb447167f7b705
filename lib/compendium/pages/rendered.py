"""Every tracked file that is rendered from the committed results: pages, gallery, the committed
verdicts, the manifest.

`make readme` writes them, `make lint` says which of them do not show what is committed.
"""

from __future__ import annotations

from pathlib import Path

from compendium import agreement, findings, paths
from compendium.pages import gallery, manifest, readme
from compendium.runs import SHOWN


def fresh() -> dict[Path, str]:
    """Each rendered file and what it should hold."""
    root = paths.root()
    pages = {
        page: readme.render(page.read_text(encoding="utf-8"))
        for page in [root / "README.md"]
        if page.is_file()
    }
    for page in sorted((root / "docs").glob("*.md")):
        pages[page] = readme.render(page.read_text(encoding="utf-8"), "../")
    pages |= {root / path: text for path, text in gallery.pages().items()}
    for profile in SHOWN:
        found, _ = findings.of_committed((profile,))
        if found:
            pages[paths.results_dir(profile, "verdicts.csv")] = findings.baseline(found)
    if agreement.quantities():
        pages[root / "data" / "reference" / "quantity_places.csv"] = agreement.render(pages)
    return pages | {root / "codecheck.yml": manifest.render()}


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
    pages = fresh()
    odd = [
        path
        for path, text in pages.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    odd += [path for path in _gallery() if path not in pages]
    return sorted(path.relative_to(paths.root()).as_posix() for path in odd)


def _gallery() -> list[Path]:
    return sorted((paths.root() / gallery.FOLDER).glob("*.md"))
