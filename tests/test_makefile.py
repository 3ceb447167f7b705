"""The Makefile names what each notebook needs, and hands on what users type as it was typed."""

import ast
import os
import re
import shutil
import subprocess

import pytest

from compendium.notebooks import calls, cells

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")

HOSTILE = [
    "x'; touch P; echo '", 'x"; touch P; echo "', "$(shell touch P)", "`touch P`", "$$HOME ${HOME}",
    "-n --help", "back\\slash",
]  # fmt: skip
LAYERS = (".made", ".notebooks", ".lessons", ".tests", ".site")
READERS = {"load_table", "load_record", "load_sources", "find_results"}


@pytest.fixture
def make(tmp_path, repository):
    """The Makefile in an empty folder; its interpreter prints arguments and environment."""
    shutil.copy(repository / "Makefile", tmp_path)
    (tmp_path / "scanner").mkdir()
    for name in ("pyproject.toml", "scanner/pyproject.toml", "requirements.lock"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1, 1))
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    printed = " ".join(f'"${name}"' for name in "MODEL OUT PARAMS SOFTGEOM_DATA ARGS ONLY".split())
    python.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" {printed} "$@"\n')
    python.chmod(0o755)
    for stamp in LAYERS:
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
    assert said[:6] == ["-m compendium scan", text, text, text, text, text]
    assert make("claims", f"ONLY={text}")[6] == text
    assert make("grade", f"ANSWERS={text}", f"TABLE={text}")[-3:] == [text, "--csv", text]
    assert make("grade", f"ANSWERS={text}")[-2:] == ["classroom", text]


@pytest.mark.parametrize("text", ["x'; touch P; echo '", "$(shell touch P)", "../elsewhere", ""])
def test_a_profile_is_one_of_four_or_a_file_of_ones_own(make, text):
    (said, *_) = make("check", f"PROFILE={text}")
    assert "PROFILE must be smoke, default, full, paper, or own/NAME" in said
    assert make("check", "PROFILE=own/mine")[0] == "-m compendium check"


@pytest.fixture
def two(tmp_path, make):
    """Two notebooks, of which neither has run."""
    (tmp_path / "notebooks" / "params").mkdir(parents=True)
    for name in ("10_x", "42_y"):
        (tmp_path / "notebooks" / f"{name}.ipynb").touch()
        (tmp_path / "notebooks" / "params" / f"{name}.yaml").touch()
    return make


def _ran(said):
    return [line.split()[-1] for line in said if line.startswith("-m compendium.run")]


def test_a_notebook_a_chapter_or_all_run_and_what_is_finished_does_not(two, tmp_path):
    assert sorted(_ran(two("all"))) == sorted(_ran(two("smoke"))) == ["10_x", "42_y"]
    assert _ran(two("hardmax")) == _ran(two("42_y")) == ["42_y"]
    (tmp_path / "executed" / "default").mkdir(parents=True)
    (tmp_path / "executed" / "default" / "42_y.ipynb").touch()
    assert _ran(two("all")) == ["10_x"]
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "corpus.txt").touch()
    assert sorted(_ran(two("all", f"DATA={folder}"))) == ["10_x", "42_y"]  # 42 reads data
    os.utime(tmp_path / "notebooks" / "params" / "42_y.yaml")
    assert "42_y" in _ran(two("all"))


@pytest.mark.parametrize(("asked", "jobs"), [((), 2), (("-j1",), 1), (("PROFILE=paper",), 2)])
def test_two_notebooks_run_at_a_time_unless_asked_otherwise(two, tmp_path, asked, jobs):
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text("#!/bin/sh\necho start $3\nsleep 0.5\necho end $3\n")
    said = [line.split()[0] for line in two("all", *asked) if line.startswith(("start", "end"))]
    assert said == (["start", "start", "end", "end"] if jobs == 2 else ["start", "end"] * 2)


def test_other_parameters_are_for_one_notebook_which_always_runs(two, tmp_path):
    (tmp_path / "executed" / "default").mkdir(parents=True)
    (tmp_path / "executed" / "default" / "10_x.ipynb").touch()
    assert _ran(two("10_x")) == []
    assert _ran(two("10_x", "PARAMS=seed=1")) == ["10_x"]
    assert "PARAMS changes one notebook" in two("all", "PARAMS=seed=1")[0]


def _folders(tree: ast.AST) -> set[str]:
    """The folders that a notebook imports from: `lib/papers/margins`."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                top = [*node.module.split("."), alias.name][:2]
                found.add("/".join(["scanner/src" if top[0] == "softgeom" else "lib", *top]))
    return found


def test_the_makefile_names_the_code_and_the_results_that_a_notebook_reads(repository):
    told = subprocess.run(["make", "-npq", "help"], cwd=repository, capture_output=True, text=True)
    rules = re.findall(r"(?m)^executed/default/([\w]+)\.ipynb: (.*)$", told.stdout)
    needs = {name: set(files.split()) for name, files in rules}
    notebooks = sorted((repository / "notebooks").glob("[0-9]*.ipynb"))
    assert needs.keys() == {path.stem for path in notebooks}
    missing = []
    for path in notebooks:
        tree = ast.parse("\n".join(cells(path).values()))
        folders = {folder for folder in _folders(tree) if (repository / folder).is_dir()}
        assert folders or path.stem[0] in "09", "each chapter imports its folder"
        have = {file.rpartition("/")[0] for file in needs[path.stem]}
        missing += [(path.stem, folder) for folder in folders - have]
        read = {first for _, first, _ in calls(tree, *READERS)} - {path.stem, None}
        results = {f"executed/default/{name}.ipynb" for name in read}
        missing += [(path.stem, result) for result in results - needs[path.stem]]
    assert missing == []
