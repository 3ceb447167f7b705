"""A sample of the hostile files and hubs at each run; `make torture` tries all of them and writes the tables."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks")


@pytest.mark.parametrize(
    ("family", "chosen"),
    [
        ("files", ("--every", "9")),
        ("files", ("--only", "out block")),
        ("hub", ("--only", "names")),
        ("hub", ("--only", "once")),
    ],
)
def test_a_sample_is_answered_rightly(repository, family, chosen):
    command = [sys.executable, "-m", "torture", family, *chosen]
    answer = subprocess.run(command, cwd=repository / "tools", capture_output=True, text=True, timeout=500)
    assert answer.returncode == 0, answer.stdout
    assert " 0 answered wrongly" in answer.stdout
    assert not answer.stdout.startswith("0 hostile")
