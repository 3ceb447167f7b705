"""How long the explorers take to answer a drag, in a real browser: 30 moves of one point, each
waited for until it is painted.

Usage: `python benchmarks/drags.py [chromium] [firefox]`; rows of the browser that is not named are
kept. A move takes the way of the arrow keys, which is that of the mouse. `script` ends when
everything is drawn, `painted` at the task after the next frame, so it has the wait for that frame
in it (8 ms on average at 60 frames a second); other work of the machine is in all of them, so the
table says how many processes it had waiting. Rows go to results/bench/drags.csv. Needs Playwright
and the browser; without them nothing is measured, and it says so.
"""

from __future__ import annotations

import os
import shlex
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from softgeom.explorers import page

TABLE = Path(__file__).resolve().parent.parent / "results" / "bench" / "drags.csv"
COMMANDS = {"chromium": ("chromium",), "firefox": ("firefox", "firefox-esr")}
LAUNCH: dict[str, dict[str, Any]] = {
    "chromium": {"args": ["--no-sandbox", "--disable-gpu"]},
    "firefox": {"channel": "moz-firefox"},
}
# between Playwright and today's Firefox
BRIDGE = TABLE.parents[2] / "tests" / "browser" / "firefox_bridge.py"
MOVES = 30
WARM_UP = 10  # moves before them: the browser compiles what runs often
CASES = (  # explorer, preset (-1: none), buttons pressed, point, what it is called
    ("softmax", -1, (), "class-3", "a class of four"),
    ("softmax", 8, ("Bias", "Lift"), "class-0", "a class, lifted"),
    ("attention", -1, (), "token-4", "the last token"),
    ("attention", -1, (), "token-1", "a past token"),
    ("fold", -1, (), "token-1", "a past token"),
    ("hardmax", -1, (), "token-1", "a token"),
)
DRAG = """async ([name, moves]) => {
  const point = document.querySelector(`[data-name="${name}"]`);
  const times = [];
  for (let k = 0; k < moves; k++) {
    const begun = performance.now();
    const key = k % 2 ? "ArrowLeft" : "ArrowRight";
    point.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    await Promise.resolve();
    const script = performance.now() - begun;
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    times.push([script, performance.now() - begun]);
  }
  return times;
}"""


def measure(browser: Any, case: tuple[Any, ...], folder: Path) -> dict[str, object]:
    """One row: medians over the moves, and what nine in ten stay below."""
    explorer, preset, buttons, point, called = case
    path = folder / f"{explorer}.html"
    path.write_text(page(explorer), encoding="utf-8")
    tab = browser.new_page(viewport={"width": 1100, "height": 900})
    tab.goto(path.as_uri())
    if preset >= 0:
        tab.locator("select").select_option(str(preset))
    for button in buttons:
        tab.get_by_role("button", name=button, exact=True).click()
    tab.evaluate(DRAG, [point, WARM_UP])
    script, painted = zip(*tab.evaluate(DRAG, [point, MOVES]), strict=True)
    tab.close()
    return {
        "explorer": explorer,
        "dragged": called,
        "script ms": round(statistics.median(script), 1),
        "painted ms": round(statistics.median(painted), 1),
        "painted ms, nine in ten": round(sorted(painted)[MOVES * 9 // 10], 1),
        "processes waiting": round(os.getloadavg()[0], 1),
    }


def program(name: str, folder: Path) -> str | None:
    """The command that starts a browser, or None."""
    found = next(filter(None, map(shutil.which, COMMANDS[name])), None)
    if not found or name == "chromium":
        return found
    path = folder / "firefox"
    path.write_text(
        f'#!/bin/sh\nexec {shlex.join([sys.executable, str(BRIDGE), found])} "$@"\n',
        encoding="utf-8",
    )
    path.chmod(0o755)
    return str(path)


def main(asked: Sequence[str]) -> int:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print(
            "drags: Playwright is not installed (make test adds it), nothing measured",
            file=sys.stderr,
        )
        return 0
    rows = pd.read_csv(TABLE).to_dict("records") if TABLE.is_file() else []
    for name in asked or ("chromium",):
        with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
            found = program(name, Path(folder))
            if not found:
                print(f"drags: no {name} on the PATH, nothing measured", file=sys.stderr)
                continue
            browser = getattr(driver, name).launch(executable_path=found, **LAUNCH[name])
            fresh = [
                {"browser": f"{name} {browser.version}"} | measure(browser, case, Path(folder))
                for case in CASES
            ]
            browser.close()
        rows = [row for row in rows if not str(row["browser"]).startswith(name)] + fresh
    if rows:
        table = pd.DataFrame(rows)
        print(table.to_string(index=False))
        table.to_csv(TABLE, index=False, lineterminator="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
