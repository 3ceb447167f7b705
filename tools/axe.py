"""axe-core, the checker of accessibility, over every page of a built site: elements that break a
rule, one line each.

    make site && python tools/axe.py [build/html]

It comes from npm, as MathJax does; what the theme itself writes (its sidebars and buttons) is left
out by where it stands. Needs Chromium and Playwright.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
AXE = "axe-core@4.14.1"
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
_RUN = "(theme) => axe.run({exclude: theme.map((place) => [place])}, {resultTypes: ['violations']})"


def main(arguments: list[str]) -> int:
    """Look at each page in daylight and in the dark; 1 when a rule is broken."""
    from playwright.sync_api import sync_playwright

    site, axe, broken = (
        Path(arguments[0] if arguments else TOP / "build" / "html").resolve(),
        script(),
        0,
    )
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for scheme in ("light", "dark"):
            tab = browser.new_context(color_scheme=scheme).new_page()
            for page in sorted(site.rglob("*.html")):
                name = page.relative_to(site).as_posix()
                if not name.startswith("_static/") or page.stem in ("scan", "story"):
                    tab.goto(page.as_uri())
                    for line in violations(tab, axe):
                        print(f"{scheme} {name}: {line}", flush=True)
                        broken += 1
        browser.close()
    print(f"{broken} elements break a rule")
    return int(broken > 0)


def script() -> str:
    """The checker, fetched from npm once."""
    cache = TOP / "build" / "axe"
    path = cache / "package" / "axe.min.js"
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", AXE, "--silent"], cwd=cache, capture_output=True, check=True)
        with tarfile.open(next(cache.glob("axe-core-*.tgz"))) as archive:
            archive.extract("package/axe.min.js", cache, filter="data")
    return path.read_text(encoding="utf-8")


def violations(tab: Any, axe: str) -> list[str]:
    """One line for each element of the open page that breaks a rule."""
    tab.evaluate("window.MathJax?.startup?.promise")
    tab.evaluate(axe)
    found = tab.evaluate(_RUN, list(THEMES))["violations"]
    return [
        f"{rule['id']}: {node['target']} {node['html'][:160]}"
        for rule in found
        for node in rule["nodes"]
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
