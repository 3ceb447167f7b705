"""A finger in Firefox. Playwright's touch is Chromium's alone there, so Firefox is asked for it by
WebDriver BiDi itself.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from softgeom.explorers import page

pytestmark = pytest.mark.browser

PREFERENCES = {
    "dom.w3c_touch_events.enabled": 1,
    "browser.shell.checkDefaultBrowser": False,
    "app.update.disabledForTesting": True,
}
LIVE = "document.querySelector('[aria-live=polite]').textContent"


@pytest.fixture
def firefox(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """`firefox(method, **parameters)` sends one command of WebDriver BiDi and returns its
    result.
    """
    if os.environ.get("SOFTGEOM_BROWSER") != "firefox":
        pytest.skip("a test for Firefox (make test-firefox)")
    program = shutil.which("firefox") or shutil.which("firefox-esr")
    if not program:
        pytest.skip("no firefox on the PATH (Debian: apt-get install firefox-esr)")
    websocket = pytest.importorskip("websocket", reason="no websocket-client (make env)")
    profile = tmp_path / "profile"
    profile.mkdir()
    lines = (f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in PREFERENCES.items())
    (profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
    options = "--headless --no-remote --remote-debugging-port=0 --profile".split()
    streams = {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL, "text": True}
    process = subprocess.Popen([program, *options, str(profile)], **streams)
    try:
        said = (re.search(r"WebDriver BiDi listening on (ws:\S+)", line) for line in process.stderr)
        session = f"{next(filter(None, said))[1]}/session"
        connection = websocket.create_connection(session, timeout=60, suppress_origin=True)
        numbers = itertools.count(1)

        def send(method: str, **parameters: Any) -> Any:
            number = next(numbers)
            connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
            while (answer := json.loads(connection.recv())).get("id") != number:
                pass  # an event
            assert answer["type"] == "success", answer
            return answer["result"]

        send("session.new", capabilities={})
        yield send
        connection.close()
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_a_finger_drags_in_firefox(firefox, tmp_path):
    path = tmp_path / "softmax.html"
    path.write_text(page("softmax"), encoding="utf-8")
    context = firefox("browsingContext.getTree")["contexts"][0]["context"]
    firefox("browsingContext.setViewport", context=context, viewport={"width": 500, "height": 800})
    firefox("browsingContext.navigate", context=context, url=path.as_uri(), wait="complete")

    def value(expression: str) -> Any:
        target = {"target": {"context": context}, "awaitPromise": True}
        answer = firefox("script.evaluate", expression=expression, **target)
        return json.loads(answer["result"]["value"])

    x, y = value(
        """(() => { const mark = document.querySelector('[data-name="class-3"] .sg-mark');
        mark.scrollIntoView({block: "center"});
        const box = mark.getBoundingClientRect();
        return JSON.stringify([box.x + box.width / 2, box.y + box.height / 2]); })()"""
    )
    before, scrolled = value(f"JSON.stringify([{LIVE}, scrollY])")
    assert before == "c₄ can never win."
    start = {"type": "pointerMove", "x": round(x), "y": round(y)}
    moves = [start | {"y": round(y) + 10 * step, "duration": 20} for step in range(1, 14)]
    down, up = ({"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp"))
    finger = {"type": "pointer", "id": "finger", "parameters": {"pointerType": "touch"}}
    finger["actions"] = [start, down, *moves, up]
    value("addEventListener('pointerdown', (e) => (window.met = e.pointerType), true), '0'")
    firefox("input.performActions", context=context, actions=[finger])
    after, now, met = value(f"JSON.stringify([{LIVE}, scrollY, window.met])")
    assert met == "touch"
    assert after == "Every class can win."
    assert now == scrolled  # the finger moved the point, not the page
