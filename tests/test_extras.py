"""What needs an extra names it."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("part", "package", "extra"),
    [
        ("from papers import circuits", "torch", "train"),
        ("from papers.language_model import generate", "tokenizers", "train"),
        ("from papers.margins import log_barrier", "torch", "train"),
        ("import papers.hardmax.sentiment", "torch", "train"),
        ("from papers.explorers import FoldExplorer", "anywidget", "lessons"),
    ],
)
def test_an_import_without_its_extra_says_which_extra(part, package, extra):
    script = f"import sys; sys.modules[{package!r}] = None\n{part}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert f": pip install -e '.[{extra}]' in the clone." in done.stderr.splitlines()[-1]
