"""Records: reruns change nothing, stand-ins never overwrite, bad claims are refused."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from compendium import book, style
from compendium.corpora import Source

REAL = Source("IMDb reviews", "local")
STAND_IN = Source("generated reviews", "embedded")
PARAMETERS = 'seed: int = 0  # seed\nrate: float = 0.5\nprofile: str = "default"'


@pytest.fixture
def start(register, claim, compendium, write_notebook):
    register(claim("001-a", "experiment"))
    write_notebook("10_demo", PARAMETERS)
    given = {"seed": 1, "rate": 0.5, "profile": "smoke", "other": object()}
    return lambda *sources, **changes: book.open_book("10_demo", given | changes, sources)


def _fill(run):
    run.table("numbers", pd.DataFrame({"x": [1, 2], "y": [0.1, 1 / 3]}), caption="two numbers")
    run.value("fraction", np.float64(1 / 3), about="a third", low=0.3, high=0.4)
    run.value("infinite", float("inf"))
    run.save()
    return run.results


def _record(folder):
    return json.loads((folder / "record.json").read_text())


def test_everything_is_written_but_what_changes_at_each_run(start, compendium):
    folder = _fill(start(REAL))
    assert folder == compendium / "results" / "smoke" / "10_demo"
    written = _record(folder)
    assert written["parameters"] == {"seed": 1, "rate": 0.5}
    assert written["sources"] == [book.asdict(REAL)]
    fraction = {"value": 0.3333333333, "about": "a third", "low": 0.3, "high": 0.4}
    assert written["values"] == {"fraction": fraction, "infinite": {"value": "inf"}}
    assert (folder / "numbers.csv").read_text() == "x,y\n1,0.1\n2,0.3333333333\n"
    execution = json.loads((compendium / "executed" / "smoke" / "10_demo.json").read_text())
    changing = {"commit", "seconds", "host", "finished"}
    assert changing <= set(execution)
    assert not changing & set(written)


def test_a_run_on_other_data_writes_beside_the_committed_one(start):
    model = Source("dreams.bin", "local")
    whole = _fill(start(REAL, model, profile="default"))
    before = (whole / "record.json").read_bytes()
    for sources, aside in (((REAL, STAND_IN), "stand-in"), ((REAL,), "incomplete")):
        assert _fill(start(*sources, profile="default")) == whole / aside
        assert book.find_results("10_demo", "default") == whole / aside
    told = "Data: IMDb reviews (local folder). Missing, unlike in the committed run: dreams.bin. "
    assert (
        told + "Results: `results/default/10_demo/incomplete`"
        in start(REAL, profile="default").opening
    )
    assert (whole / "record.json").read_bytes() == before
    # more than it had is no loss
    assert _fill(start(REAL, model, Source("more", "local"), profile="default")) == whole


@pytest.mark.parametrize(
    ("sources", "gain", "headline"),
    [
        ((REAL,), -1, "It gains"),
        ((REAL,), 1, "It gains (not confirmed)"),
        ((REAL,), None, "It gains (open)"),
        ((REAL, STAND_IN), -1, "Stand-in data, no finding: generated reviews"),
    ],
)
def test_a_headline_says_no_more_than_data_and_verdict_allow(start, sources, gain, headline):
    run, (fig, _) = start(*sources), style.figure()
    style.headline(fig, "It gains")
    run.claim("001-a", gain=gain)
    run.figure("gain", fig, caption="A gain.", alt="a gain", claims=["001-a"])
    assert " ".join(fig.get_suptitle().split()) == headline
    assert run._figures["gain"]["headline"] == headline
    assert ("is not confirmed on this run" in run._figures["gain"]["caption"]) == (gain == 1)
    plt.close(fig)


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


def test_a_notebook_whose_results_are_missing_runs_first(start, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"10_demo.*: run `make 10_demo"):
        book.find_results("10_demo", "smoke")
    monkeypatch.setattr(book, "with_maker", lambda read, *maker: _fill(start(REAL)) and read())
    assert book.load_table("10_demo", "numbers", "smoke")["x"].tolist() == [1, 2]


def test_missing_tables_parameters_and_claims_are_named(start, write_notebook):
    _fill(start(REAL))
    with pytest.raises(FileNotFoundError, match="recorded no table 'letters'; it has: numbers"):
        book.load_table("10_demo", "letters", "smoke")
    with pytest.raises(ValueError, match="parameters rate are not defined; run"):
        book.open_book("10_demo", {"seed": 1, "profile": "smoke"})
    with pytest.raises(TypeError, match="table 'x' must be a pandas DataFrame, not list"):
        start(REAL).table("x", [1])
    with pytest.raises(ValueError, match="no claim '001-b'; near it are 001-a"):
        start(REAL).claim("001-b", gain=1)


def test_a_notebook_passes_evidence_and_the_rule_decides(start):
    run = start(REAL)
    assert run.claim("001-a", gain=np.float64(-0.25)) is None
    assert run.verdict("001-a") == "confirmed"
    run.save()
    found = {"verdict": "confirmed", "says": "-0.25 nats", "note": ""}
    assert _record(run.results)["claims"] == [{"id": "001-a", "evidence": {"gain": -0.25}} | found]


def test_what_a_notebook_finds_shows_itself(start, monkeypatch):
    """A cell displays its last expression alone: most tables and claims stand before it."""
    shown = []
    monkeypatch.setattr(book, "_show", shown.append)
    run = start(REAL, STAND_IN)
    run.table("numbers", pd.DataFrame({"x": [1 / 3]}), caption="thirds")
    run.claim("001-a", gain=-0.25)
    run.conclude("A gain of -0.2 nats.\n")
    opening, table, claim, aside, conclusion = shown
    data = "Data: IMDb reviews (local folder); generated reviews"
    assert opening.startswith(f"Profile **smoke**. {data}")
    assert table == "**Table.** thirds\n\n| x |\n| ---: |\n| 0.333 |"
    where = "Title of 001-a. 001, Section a, `001-a`"
    assert f"(on stand-in data): {where}\n\n- *Stated.* What 001-a says." in claim
    assert claim.endswith("- *Found.* -0.25 nats")
    assert aside.startswith(f"**This run read a stand-in ({STAND_IN.name}):**")
    assert conclusion == "## What we see\n\nA gain of -0.2 nats."
    assert _record(run.results)["conclusion"] == "A gain of -0.2 nats."


def test_a_table_shows_itself_once_in_the_cell_that_made_it(start, monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shown = []
    monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: shell)
    monkeypatch.setattr("IPython.display.display", shown.append)
    frame = start(REAL).table("numbers", pd.DataFrame({"x": [1, 2]}), caption="two")
    del shown[:]
    frame._ipython_display_()
    assert shown == []
    shell.execution_count += 1
    frame._ipython_display_()
    assert shown[0].equals(pd.DataFrame({"x": [1, 2]}))
    assert type(frame * 2) is type(frame[["x"]]) is pd.DataFrame
