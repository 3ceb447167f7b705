"""A notebook runs with the parameters of its profile; only a complete run has the usual name."""

import json

import pytest

from compendium import run

CELL = 'number: int = 1  # a number\nprofile: str = "default"  # where'
PRINT = "import os\nprint(number, profile, os.environ['OMP_NUM_THREADS'])"


@pytest.fixture
def demo(compendium, write_notebook, monkeypatch):
    """`demo(cell)`: what the run says and returns; the notebook ends with that cell."""
    monkeypatch.setattr(run, "watch", lambda parent: None)
    monkeypatch.setenv("SOFTGEOM_PROFILE", "smoke")
    monkeypatch.delenv("JOBS", raising=False)
    (compendium / "notebooks" / "params" / "10_demo.yaml").write_text(
        "number: {smoke: 5, default: 6}\n"
    )

    def demo(cell: str = PRINT) -> int:
        write_notebook("10_demo", CELL, cell)
        return run.main("10_demo")

    return demo


def _printed(path):
    cells = json.loads(path.read_text())["cells"]
    return "".join(cells[-1]["outputs"][0]["text"]).split()


def test_a_run_takes_the_parameters_of_its_profile(demo, compendium, capsys, monkeypatch):
    assert demo() == 0
    smoke = compendium / "executed" / "smoke"
    assert _printed(smoke / "10_demo.ipynb") == ["5", "smoke", "1"]
    assert capsys.readouterr().out.startswith("10_demo runs ...\n10_demo: ")
    monkeypatch.setenv("PARAMS", "number=9")
    assert run.main("10_demo") == 0
    own = compendium / "executed" / "own" / "smoke" / "10_demo.ipynb"
    assert _printed(own) == ["9", "own/smoke", "1"]
    assert (smoke / "10_demo.log").is_file()


def test_a_failure_is_one_line_and_keeps_the_run_before(demo, compendium, capsys, monkeypatch):
    assert demo() == 0
    smoke = compendium / "executed" / "smoke"
    before = (smoke / "10_demo.ipynb").read_text()
    assert demo("raise ValueError('no\\nsuch thing')") == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("error: 10_demo failed in cell 2: ValueError: no such thing (the whole")
    assert "executed/smoke/10_demo.failed.ipynb" in said
    assert (smoke / "10_demo.ipynb").read_text() == before
    assert (smoke / "10_demo.failed.ipynb").is_file()
    monkeypatch.setenv("PARAMS", "nubmer=9")
    assert run.main("10_demo") == 1
    assert "unknown parameter nubmer" in capsys.readouterr().err


def test_a_killed_kernel_is_one_line(demo, capsys):
    assert demo("import os\nos.kill(os.getpid(), 9)") == 1
    assert "the kernel was killed, most likely because memory ran out" in capsys.readouterr().err


def test_what_another_notebook_makes_is_made_first(demo, compendium, capsys):
    made = compendium / "made.txt"
    demo("from pathlib import Path\nPath('made.txt').write_text(profile)")
    made.unlink()
    assert run.with_maker(made.read_text, "10_demo", "own/smoke") == "smoke"
    assert capsys.readouterr().out.endswith(
        "Notebook 10_demo runs first: this one needs its results.\n"
    )
    demo("raise ValueError('broken')")
    assert run.with_maker(made.read_text, "10_demo", "smoke") == "smoke"  # it is there
    made.unlink()
    with pytest.raises(run.NotebookError, match="10_demo failed in cell 2: ValueError: broken"):
        run.with_maker(made.read_text, "10_demo", "smoke")
