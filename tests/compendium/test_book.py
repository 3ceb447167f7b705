"""Records: reruns change nothing, stand-ins never overwrite, bad claims are refused."""

import json
import os
import re
import subprocess

import numpy as np
import pandas as pd
import pytest

from compendium import book
from compendium.corpora import Source

REAL = Source("IMDb reviews", "local")
STAND_IN = Source("generated reviews", "embedded")
PARAMETERS = 'seed: int = 0  # seed\nrate: float = 0.5\nprofile: str = "default"'


@pytest.fixture
def start(compendium, write_notebook):
    write_notebook("10_demo", PARAMETERS)
    given = {"seed": 1, "rate": 0.5, "profile": "smoke", "other": object()}
    return lambda *sources, **changes: book.open_book("10_demo", given | changes, sources)


def _fill(run):
    run.table("numbers", pd.DataFrame({"x": [1, 2], "y": [0.1, 1 / 3]}), caption="two numbers")
    run.value("fraction", np.float64(1 / 3), about="a third", low=0.3, high=0.4)
    run.save()
    return run.results


def test_everything_is_written_but_what_changes_at_each_run(start, compendium):
    folder = _fill(start(REAL))
    assert folder == compendium / "results" / "smoke" / "10_demo"
    written = json.loads((folder / "record.json").read_text())
    assert written["parameters"] == {"seed": 1, "rate": 0.5}
    assert written["sources"][0]["kind"] == "local"
    fraction = {"value": 0.3333333333, "about": "a third", "low": 0.3, "high": 0.4}
    assert written["values"] == {"fraction": fraction}
    assert (folder / "numbers.csv").read_text() == "x,y\n1,0.1\n2,0.3333333333\n"
    execution = json.loads((compendium / "executed" / "smoke" / "10_demo.json").read_text())
    changing = {"commit", "seconds", "host", "finished"}
    assert changing <= set(execution)
    assert 0 <= execution["seconds"] < 3600
    assert not changing & set(written)


def test_stand_in_writes_beside_and_never_over(start):
    real, beside = _fill(start(REAL)), _fill(start(REAL, STAND_IN))
    assert beside == real / "stand-in"
    assert json.loads((real / "record.json").read_text())["sources"] == [book.asdict(REAL)]


def test_a_run_that_lacks_a_source_of_the_committed_one_writes_beside_it(start, caplog):
    model = Source("dreams.bin", "local")
    whole = _fill(start(REAL, model, profile="default"))
    before = (whole / "record.json").read_bytes()
    assert _fill(start(REAL, profile="default")) == whole / "stand-in"
    assert "dreams.bin is not there" in caplog.text
    assert (whole / "record.json").read_bytes() == before
    # more than it had is no loss
    assert _fill(start(REAL, model, Source("more", "local"), profile="default")) == whole


def test_later_notebooks_read_what_ran_last_and_by_hand_the_committed_runs(start):
    _fill(start(REAL))
    run = start(STAND_IN)
    run.table("numbers", pd.DataFrame({"x": [7]}))
    run.save()
    assert book.load_table("10_demo", "numbers", "smoke")["x"].tolist() == [7]
    assert book.load_sources("10_demo", "smoke") == [STAND_IN]
    _fill(start(REAL))
    assert book.load_table("10_demo", "numbers", "smoke")["x"].tolist() == [1, 2]
    _fill(start(REAL, profile="default"))
    assert book.load_table("10_demo", "numbers", "full")["x"].tolist() == [1, 2]


def test_missing_results_and_parameters_name_the_command(start, compendium, write_notebook):
    with pytest.raises(FileNotFoundError, match=r"10_demo.*: run `make 10_demo"):
        book.load_table("10_demo", "numbers", "smoke")
    _fill(start(REAL))
    with pytest.raises(FileNotFoundError, match="recorded no table 'letters'; it has: numbers"):
        book.load_table("10_demo", "letters", "smoke")
    write_notebook("10_demo", PARAMETERS)
    with pytest.raises(ValueError, match="parameters rate are not defined; run"):
        book.open_book("10_demo", {"seed": 1, "profile": "smoke"})


@pytest.fixture
def ruled(register, claim, start):
    """`start`, with a claim; `register` comes first, since it writes a notebook."""
    register(claim("001-a", "experiment"))
    return start


def test_a_notebook_passes_evidence_and_the_rule_decides(ruled):
    run = ruled(REAL)
    assert run.claim("001-a", gain=np.float64(-0.25)) is None
    assert run.verdict("001-a") == "reproduced"
    run.save()
    (written,) = json.loads((run.results / "record.json").read_text())["claims"]
    found = {"verdict": "reproduced", "says": "-0.25 nats", "note": ""}
    assert written == {"id": "001-a", "evidence": {"gain": -0.25}} | found


def test_what_a_notebook_finds_shows_itself(ruled, monkeypatch):
    """A cell displays its last expression alone: most claims stand before it."""
    shown = []
    monkeypatch.setattr(book, "_show", shown.append)
    run = ruled(REAL, STAND_IN)
    run.claim("001-a", gain=-0.25)
    run.conclude("A gain of -0.2 nats.\n")
    assert shown[0] == ("`001-a` **not testable at this scale** (on stand-in data). -0.25 nats")
    assert shown[1].startswith(f"**This run read a stand-in ({STAND_IN.name}):**")
    assert shown[2] == "## What we see\n\nA gain of -0.2 nats."


def test_evidence_of_a_claim_that_there_is_not_is_refused(ruled):
    with pytest.raises(ValueError, match="no claim '001-b'; near it are 001-a"):
        ruled(REAL).claim("001-b", gain=1)


def test_values_that_json_lacks_become_text(start):
    run = start(REAL)
    run.value("infinite", float("inf"))
    run.save()
    written = json.loads((run.results / "record.json").read_text())
    assert written["values"]["infinite"]["value"] == "inf"


def test_asking_for_the_commit_starts_no_filter(start, compendium):
    """The filter that strips notebooks is a Python process for each of them."""

    def git(*arguments):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *arguments],
                       cwd=compendium, check=True, capture_output=True)  # fmt: skip

    ran = compendium / "ran"
    (compendium / ".gitattributes").write_text("*.ipynb filter=nbstripout\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "start")
    git("config", "filter.nbstripout.clean", f"cat; touch '{ran}'")
    # A new time of change makes git look into the file.
    os.utime(next(compendium.rglob("*.ipynb")), (1, 1))
    _fill(start(REAL))
    execution = json.loads((compendium / "executed/smoke/10_demo.json").read_text())
    assert re.fullmatch("[0-9a-f]{7,}(-dirty)?", execution["commit"])
    assert not ran.exists()
