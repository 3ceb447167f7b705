"""Running notebooks: parameters arrive, failures are told, foreign kernels stay out."""

import json
import sys

import pytest

from compendium import __main__ as command_line
from compendium import runner

pytestmark = pytest.mark.filterwarnings("ignore")  # papermill's and jupyter's own


@pytest.fixture
def notebook(compendium, write_notebook, monkeypatch):
    for variable in ("IPYTHONDIR", "JUPYTER_PREFER_ENV_PATH", "MPLBACKEND", "OMP_NUM_THREADS"):
        monkeypatch.setenv(variable, "")  # so that whatever the runner sets is undone afterwards

    def write(*cells):
        given = 'number: int = 1  # a number\nprofile: str = "default"  # where'
        write_notebook("10_demo", given, *cells)
        (compendium / "params" / "10_demo.yaml").write_text("number: 5\n")

    return write


@pytest.fixture
def fails(capsys):
    """`fails(code)`: what a run of the notebook says that ends so."""

    def run(code=1):
        assert command_line.main(["run", "10_demo", "--profile", "smoke"]) == code
        return capsys.readouterr().err.strip().splitlines()

    return run


def test_runs_with_this_interpreter_and_the_profile_s_parameters(compendium, notebook, monkeypatch):
    """A rival kernel of the same name in the user's folder must not win."""
    rival = compendium / "jupyter" / "kernels" / "python3"
    rival.mkdir(parents=True)
    kernel = {"argv": ["/bin/false"], "display_name": "rival", "language": "python"}
    (rival / "kernel.json").write_text(json.dumps(kernel))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(compendium / "jupyter"))
    notebook(
        "import sys, pathlib, compendium.paths as p\n"
        "pathlib.Path('seen.txt').write_text(f'{number} {profile} {sys.executable} {p.root()}')"
    )
    output = runner.run("10_demo", "smoke")
    assert output == compendium / "executed" / "smoke" / "10_demo.ipynb"
    assert output.is_file()
    assert (compendium / "seen.txt").read_text() == f"5 smoke {sys.executable} {compendium}"


def test_a_failure_keeps_its_report_and_ends_with_the_error(compendium, notebook, fails):
    notebook("raise ValueError('the reason')")
    *trace, sentence = fails()
    report = "executed/smoke/10_demo.failed.ipynb"
    where = f"(traceback in {report})"
    assert sentence == f"error: 10_demo.ipynb failed in cell 2: ValueError: the reason {where}"
    assert any("raise ValueError('the reason')" in line for line in trace)
    folder = compendium / "executed" / "smoke"
    assert (folder / "10_demo.failed.ipynb").is_file()
    assert not (folder / "10_demo.ipynb").exists()


_FULL = """import errno, os, pandas
from compendium.book import open_book
book = open_book("10_demo", globals())
book.table("first", pandas.DataFrame({"x": [1]}))
def full(handle):
    raise OSError(errno.ENOSPC, "No space left on device")
os.fsync = full
book.table("second", pandas.DataFrame({"x": [2]}))"""


def test_results_on_a_full_disk_are_named_and_none_is_half_written(compendium, notebook, fails):
    notebook(_FULL)
    results = compendium / "results" / "smoke" / "10_demo"
    assert f"No space left on device: '{results / 'second.csv'}'; earlier" in fails()[-1]
    assert [path.name for path in results.iterdir()] == ["first.csv"]


def test_a_report_on_a_full_disk_is_removed(compendium, notebook, fails, monkeypatch):
    def full(source, target, **_):
        target.write_text("half of it")
        raise OSError(28, "No space left on device")

    notebook("pass")
    monkeypatch.setattr("papermill.execute_notebook", full)
    report = compendium / "executed" / "smoke" / "10_demo.failed.ipynb"
    assert fails(5)[0].startswith(f"error: {report}: No space left on device; what")
    assert not report.exists()


def test_a_killed_kernel_is_told_with_the_cure(notebook, fails):
    notebook("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert "the kernel was killed, most likely because memory ran out" in fails()[-1]


def test_a_misfit_parameter_stops_before_the_kernel(compendium, notebook, fails, monkeypatch):
    notebook("pass")
    (compendium / "params" / "10_demo.yaml").write_text("nummer: 5\n")
    monkeypatch.setattr(runner, "execute", lambda *_: pytest.fail("the notebook was executed"))
    assert "error: params/10_demo.yaml: unknown parameter nummer" in fails()[0]


def test_overrides_run_into_a_folder_of_their_own(compendium, notebook, monkeypatch):
    notebook("from pathlib import Path\nPath('seen.txt').write_text(f'{number} {profile}')")
    monkeypatch.setenv("PARAMS", "number=7")
    assert command_line.main(["run", "10_demo", "--profile", "smoke"]) == 0
    assert (compendium / "seen.txt").read_text() == "7 own/smoke"
    assert (compendium / "executed" / "own" / "smoke" / "10_demo.ipynb").is_file()
    assert not (compendium / "executed" / "smoke").exists()
