"""Edges come from the code; `why` names what has changed."""

import json

import pytest

from compendium import book, codebase, edges, schedule, why
from compendium.__main__ import main
from compendium.keeping import write_json


@pytest.fixture
def clone(compendium, write_notebook, monkeypatch):
    lib = compendium / "lib"
    (lib / "demo").mkdir(parents=True)
    (lib / "demo" / "__init__.py").touch()
    (lib / "demo" / "far.py").write_text("ANSWER = 42\n")
    (lib / "demo" / "near.py").write_text("from demo.far import ANSWER\n")
    (lib / "demo" / "shelf.py").write_text(
        "def load(shelf):\n    return shelf.recall('gpt', maker='01_models')\n"
    )
    for name in ("table_one.csv", "table_two.csv", "other.csv"):
        (compendium / "data" / "reference" / name).write_text("a\n")
    bench = compendium / "results" / "bench" / "asked.csv"
    bench.parent.mkdir(parents=True)
    bench.write_text("a\n")
    cell = 'seed: int = 0  # seed\nprofile: str = "lab"'
    write_notebook("01_models", cell, "from demo import near")
    write_notebook(
        "10_user", cell, "from demo.shelf import load", "open(f'data/reference/table_{seed}.csv')"
    )
    write_notebook(
        "11_reader",
        cell,
        "x = load_table('10_user', 'x', profile)",
        "y = 'reference/other.csv'; z = root / 'results/bench/asked.csv'",
    )
    write_notebook("90_all", cell, "for name in names:\n    load_record(name, profile)")
    for name in ("01_models", "10_user", "11_reader", "90_all"):
        (compendium / "params" / f"{name}.yaml").write_text("seed: 0\n")
    monkeypatch.setattr(codebase, "LIB", lib)
    return compendium


def test_edges_follow_imports_names_and_readings(clone):
    found = edges.derive(clone)
    assert found["01_models"] == edges.Needs(("lib/demo/far.py", "lib/demo/near.py"), ())
    tables = ("data/reference/table_one.csv", "data/reference/table_two.csv")
    assert found["10_user"] == edges.Needs((*tables, "lib/demo/shelf.py"), ("01_models",))
    assert found["11_reader"] == edges.Needs(
        ("data/reference/other.csv", "results/bench/asked.csv"), ("10_user",)
    )
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
    record = {
        "reads": [
            "results/smoke/10_user/x.csv",
            "results/smoke/11_reader/own.csv",
            "data/reference/table_one.csv",
        ]
    }
    write_json(clone / "executed" / "smoke" / "11_reader.json", record)
    assert why.undeclared_reads("11_reader", "smoke") == ["data/reference/table_one.csv"]
    assert main(["edges", "--check", "--profile", "smoke"]) == 1
    assert (
        "11_reader read data/reference/table_one.csv, which its edges do not name"
        in capsys.readouterr().err
    )
    record["reads"].pop()
    write_json(clone / "executed" / "smoke" / "11_reader.json", record)
    assert main(["edges", "--check", "--profile", "smoke"]) == 0


def test_why(clone):
    told = why.explain("01_models", "smoke")
    assert told == "make would run 01_models in profile smoke: it has not run here"
    with pytest.raises(ValueError, match="no notebook 'x'; there are 01_models, 10_user"):
        why.explain("x", "smoke")
    output = clone / "executed" / "smoke" / "01_models.ipynb"
    output.parent.mkdir(parents=True)
    why.note("01_models", "smoke", why.inputs("01_models", "smoke"))
    output.touch()
    assert why.explain("01_models", "smoke").endswith("profile smoke: it is up to date")
    far = clone / "lib" / "demo" / "far.py"
    far.write_text("# a comment\nANSWER = 42\n")
    assert why.is_fresh("01_models", "smoke")
    far.write_text("ANSWER = 43\n")
    (clone / "params" / "01_models.yaml").write_text("seed: 1\n")
    assert not why.is_fresh("01_models", "smoke")
    assert why.explain("01_models", "smoke").splitlines() == [
        "make would run 01_models in profile smoke:",
        "  parameter seed has changed",
        "  lib/demo/far.py has changed",
    ]


def test_why_tells_of_kept_things(clone):
    output = clone / "executed" / "smoke" / "01_models.ipynb"
    output.parent.mkdir(parents=True)
    why.note("01_models", "smoke", why.inputs("01_models", "smoke"))
    output.touch()
    code = {"demo.far": codebase.digest(clone / "lib" / "demo" / "far.py")}
    line = {"entry": "models/gpt-0", "how": "computed", "code": code}
    why.kept_log("01_models", "smoke").write_text(json.dumps(line) + "\n")
    assert "kept models/gpt-0: computed by the last run, would be read" in why.explain(
        "01_models", "smoke"
    )
    (clone / "lib" / "demo" / "far.py").write_text("ANSWER = 43\n")
    assert "would be computed again: demo.far changed" in why.explain("01_models", "smoke")


def test_a_notebook_that_looks_for_raw_data_runs_again_when_there_is_more(clone, write_notebook):
    cell = 'seed: int = 0  # seed\nprofile: str = "lab"'
    write_notebook("12_data", cell, "from demo.found import reviews")
    (clone / "params" / "12_data.yaml").write_text("seed: 0\n")
    reader = "from compendium import paths\nREVIEWS = lambda: paths.find_data('imdb')\n"
    (clone / "lib" / "demo" / "found.py").write_text(reader)
    before = {name: why.inputs(name, "smoke") for name in ("01_models", "12_data")}
    (clone / "data" / "raw" / "imdb").mkdir(parents=True)
    (clone / "data" / "raw" / "imdb" / "train.parquet").write_bytes(b"reviews")
    changed = {name for name in before if why.inputs(name, "smoke") != before[name]}
    assert changed == {"12_data"}
