"""A browser for the tests: Debian's Chromium, or the Firefox of `make test-firefox`, driven by
Playwright. Everything is skipped, with the reason, without.

Playwright drives the Firefox that people have by WebDriver BiDi, so nothing of its own needs to be
downloaded. Whatever a test does, its tab must end without a console error and without a request
that leaves the machine. Screenshots go to build/screenshots, to be looked at; nothing compares
them.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

COMMANDS = {"chromium": ("chromium",), "firefox": ("firefox", "firefox-esr")}
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PROFILE = "smoke"
SMALL = (
    "20_scalar_margins",
    "26_margin_audit",
    "90_summary",
)  # seconds each; the summary is what the registers are made from
LOCAL = ("file:", "data:", "blob:", "about:", "http://127.0.0.1:", "ws://127.0.0.1:")


@pytest.fixture(scope="session")
def browsers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    """`browsers(scheme)`: Chromium, or what SOFTGEOM_BROWSER names; one Firefox for each colour
    scheme, since a preference of its own sets that.
    """
    asked = os.environ.get("SOFTGEOM_BROWSER", "chromium")
    found = next(filter(None, map(shutil.which, COMMANDS[asked])), None)
    if not found:
        pytest.skip(f"no {asked} on the PATH (Debian: apt-get install {COMMANDS[asked][-1]})")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed (make env)"
    )
    with playwright.sync_playwright() as driver:

        def launch(scheme: str) -> Any:
            if asked == "chromium":
                return driver.chromium.launch(executable_path=found, args=CHROMIUM_ARGUMENTS)
            bridge = tmp_path_factory.mktemp("firefox") / "firefox"
            words = [sys.executable, str(Path(__file__).with_name("firefox_bridge.py")), found]
            bridge.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
            bridge.chmod(0o755)
            preferences = {
                "layout.css.prefers-color-scheme.content-override": int(scheme == "light")
            }
            return driver.firefox.launch(
                channel="moz-firefox", executable_path=bridge, firefox_user_prefs=preferences
            )

        opened: dict[str, Any] = {}

        def get(scheme: str) -> Any:
            key = scheme if asked == "firefox" else "any"
            if key not in opened:
                opened[key] = launch(scheme)
            return opened[key]

        yield get
        for each in opened.values():
            each.close()


@pytest.fixture
def open_tab(browsers: Callable[[str], Any]) -> Iterator[Callable[..., Any]]:
    """`open_tab(url, **context_options)`: a tab of its own context, watched until the test ends."""
    contexts, errors, requests = [], [], []

    def open_(url: str, **options: Any) -> Any:
        context = browsers(options.get("color_scheme", "light")).new_context(
            **({"viewport": {"width": 1040, "height": 940}} | options)
        )
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(20_000)
        tab.on(
            "console",
            lambda message: errors.append(message.text) if message.type == "error" else None,
        )
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
def screenshot(repository: Path) -> Callable[[Any, str], None]:
    """`screenshot(tab_or_element, name)` keeps a picture in build/screenshots."""
    folder = repository / "build" / "screenshots" / os.environ.get("SOFTGEOM_BROWSER", "")
    folder.mkdir(parents=True, exist_ok=True)

    def take(subject: Any, name: str) -> None:
        options = {"full_page": True} if hasattr(subject, "goto") else {}
        subject.screenshot(path=folder / f"{name}.png", **options)

    return take


@pytest.fixture(scope="session")
def drag() -> Callable[..., None]:
    """`drag(tab, name, right, up)` drags the point of that data-name by so many pixels with the
    mouse.
    """

    def drag_(tab: Any, name: str, right: float, up: float) -> None:
        box = tab.locator(f'[data-name="{name}"] .sg-mark').bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        tab.mouse.move(x, y)
        tab.mouse.down()
        tab.mouse.move(x + right, y - up, steps=8)
        tab.mouse.up()

    return drag_


@pytest.fixture(scope="session")
def site(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site: built once, in a compendium of its own, from the notebooks that `make
    smoke` has executed; where there are none, from small ones that are executed here.
    """
    from compendium import paths, runner
    from compendium.pages import report
    from compendium.profiles import COMMITTED

    root = tmp_path_factory.mktemp("compendium")
    for name in "Makefile README.md pyproject.toml data lib params report".split():
        (root / name).symlink_to(repository / name)
    shutil.copytree(repository / "docs", root / "docs")
    answers = root / "docs" / "answers.md"
    # evidence of claims that the register below leaves out stands as it is written
    claimed = r"<!-- value: \d+-[^>]+-->(.*?)<!-- /value -->"
    told = re.sub(claimed, r"\1", answers.read_text(encoding="utf-8"))
    answers.write_text(told, encoding="utf-8")
    finished = [
        path.stem for path in sorted((repository / "executed" / PROFILE).glob("[0-9]*.ipynb"))
    ]
    finished = [name for name in finished if not name.endswith(".failed")]
    names = finished if "90_summary" in finished else SMALL
    _claims_of(names, repository / "claims", root / "claims")
    (root / "notebooks").mkdir()
    (root / "notebooks" / "lessons").symlink_to(repository / "notebooks" / "lessons")
    for name in names:
        (root / "notebooks" / f"{name}.ipynb").symlink_to(
            repository / "notebooks" / f"{name}.ipynb"
        )
    for kind in ("results", "figures"):
        (root / kind).mkdir()
        # what the README and the answers show
        for profile in COMMITTED:
            (root / kind / profile).symlink_to(repository / kind / profile)
    # and what each target costs
    (root / "results" / "bench").symlink_to(repository / "results" / "bench")
    (root / "build").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTGEOM_ROOT", str(root))
        if names == SMALL:
            for name in SMALL:
                runner.run(name, PROFILE)
        else:
            for kind in ("results", "figures", "executed"):
                shutil.copytree(repository / kind / PROFILE, root / kind / PROFILE)
        front = report.build(PROFILE)
        assert front == paths.root() / "build" / "html" / "index.html"
    if not shutil.which("npm"):
        pytest.skip(
            "no npm on the PATH, and so no MathJax in the report: its formulas would need a network"
        )
    return front.parent


def _claims_of(notebooks: Iterable[str], register: Path, folder: Path) -> None:
    """A register of the claims that these notebooks give evidence for."""
    folder.mkdir()
    for path in register.glob("*.yaml"):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        content["claims"] = [claim for claim in content["claims"] if claim["notebook"] in notebooks]
        used = {claim.get("root") for claim in content["claims"]}
        content["roots"] = {
            key: text for key, text in content.get("roots", {}).items() if key in used
        }
        if content["claims"]:
            (folder / path.name).write_text(
                yaml.safe_dump(content, allow_unicode=True, sort_keys=False), encoding="utf-8"
            )


@pytest.fixture(scope="session")
def jupyterlab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """(address, folder) of a JupyterLab that knows nothing of the user's settings; stopped at the
    end.
    """
    home = tmp_path_factory.mktemp("lab")
    folder = home / "notebooks"
    folder.mkdir()
    notification = (
        home
        / "jupyterlab_settings_dir"
        / "@jupyterlab"
        / "apputils-extension"
        / "notification.jupyterlab-settings"
    )
    notification.parent.mkdir(parents=True)
    # the question would cover the notebook
    notification.write_text('{"fetchNews": "false"}', encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    names = (
        "JUPYTER_CONFIG_DIR JUPYTER_DATA_DIR JUPYTER_RUNTIME_DIR JUPYTERLAB_SETTINGS_DIR "
        "JUPYTERLAB_WORKSPACES_DIR IPYTHONDIR"
    )
    isolated = {name: str(home / name.lower()) for name in names.split()}
    options = [
        "--no-browser",
        "--allow-root",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=",
        f"--ServerApp.root_dir={folder}",
        "--LabApp.extension_manager=readonly",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options],
            env=os.environ | isolated,
            stdout=log,
            stderr=log,
            cwd=folder,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{address}/api/status", server, home / "server.log")
        yield address, folder
    finally:
        server.terminate()
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if server.poll() is not None:
            break
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except OSError:
            time.sleep(0.3)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')[-2000:]}")
