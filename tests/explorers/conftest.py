"""Runs the explorers' JavaScript: under node when it is there, else inside Chromium; skips with the
reason without either.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from softgeom.explorers import scripts

JavaScript = Callable[..., Any]
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def javascript() -> JavaScript:
    """`javascript(module, body, argument)`: the JSON of what `body` (which may await) returns, with
    the module as `m` and `argument` in scope.
    """
    if node := shutil.which("node"):
        return lambda module, body, argument=None: _run_in_node(node, module, body, argument)
    if chromium := shutil.which("chromium"):
        pytest.importorskip(
            "playwright", reason="without node, Playwright is needed to run JavaScript"
        )
        return lambda module, body, argument=None: _run_in_chromium(
            chromium, module, body, argument
        )
    pytest.skip("neither node nor chromium is installed: the explorers' JavaScript cannot run")


def _run_in_node(node: str, module: str, body: str, argument: Any) -> Any:
    url = (scripts.FOLDER / f"{module}.js").as_uri()
    program = (
        'import fs from "node:fs";\n'
        f"import * as m from {json.dumps(url)};\n"
        'const argument = JSON.parse(fs.readFileSync(0, "utf-8"));\n'
        f"console.log(JSON.stringify(await (async () => {{ {body} }})()));"
    )
    done = subprocess.run(
        [node, "--no-warnings", "--input-type=module", "-e", program],
        input=json.dumps(argument),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _run_in_chromium(chromium: str, module: str, body: str, argument: Any) -> Any:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
        tab = browser.new_page()
        files = {
            f"./{path.name}": path.read_text(encoding="utf-8")
            for path in scripts.FOLDER.glob("*.js")
        }
        tab.route("http://explorers.test/*", lambda route: _answer(route, files))
        tab.goto("http://explorers.test/")
        result = tab.evaluate(
            (
                f'async (argument) => {{ const m = await import("./{module}.js"); return (async '
                f"() => {{ {body} }})(); }}"
            ),
            argument,
        )
        browser.close()
        return result


def _answer(route: Any, files: dict[str, str]) -> None:
    """Serve the module files from memory: no server, no port, and nothing leaves the browser."""
    name = "./" + route.request.url.rsplit("/", 1)[1]
    if name == "./":
        route.fulfill(body="<!DOCTYPE html>", content_type="text/html")
    else:
        route.fulfill(body=files[name], content_type="text/javascript")
