"""Notebooks run alone: none finds what another left behind."""

import subprocess

import pytest

from compendium.alone import run_alone

CELL = 'profile: str = "default"  # where'
LEAVES = "from pathlib import Path\nPath('left.txt').write_text('a')"


@pytest.fixture
def clone(compendium, write_notebook):
    write_notebook("10_leaves", CELL, LEAVES)
    write_notebook("11_finds", CELL, "open('left.txt').read()")
    for name in ("notebooks/params/10_leaves.yaml", "notebooks/params/11_finds.yaml"):
        (compendium / name).write_text("{}\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=compendium, check=True)


def test_a_notebook_that_needs_what_another_left_is_named(clone, compendium):
    left, finds = run_alone(["10_leaves", "11_finds"], "smoke")
    assert (left.name, left.failure) == ("10_leaves", "")
    assert "FileNotFoundError" in finds.failure
    assert str(finds).startswith("11_finds: failed: error: 11_finds failed in cell 2")
    assert not (compendium / "executed").exists()
