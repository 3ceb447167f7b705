"""Runs the explorers' JavaScript in node; skips with the reason without it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from softgeom.explorers import scripts

JavaScript = Callable[..., Any]
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
def javascript() -> Iterator[JavaScript]:
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
            url = (scripts.FOLDER / f"{module}.js").as_uri()
            asked = {"url": url, "body": body, "argument": argument}
            print(json.dumps(asked), file=process.stdin, flush=True)
            answer = json.loads(process.stdout.readline())
            assert "error" not in answer, answer["error"]
            return answer.get("value")

        yield run
        process.stdin.close()
