"""A browser for the tests: Debian's Chromium, driven by Playwright. Without either, the tests are
skipped with the reason.

Whatever a test does, its tab must end without a console error and without a request that leaves the
machine.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compendium.pages.site import SETTINGS

ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
    "--disable-sync --no-first-run"
).split()
LOCAL = ("file:", "data:", "blob:", "about:", "http://127.0.0.1:", "ws://127.0.0.1:")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, started once."""
    found = shutil.which("chromium")
    if not found:
        pytest.skip("no chromium on the PATH (Debian: apt-get install chromium)")
    missing = "Playwright is not installed (make test-browser installs it)"
    playwright = pytest.importorskip("playwright.sync_api", reason=missing)
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture
def open_tab(browser: Any) -> Iterator[Callable[..., Any]]:
    """`open_tab(url, **context_options)`: a tab of its own context, watched until the test ends."""
    contexts, errors, requests = [], [], []

    def note(message: Any) -> None:
        if message.type == "error":
            errors.append(message.text)

    def open_(url: str, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1040, "height": 940}} | options)
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(20_000)
        tab.on("console", note)
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.on("websocket", lambda socket: requests.append(socket.url))
        tab.goto(url)
        return tab

    yield open_
    for context in contexts:
        context.close()
    assert errors == []
    assert [url for url in requests if not url.startswith(LOCAL)] == []


@pytest.fixture(scope="session")
def phone() -> dict[str, Any]:
    """Options of a tab on a phone."""
    size = {"width": 375, "height": 800}
    return {"viewport": size, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pages that stand alone, as the site copies them."""
    from compendium.pages import site

    folder = tmp_path_factory.mktemp("pages")
    site.write_pages(folder)
    return folder


@pytest.fixture(scope="session")
def drag() -> Callable[..., None]:
    """`drag(tab, point, right, up)` drags an element, or the point of that data-name, by so many
    pixels with the mouse.
    """

    def drag_(tab: Any, point: Any, right: float, up: float, steps: int = 8) -> None:
        if isinstance(point, str):
            point = tab.locator(f'[data-name="{point}"] .sg-mark')
        box = point.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        tab.mouse.move(x, y)
        tab.mouse.down()
        tab.mouse.move(x + right, y - up, steps=steps)
        tab.mouse.up()

    return drag_


@pytest.fixture(scope="session")
def jupyterlab(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    """(address, folder) of a JupyterLab that knows nothing of the user's settings."""
    home = tmp_path_factory.mktemp("lab")
    folder, log = home / "notebooks", home / "server.log"
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = (
        f"--no-browser --allow-root --ServerApp.ip=127.0.0.1 --ServerApp.port={port} "
        f"--ServerApp.port_retries=0 --ServerApp.root_dir={folder} --IdentityProvider.token= "
        f"--LabApp.app_settings_dir={repository / SETTINGS / 'lab'} "
        "--LabApp.extension_manager=readonly"
    ).split()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")}
    with log.open("wb") as said:
        given = {"env": kept | {"HOME": str(home)}, "stdout": said, "stderr": said}
        server = subprocess.Popen([sys.executable, "-m", "jupyterlab", *options], **given)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{address}/api/status", server, log)
        yield address, folder
    finally:
        server.terminate()
        server.wait(timeout=30)


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(url, timeout=2).close()
        if server.poll() is not None:
            break
        time.sleep(0.3)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')[-2000:]}")
