"""Progress: silent when asked, silent when short, and readable in a log when long."""

import operator

import pytest

from softgeom import progress
from softgeom.parallel import run_blocks


def test_short_work_prints_nothing(capsys):
    assert list(progress.track(range(3), "short")) == [0, 1, 2]
    assert capsys.readouterr().err == ""


def test_long_work_says_what_and_how_far(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    assert list(progress.track(range(4), "long work")) == [0, 1, 2, 3]
    out = capsys.readouterr().err
    assert "long work: 100%" in out
    assert "4/4" in out
    assert out.isascii()


@pytest.mark.parametrize(("n_jobs", "backend"), [(1, "loky"), (2, "threading")])
def test_blocks_report_under_their_heading_only_when_asked(capsys, monkeypatch, n_jobs, backend):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    jobs = [(n, 2) for n in range(3)]
    assert run_blocks(operator.mul, jobs, n_jobs=n_jobs, backend=backend) == [0, 2, 4]
    assert capsys.readouterr().err == ""
    assert run_blocks(operator.mul, jobs, n_jobs=n_jobs, backend=backend, description="blocks") == [
        0,
        2,
        4,
    ]
    assert "blocks: 100%" in capsys.readouterr().err


@pytest.mark.parametrize(("n_jobs", "backend"), [(1, "loky"), (2, "threading")])
def test_what_jobs_are_lists_of_is_counted(capsys, monkeypatch, n_jobs, backend):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    jobs = [([1, 2, 3],), ([4],)]
    how = {"n_jobs": n_jobs, "backend": backend, "description": "sums", "unit": "numbers"}
    assert run_blocks(sum, jobs, **how) == [6, 4]
    said = capsys.readouterr().err
    assert "4/4" in said
    assert "numbers/s" in said
