"""What a page of the site weighs before a reader starts an engine, and what a drag takes.

    make site; python benchmarks/pages.py

Chromium opens each page of `build/html` with an empty cache: requests, bytes, seconds until all is
loaded. Where a point can be dragged it is moved with the mouse by sixty small steps: the median
and the slowest time from the page's hearing of a step to the end of all that its scripts do.
Writes `results/bench/pages.csv`.
"""

from __future__ import annotations

import functools
import shutil
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pandas as pd
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
SITE, TABLE = ROOT / "build" / "html", ROOT / "results" / "bench" / "pages.csv"
PAGES = {  # page -> the point that is dragged
    "index": "", "verdicts": "", "claims": "", "notebooks/20_scalar_margins": "",
    "_static/story": "", "_static/scan": "", "_static/2_who_can_win": "class-3",
    "_static/explorers/softmax": "class-3", "_static/explorers/attention": "token-4",
    "_static/explorers/fold": "token-1", "_static/explorers/hardmax": "token-1",
}  # fmt: skip
STEPS = 60
WATCH = """() => {
  window.times = [];
  addEventListener("pointermove", () => (window.begun = performance.now()), { capture: true });
  addEventListener("pointermove", () => times.push(performance.now() - window.begun));
}"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def measure(tab: Any, address: str, point: str) -> dict[str, Any]:
    """A row of the table."""
    requests: list[Any] = []
    tab.on("requestfinished", lambda request: requests.append(request))
    tab.goto(address, wait_until="networkidle")
    seconds = tab.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000
    sizes = [request.sizes() for request in requests]
    total = sum(size["responseBodySize"] + size["responseHeadersSize"] for size in sizes)
    row = {"requests": len(requests), "MB": round(total / 1e6, 3)}
    row |= {"loaded (s)": round(seconds, 2)}
    if point:
        tab.evaluate(WATCH)
        handle = tab.locator(f'[data-name="{point}"] .sg-mark').first
        handle.scroll_into_view_if_needed()
        box = handle.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        tab.mouse.move(x, y)
        tab.mouse.down()
        tab.evaluate("times.length = 0")
        tab.mouse.move(x - 60, y - 60, steps=STEPS)
        tab.mouse.up()
        times = pd.Series(tab.evaluate("times"))
        row |= {"drag, median (ms)": round(times.median(), 1), "slowest": round(times.max(), 1)}
    return row


def main() -> int:
    serve = functools.partial(Quiet, directory=str(SITE))
    server = ThreadingHTTPServer(("127.0.0.1", 0), serve)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    rows = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for page, point in PAGES.items():
            tab = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            row = measure(tab, f"http://127.0.0.1:{server.server_port}/{page}.html", point)
            rows.append({"page": page, **row})
            print(rows[-1], flush=True)
            tab.context.close()
        browser.close()
    pd.DataFrame(rows).to_csv(TABLE, index=False, lineterminator="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
