"""Notebooks run in order, several at a time, each once; forks leave nothing behind."""

import io
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from compendium import schedule
from compendium.schedule import Task

CELL = 'number: int = 1  # a number\nprofile: str = "default"  # where'


@pytest.fixture
def clone(compendium, write_notebook):
    """10_early reads what 20_late records; 30_alone stands alone; each notes its run."""
    note = (
        "import json, os, sys, time\n"
        "with open('ran.jsonl', 'a') as file:\n"
        "    print(json.dumps([NAME, number, profile, os.getppid(), sys.flags.hash_randomization,"
        " 'papermill' in sys.modules]), file=file)"
    )
    early = {"10_early": "load_table('20_late', 'x')"}
    for name, reads in (early | {"20_late": "", "30_alone": ""}).items():
        cells = (f"NAME = {name!r}\n{note}", f"if False:\n    book.{reads}" if reads else "pass")
        write_notebook(name, CELL, *cells)
        (compendium / "params" / f"{name}.yaml").write_text("number: {default: 5, models: 6}\n")
    (compendium / "params" / "30_alone.yaml").write_text("number: 5\n")
    return compendium


@pytest.fixture
def make_all(clone):
    def run(*arguments: str, code: int = 0, **environment: str) -> str:
        env = os.environ | {"PYTHONHASHSEED": "0", "SOFTGEOM_PROFILE": "smoke"} | environment
        command = [sys.executable, "-m", "compendium", "all", *arguments]
        how = dict(cwd=clone, env=env, capture_output=True, text=True, timeout=300)
        done = subprocess.run(command, **how)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    return run


def _ran(clone):
    path = clone / "ran.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    path.unlink(missing_ok=True)
    return found


def test_each_runs_once_after_what_it_reads_in_forks_of_one_process(make_all, clone):
    said = make_all()
    ran = _ran(clone)
    names = [entry[0] for entry in ran]
    assert sorted(names) == ["10_early", "20_late", "30_alone"]
    assert names.index("20_late") < names.index("10_early")
    # only a kernel that was forked from the scheduler has papermill
    assert all(entry[5] for entry in ran) == (sys.platform == "linux")
    assert re.search(r"3 notebooks in \d+ s: results/smoke", said)
    assert "[0 of 3 notebooks, " in said
    assert "up to date" in make_all()
    (clone / "params" / "20_late.yaml").write_text("number: 6\n")
    make_all("--jobs", "1")
    assert [entry[:2] for entry in _ran(clone)] == [["20_late", 6], ["10_early", 5]]


def test_profiles_overrides_and_unknown_names(make_all, clone, monkeypatch):
    make_all(SOFTGEOM_PROFILE="models")  # those with a column, on what default makes
    *first, last = [entry[:3] for entry in _ran(clone)]
    # side by side, in either order
    assert sorted(first) == [["20_late", 5, "default"], ["20_late", 6, "models"]]
    assert last == ["10_early", 6, "models"]
    make_all("10_early", PARAMS="number=9", SOFTGEOM_PROFILE="default")
    assert [entry[:3] for entry in _ran(clone)] == [["10_early", 9, "own/default"]]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for chosen, overrides, said in (
        (["11_x"], "", "no notebook '11_x'; there are 10_early"),
        ([], "number=9", "PARAMS changes one notebook"),
        (["10_early"], "nummer=9", "unknown parameter nummer"),
    ):
        with pytest.raises(ValueError, match=said):
            schedule.run(chosen, "default", 1, overrides)


def test_a_failure_is_shown_and_what_else_ran_stays(make_all, clone, write_notebook):
    write_notebook("20_late", CELL, "raise ValueError('the reason')")
    said = make_all("--jobs", "1", code=1)
    assert "raise ValueError('the reason')" in said
    assert "error: 20_late failed" in said
    assert [entry[0] for entry in _ran(clone)] in ([], ["30_alone"])
    assert not (clone / "executed" / "smoke" / "10_early.ipynb").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_the_scheduler(clone, write_notebook, within, number):
    cell = "import os, time\nopen('kernel', 'w').write(str(os.getpid()))\ntime.sleep(100)"
    write_notebook("30_alone", CELL, cell)
    command = [sys.executable, "-m", "compendium", "all", "--profile", "smoke", "30_alone"]
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    env = os.environ | {"PYTHONHASHSEED": "0"}
    process = subprocess.Popen(command, cwd=clone, env=env, **quiet)
    place = clone / "kernel"
    try:
        assert within(120, lambda: place.exists() and place.read_text())
        process.send_signal(number)
        process.wait(120)
    finally:
        process.kill()
        process.wait()
    assert within(10, lambda: not os.path.exists(f"/proc/{place.read_text()}"))


def test_the_longest_way_starts_first_and_a_log_gets_a_line_a_minute(monkeypatch):
    a, b, c, d = (Task("default", name) for name in "abcd")
    graph = {a: set(), b: {a}, c: set(), d: {b, c}}
    ways = schedule._ways_to_the_end(graph, {a: 1.0, b: 5.0, c: 4.0, d: 2.0})
    assert ways == {a: 8.0, b: 7.0, c: 6.0, d: 2.0}
    now = [1000.0]
    monkeypatch.setattr(schedule.time, "monotonic", lambda: now[0])
    line = schedule.Line(stream := io.StringIO())
    for text, seconds, ended in (("a", 0, 0), ("b", 1, 0), ("c", 1, 1), ("d", 61, 0)):
        now[0] += seconds
        line.show(text, now=bool(ended))
    assert stream.getvalue() == "a\nc\nd\n"
