"""Edges come from the code; `why` names what has changed."""

import json

import pytest

from compendium import book, codebase, edges, schedule, why
from compendium.__main__ import main
from compendium.keeping import write_json

FILES = {
    "lib/demo/__init__.py": "",
    "lib/demo/far.py": "ANSWER = 42\n",
    "lib/demo/near.py": "from demo.far import ANSWER\n",
    "lib/demo/shelf.py": "def load(shelf):\n    return shelf.recall('gpt', maker='01_models')\n",
}
TABLES = [f"data/reference/{name}.csv" for name in ("table_one", "table_two", "other")]
CELL = 'seed: int = 0  # seed\nprofile: str = "default"'
CELLS = {
    "01_models": ["from demo import near"],
    "10_user": ["from demo.shelf import load", "open(f'data/reference/table_{seed}.csv')"],
    "11_reader": [
        "x = load_table('10_user', 'x', profile)",
        "y = 'reference/other.csv'; z = root / 'results/bench/asked.csv'",
    ],
    "90_all": ["for name in names:\n    load_record(name, profile)"],
}


@pytest.fixture
def clone(compendium, plant, write_notebook, monkeypatch):
    plant(FILES | dict.fromkeys([*TABLES, "results/bench/asked.csv"], "a\n"))
    for name, cells in CELLS.items():
        write_notebook(name, CELL, *cells)
    plant(dict.fromkeys([f"params/{name}.yaml" for name in CELLS], "seed: 0\n"))
    monkeypatch.setattr(codebase, "LIB", compendium / "lib")
    return compendium


@pytest.fixture
def ran(clone):
    """The clone, after a run of 01_models."""
    output = clone / "executed" / "smoke" / "01_models.ipynb"
    output.parent.mkdir(parents=True)
    why.note("01_models", "smoke", why.inputs("01_models", "smoke"))
    output.touch()
    return clone


def test_edges_follow_imports_names_and_readings(clone):
    found = edges.derive(clone)
    assert found["01_models"] == edges.Needs(("lib/demo/far.py", "lib/demo/near.py"), ())
    one, two, other = TABLES
    assert found["10_user"] == edges.Needs((one, two, "lib/demo/shelf.py"), ("01_models",))
    assert found["11_reader"] == edges.Needs((other, "results/bench/asked.csv"), ("10_user",))
    assert found["90_all"].notebooks == ("01_models", "10_user", "11_reader")
    assert "  10_user --> 11_reader" in schedule.draw().splitlines()


def test_the_edges_of_this_repository(repository):
    found = edges.derive(repository)
    assert "23_margin_sweep" in found["24_robustness"].notebooks
    assert "01_language_models" in found["31_heads"].notebooks
    assert "42_sentiment" in found["43_leader_explanations"].notebooks
    assert len(found["90_summary"].notebooks) == len(found) - 1
    assert "lib/softgeom/language_model/training.py" in found["01_language_models"].files
    assert "lib/softgeom/hardmax/dynamics.py" not in found["10_braid_counts"].files


def test_readings_are_seen_and_writings_are_not(compendium):
    folder = compendium / "data" / "reference"
    (folder / "seen.csv").write_text("a")
    book._record_reads()
    (folder / "seen.csv").read_text()
    (folder / "written.csv").write_text("b")
    (compendium / "elsewhere.csv").write_text("c")
    (compendium / "elsewhere.csv").read_text()
    assert book._reads() == ["data/reference/seen.csv"]


def test_a_reading_without_an_edge_is_found_out(clone, capsys):
    reads = ["results/smoke/10_user/x.csv", "results/smoke/11_reader/own.csv", TABLES[0]]
    record = clone / "executed" / "smoke" / "11_reader.json"
    write_json(record, {"reads": reads})
    assert why.undeclared_reads("11_reader", "smoke") == [TABLES[0]]
    assert main(["edges", "--check", "--profile", "smoke"]) == 1
    said = capsys.readouterr().err
    assert f"11_reader read {TABLES[0]}, which its edges do not name" in said
    write_json(record, {"reads": reads[:2]})
    assert main(["edges", "--check", "--profile", "smoke"]) == 0


def test_why(ran, plant):
    told = why.explain("10_user", "smoke")
    assert told == "make would run 10_user in profile smoke: it has not run here"
    with pytest.raises(ValueError, match="no notebook 'x'; there are 01_models, 10_user"):
        why.explain("x", "smoke")
    assert why.explain("01_models", "smoke").endswith("profile smoke: it is up to date")
    plant({"lib/demo/far.py": "# a comment\nANSWER = 42\n"})
    assert why.is_fresh("01_models", "smoke")
    plant({"lib/demo/far.py": "ANSWER = 43\n", "params/01_models.yaml": "seed: 1\n"})
    assert not why.is_fresh("01_models", "smoke")
    assert why.explain("01_models", "smoke").splitlines() == [
        "make would run 01_models in profile smoke:",
        "  parameter seed has changed",
        "  lib/demo/far.py has changed",
    ]


def test_why_tells_of_kept_things(ran, plant):
    code = {"demo.far": codebase.digest(ran / "lib" / "demo" / "far.py")}
    line = {"entry": "models/gpt-0", "how": "computed", "code": code}
    why.kept_log("01_models", "smoke").write_text(json.dumps(line) + "\n")
    told = why.explain("01_models", "smoke")
    assert "kept models/gpt-0: computed by the last run, would be read" in told
    plant({"lib/demo/far.py": "ANSWER = 43\n"})
    assert "would be computed again: demo.far changed" in why.explain("01_models", "smoke")


def test_a_notebook_that_looks_for_raw_data_runs_again_when_there_is_more(
    clone, plant, write_notebook
):
    write_notebook("12_data", CELL, "from demo.found import reviews")
    reader = "from compendium import paths\nREVIEWS = lambda: paths.find_data('imdb')\n"
    plant({"params/12_data.yaml": "seed: 0\n", "lib/demo/found.py": reader})
    before = {name: why.inputs(name, "smoke") for name in ("01_models", "12_data")}
    plant({"data/raw/imdb/train.parquet": "reviews"})
    changed = {name for name in before if why.inputs(name, "smoke") != before[name]}
    assert changed == {"12_data"}
