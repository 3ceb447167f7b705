"""The Makefile passes on what users give as it was typed: no shell and no make reads it as code."""

import os
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")

HOSTILE = [
    "x'; touch P; echo '", 'x"; touch P; echo "', "$(shell touch P)", "$(touch P)", "`touch P`",
    "$$HOME ${HOME}", "-n --help", 'two words/it\'s "a" model.npz', "back\\slash",
]  # fmt: skip


@pytest.fixture
def make(tmp_path, repository):
    """The Makefile in an empty folder; its interpreter prints arguments and environment."""
    shutil.copy(repository / "Makefile", tmp_path)
    for name in ("pyproject.toml", "requirements.lock"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1, 1))
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    variables = "MODEL OUT PARAMS SOFTGEOM_DATA PAPER SENTENCE NAME ONLY ARGS".split()
    printed = " ".join(f'"${name}"' for name in variables)
    python.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" {printed}\n')
    python.chmod(0o755)
    for stamp in (".made", ".stamp", ".light", ".test", ".lint", ".report"):
        (tmp_path / ".venv" / stamp).touch()
    ours = ("SOFTGEOM", "MAKE", "MFLAGS")
    clean = {key: value for key, value in os.environ.items() if not key.startswith(ours)}

    def make(*arguments: str) -> list[str]:
        done = subprocess.run(
            ["make", "-s", *arguments], cwd=tmp_path, capture_output=True, text=True, env=clean
        )
        assert not (tmp_path / "P").exists()
        return (done.stdout + done.stderr).splitlines()

    return make


@pytest.mark.parametrize("text", HOSTILE)
def test_values_arrive_as_they_were_typed(make, text):
    said = make("scan", *(f"{name}={text}" for name in ("MODEL", "OUT", "PARAMS", "DATA", "ARGS")))
    assert said[:5] == ["-m compendium scan", text, text, text, text]
    assert said[9] == text
    said = make("pointer", f"PAPER={text}", f"SENTENCE={text}")
    assert said[0] == "-m compendium pointer"
    assert said[5:7] == [text, text]
    assert make("why", f"NAME={text}")[7] == text
    assert make("claims", f"ONLY={text}")[8] == text


@pytest.mark.parametrize("text", [*HOSTILE, "../elsewhere", ""])
def test_a_profile_is_one_plain_word(make, text):
    (said, *_) = make("check", f"PROFILE={text}")
    assert "PROFILE must be one plain word: smoke, default, models, hour, paper, or own" in said
    assert make("check", "PROFILE=own/mine")[0] == "-m compendium check"


def test_notebooks_are_asked_for_together(make, tmp_path):
    (tmp_path / "notebooks").mkdir()
    for name in ("10_x", "11_y"):
        (tmp_path / "notebooks" / f"{name}.ipynb").touch()
    assert make("10_x", "11_y", "-j4")[0] == "-m compendium all --jobs 4 10_x 11_y"
    assert make("all")[0] == "-m compendium all --jobs 2"
    said = make("all", "MODELS=1", "PARAMS=seed=1")
    twice = [line for line in said if line.startswith("-m")]
    assert twice == [f"-m compendium all --jobs 2{more}" for more in ("", " --profile models")]
