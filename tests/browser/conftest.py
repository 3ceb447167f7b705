"""A browser for the tests: Debian's Chromium, or the Firefox of `make test-firefox`, driven by
Playwright. Everything is skipped, with the reason, without.

Playwright drives the Firefox that people have by WebDriver BiDi, so nothing of its own needs to be
downloaded. Whatever a test does, its tab must end without a console error and without a request
that leaves the machine. Screenshots go to build/screenshots, to be looked at; nothing compares
them.
"""

from __future__ import annotations

import contextlib
import functools
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
CHROMIUM_ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
    "--disable-sync --no-first-run"
).split()
PROFILE = "smoke"
# seconds each; the summary is what the registers are made from
SMALL = ("20_scalar_margins", "26_margin_audit", "90_summary")
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
    missing = "Playwright is not installed (make env)"
    playwright = pytest.importorskip("playwright.sync_api", reason=missing)
    with playwright.sync_playwright() as driver, contextlib.ExitStack() as opened:

        def launch(scheme: str) -> Any:
            if asked == "chromium":
                return driver.chromium.launch(executable_path=found, args=CHROMIUM_ARGUMENTS)
            bridge = tmp_path_factory.mktemp("firefox") / "firefox"
            words = [sys.executable, str(Path(__file__).with_name("firefox_bridge.py")), found]
            bridge.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
            bridge.chmod(0o755)
            scheming = {"layout.css.prefers-color-scheme.content-override": int(scheme == "light")}
            chosen = {"channel": "moz-firefox", "executable_path": bridge}
            return driver.firefox.launch(firefox_user_prefs=scheming, **chosen)

        kept = functools.cache(lambda scheme: opened.enter_context(launch(scheme)))
        yield lambda scheme: kept(scheme if asked == "firefox" else "any")


@pytest.fixture
def open_tab(browsers: Callable[[str], Any]) -> Iterator[Callable[..., Any]]:
    """`open_tab(url, **context_options)`: a tab of its own context, watched until the test ends."""
    contexts, errors, requests = [], [], []

    def note(message: Any) -> None:
        if message.type == "error":
            errors.append(message.text)

    def open_(url: str, **options: Any) -> Any:
        options = {"viewport": {"width": 1040, "height": 940}} | options
        context = browsers(options.get("color_scheme", "light")).new_context(**options)
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
def site(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site: built once, in a compendium of its own, from the notebooks that `make
    smoke` has executed; where there are none, from small ones that are executed here.
    """
    from compendium import paths
    from compendium.pages import report
    from compendium.profiles import COMMITTED
    from compendium.run import run

    root = tmp_path_factory.mktemp("compendium")
    for name in "Makefile README.md pyproject.toml data lib params report".split():
        (root / name).symlink_to(repository / name)
    shutil.copytree(repository / "docs", root / "docs")
    answers = root / "docs" / "answers.md"
    # evidence of claims that the register below leaves out stands as it is written
    claimed = r"<!-- value: \d+-[^>]+-->(.*?)<!-- /value -->"
    told = re.sub(claimed, r"\1", answers.read_text(encoding="utf-8"))
    answers.write_text(told, encoding="utf-8")
    executed = sorted((repository / "executed" / PROFILE).glob("[0-9]*.ipynb"))
    finished = [path.stem for path in executed if not path.stem.endswith(".failed")]
    names = finished if "90_summary" in finished else SMALL
    _claims_of(names, repository / "claims", root / "claims")
    linked = ["notebooks/lessons", *(f"notebooks/{name}.ipynb" for name in names)]
    # what the README and the answers show, and what each target costs
    linked += [f"{kind}/{profile}" for kind in ("results", "figures") for profile in COMMITTED]
    for place in [*linked, "results/bench"]:
        (root / place).parent.mkdir(exist_ok=True)
        (root / place).symlink_to(repository / place)
    (root / "build").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTGEOM_ROOT", str(root))
        if names == SMALL:
            for name in SMALL:
                run(name, PROFILE)
        else:
            for kind in ("results", "figures", "executed"):
                shutil.copytree(repository / kind / PROFILE, root / kind / PROFILE)
        front = report.build(PROFILE)
        assert front == paths.root() / "build" / "html" / "index.html"
    if not shutil.which("npm"):
        pytest.skip("no npm on the PATH: the report's formulas would need a network")
    return front.parent


def _claims_of(notebooks: Iterable[str], register: Path, folder: Path) -> None:
    """A register of the claims that these notebooks give evidence for."""
    folder.mkdir()
    for path in register.glob("*.yaml"):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        claims = [claim for claim in content["claims"] if claim["notebook"] in notebooks]
        used, roots = {claim.get("root") for claim in claims}, content.get("roots", {})
        content |= {"claims": claims, "roots": {key: roots[key] for key in roots if key in used}}
        if claims:
            text = yaml.safe_dump(content, allow_unicode=True, sort_keys=False)
            (folder / path.name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="session")
def jupyterlab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """(address, folder) of a JupyterLab that knows nothing of the user's settings; stopped at the
    end.
    """
    home = tmp_path_factory.mktemp("lab")
    folder = home / "notebooks"
    folder.mkdir()
    settings = home / "jupyterlab_settings_dir" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    # the question would cover the notebook
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}', "utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    names = (
        "JUPYTER_CONFIG_DIR JUPYTER_DATA_DIR JUPYTER_RUNTIME_DIR JUPYTERLAB_SETTINGS_DIR "
        "JUPYTERLAB_WORKSPACES_DIR IPYTHONDIR"
    )
    isolated = {name: str(home / name.lower()) for name in names.split()}
    options = (
        "--no-browser --allow-root --ServerApp.ip=127.0.0.1 --ServerApp.port_retries=0 "
        "--IdentityProvider.token= --LabApp.extension_manager=readonly "
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"
    ).split()
    options += [f"--ServerApp.port={port}", f"--ServerApp.root_dir={folder}"]
    command, address = [sys.executable, "-m", "jupyterlab", *options], f"http://127.0.0.1:{port}"
    with (home / "server.log").open("wb") as log:
        told = {"env": os.environ | isolated, "stdout": log, "stderr": log}
        server = subprocess.Popen(command, cwd=folder, **told)
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
