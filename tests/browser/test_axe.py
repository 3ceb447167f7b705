"""axe-core, the checker of accessibility, finds no violation of ours on any kind of page, in daylight and in the dark.

It comes from npm, as MathJax does; what the theme itself writes (its sidebars and buttons) is left out by where it stands.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

AXE = "axe-core@4.14.1"
PAGES = (
    "index",
    "claims",
    "comparisons",
    "corrections",
    "provenance",
    "running",
    "explorers/softmax",
    "api/bottleneck",
    "lessons/2_who_can_win",
    "search",
)
THEMES = (
    ".bd-sidebar-primary",
    ".bd-sidebar-secondary",
    ".bd-header-article",
    ".bd-header",
    ".bd-footer",
    ".prev-next-footer",
    "#pst-skip-link",
    "#pst-scroll-pixel-helper",
)


@pytest.fixture(scope="session")
def axe(repository: Path) -> str:
    """The script, from npm once."""
    cache = repository / "build" / "axe"
    script = cache / "package" / "axe.min.js"
    if not script.is_file():
        npm = shutil.which("npm")
        cache.mkdir(parents=True, exist_ok=True)
        if not npm or subprocess.run([npm, "pack", AXE, "--silent"], cwd=cache, capture_output=True).returncode:
            pytest.skip("axe-core could not be had from npm")
        with tarfile.open(next(cache.glob("axe-core-*.tgz"))) as archive:
            archive.extract("package/axe.min.js", cache, filter="data")
    return script.read_text(encoding="utf-8")


def violations(tab: Any, axe: str) -> list[str]:
    """One line for each element that breaks a rule."""
    tab.evaluate(axe)
    found = tab.evaluate(
        "(theme) => axe.run({exclude: theme.map((place) => [place])}, {resultTypes: ['violations']})", list(THEMES)
    )
    return [
        f"{rule['id']}: {node['target']} {node['html'][:160]}" for rule in found["violations"] for node in rule["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_no_violation(site: Path, open_tab, axe, scheme):
    notebook = next((site / "notebooks").glob("*.html")).relative_to(site).with_suffix("").as_posix()
    found = {}
    tab = open_tab((site / "index.html").as_uri(), color_scheme=scheme)
    for name in (*PAGES, notebook):
        tab.goto((site / f"{name}.html").as_uri())
        tab.evaluate("window.MathJax?.startup?.promise")
        if lines := violations(tab, axe):
            found[name] = lines
    assert found == {}
