"""Fixtures of the scanner's tests, which the compendium's tests use too."""

import functools
import io
import json
import os
import runpy
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from softgeom.source import hub_reachable
from softgeom.web import scripts

__all__ = [
    "asked_anew", "dreams", "javascript", "real_data", "repository", "scripts_folder", "tool",
    "within",
]  # fmt: skip

# Tests are judged by what they find, never by how fast a busy machine finds it.
settings.register_profile("house", deadline=None)
settings.load_profile("house")

# jsonschema, which nbformat imports, builds a parser for international addresses that no test needs
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The clone that the tests belong to."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data, or a skip with the reason."""
    chosen = os.environ.get("SOFTGEOM_DATA")
    if not chosen or not Path(chosen).is_dir():
        pytest.skip("SOFTGEOM_DATA names no folder with real data")
    return Path(chosen)


@pytest.fixture(scope="session")
def dreams(real_data: Path) -> tuple[Path, Path]:
    """The small language model of the data folder and its tokenizer, or a skip."""
    model, tokenizer = (real_data / "models" / name for name in ("aidreams260K.bin", "tok512.bin"))
    if not model.is_file():
        pytest.skip("the data folder has no models/aidreams260K.bin")
    return model, tokenizer


@pytest.fixture(scope="session")
def tool(repository: Path) -> Callable[..., str]:
    """`tool("check_proofs", *arguments)`: what that program of tools/ prints; or SystemExit."""
    load = functools.cache(runpy.run_path)

    def run(name: str, *arguments: object) -> str:
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as said:
            patch.setattr(sys, "argv", [name, *map(str, arguments)])
            load(str(repository / "scanner" / "tools" / f"{name}.py"))["main"]()
        return said.getvalue()

    return run


@pytest.fixture(scope="session")
def within() -> Callable[[float, Callable[[], Any]], bool]:
    """`within(seconds, happens)`: whether it does; asked ten times a second."""

    def wait(seconds: float, happens: Callable[[], Any]) -> bool:
        end = time.monotonic() + seconds
        while not happens() and time.monotonic() < end:
            time.sleep(0.1)
        return bool(happens())

    return wait


@pytest.fixture
def asked_anew() -> Iterator[None]:
    """Whether the hub answers is asked again, by this test and after it."""
    hub_reachable.cache_clear()
    yield
    hub_reachable.cache_clear()


_ANSWER_LINES = """
import { createInterface } from "node:readline";
const call = async (line) => {
  const { url, body, argument } = JSON.parse(line);
  const m = await import(url);
  return eval(`(async () => { ${body} })()`);
};
for await (const line of createInterface({ input: process.stdin }))
  await call(line).then(
    (value) => console.log(JSON.stringify({ value })),
    (error) => console.log(JSON.stringify({ error: error.stack })),
  );
"""


@pytest.fixture(scope="session")
def scripts_folder(repository: Path, tmp_path_factory: Any) -> Path:
    """All JavaScript in one folder, where node finds it: the explorers import the scan page's."""
    folder: Path = tmp_path_factory.mktemp("javascript")
    explorers = repository / "lib" / "papers" / "explorers" / "static"
    for script in (*scripts.FOLDER.glob("*.js"), *explorers.glob("*.js")):
        shutil.copy(script, folder)
    return folder


@pytest.fixture(scope="session")
def javascript(scripts_folder: Path) -> Iterator[Callable[..., Any]]:
    """`javascript(module, body, argument)`: the JSON of what `body` (which may await) returns, with
    the module as `m` and `argument` in scope. One process answers all.
    """
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the explorers' JavaScript cannot run")
    command = [node, "--no-warnings", "--input-type=module", "-e", _ANSWER_LINES]
    pipes: Any = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    with subprocess.Popen(command, **pipes) as process:

        def run(module: str, body: str, argument: Any = None) -> Any:
            url = (scripts_folder / f"{module}.js").as_uri()
            asked = {"url": url, "body": body, "argument": argument}
            print(json.dumps(asked), file=process.stdin, flush=True)
            answer = json.loads(process.stdout.readline())
            assert "error" not in answer, answer["error"]
            return answer.get("value")

        yield run
        process.stdin.close()
