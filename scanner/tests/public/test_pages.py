"""Every block of the pages for users of the library runs as it is printed."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from softgeom.checkpoints import RELEASED
from softgeom.cli import main

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROOT = DOCS.parents[1]
PAGES = ("library.md", "howto.md")
_BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    text = (DOCS / page).read_text(encoding="utf-8")
    for package in ("sklearn", "torch"):
        if package in text:
            pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    blocks = _BLOCK.findall(text)
    assert len(blocks) >= 5
    for language, block in blocks:
        if language == "python":
            exec(compile(block, page, "exec"), names)
            continue
        for line in block.splitlines():
            if line.startswith("softgeom "):
                assert main(shlex.split(line)[1:]) == 0, line
            else:
                line = line.replace("python -c", f'"{sys.executable}" -c')
                subprocess.run(["bash", "-e"], input=line, text=True, check=True)


def test_the_readme_shows_what_a_scan_prints(tmp_path, monkeypatch, capsys):
    if not RELEASED["ppocr-v4"].available():
        pytest.skip("ppocr-v4 is neither installed nor in the cache")
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = page.split("$ softgeom ")[1].split("```")[0].splitlines()
    monkeypatch.chdir(tmp_path)
    assert main(shown[0].split()) == 0
    said = re.sub(r" in [0-9.]+ s", " in 4 s", capsys.readouterr().out).splitlines()
    assert [line for line in shown[1:] if line != "..."] == [said[0], *said[-len(shown) + 3 :]]
