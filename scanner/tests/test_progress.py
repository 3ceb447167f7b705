"""Progress: silent when asked, silent when short, and readable in a log when long."""

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
def test_blocks_report_only_when_asked_and_count_what_they_are_lists_of(
    capsys, monkeypatch, n_jobs, backend
):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    jobs, how = [([1, 2, 3],), ([4],)], {"n_jobs": n_jobs, "backend": backend}
    assert run_blocks(sum, jobs, **how) == [6, 4]
    assert capsys.readouterr().err == ""
    assert run_blocks(sum, jobs, **how, description="sums") == [6, 4]
    assert "2/2" in capsys.readouterr().err
    assert run_blocks(sum, jobs, **how, description="sums", unit="numbers") == [6, 4]
    said = capsys.readouterr().err
    for words in ("sums: 100%", "4/4", "numbers/s"):
        assert words in said
