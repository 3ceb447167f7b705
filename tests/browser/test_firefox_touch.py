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
    websocket = pytest.importorskip(
        "websocket", reason="websocket-client is not installed (make env)"
    )
    profile = tmp_path / "profile"
    profile.mkdir()
    lines = (
        f"user_pref({json.dumps(name)}, {json.dumps(value)});"
        for name, value in PREFERENCES.items()
    )
    (profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
    command = [
        program,
        "--headless",
        "--no-remote",
        "--remote-debugging-port=0",
        "--profile",
        str(profile),
    ]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        said = (re.search(r"WebDriver BiDi listening on (ws:\S+)", line) for line in process.stderr)
        address = next(filter(None, said))[1]
        connection = websocket.create_connection(
            f"{address}/session", timeout=60, suppress_origin=True
        )
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
        answer = firefox(
            "script.evaluate", expression=expression, target={"context": context}, awaitPromise=True
        )
        return json.loads(answer["result"]["value"])

    x, y = value(
        """(() => { const mark = document.querySelector('[data-name="class-3"] .sg-mark');
        mark.scrollIntoView({block: "center"});
        const box = mark.getBoundingClientRect();
        return JSON.stringify([box.x + box.width / 2, box.y + box.height / 2]); })()"""
    )
    before, scrolled = value(f"JSON.stringify([{LIVE}, scrollY])")
    assert before == "c₄ can never win."
    x, y = round(x), round(y)
    moves = [
        {"type": "pointerMove", "x": x, "y": y + 10 * step, "duration": 20} for step in range(1, 14)
    ]
    actions = [
        {"type": "pointerMove", "x": x, "y": y},
        {"type": "pointerDown", "button": 0},
        *moves,
        {"type": "pointerUp", "button": 0},
    ]
    finger = {
        "type": "pointer",
        "id": "finger",
        "parameters": {"pointerType": "touch"},
        "actions": actions,
    }
    value(
        "document.addEventListener('pointerdown', (e) => (window.met = e.pointerType), true), '0'"
    )
    firefox("input.performActions", context=context, actions=[finger])
    after, now, met = value(f"JSON.stringify([{LIVE}, scrollY, window.met])")
    assert met == "touch"
    assert after == "Every class can win."
    assert now == scrolled  # the finger moved the point, not the page
