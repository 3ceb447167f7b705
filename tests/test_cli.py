"""`softgeom scan` writes its three files, tells errors in one sentence, and goes on where it was
stopped.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from softgeom.bottleneck import Scan, SoftmaxLayer
from softgeom.bottleneck.examples import uniform_layer
from softgeom.cli import main


@pytest.fixture
def model(tmp_path):
    """A small layer with imprisoned classes as .npz."""
    layer = uniform_layer(40, 2)
    path, tokens = tmp_path / "model.npz", np.array([f"t{i}" for i in range(40)])
    np.savez(path, W=layer.W, b=layer.bias, tokens=tokens)
    return path


def test_scan_writes_verdicts_summary_and_evidence(model, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    assert main(["scan", str(model), "--out", str(out)]) == 0
    table = pd.read_csv(out / "verdicts.csv")
    columns = "class token verdict method steps margin radius holds"
    assert list(table.columns) == columns.split()
    assert table.token[3] == "t3"
    lost = table[table.verdict == "unargmaxable"]
    assert set(lost.holds) <= {"whatever the features", "up to 100"}
    assert table.holds.notna().sum() == len(lost)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["counts"]["unargmaxable"] == int((table.verdict == "unargmaxable").sum()) > 0
    assert summary["feature_set"] == "|x| <= 100"
    with np.load(model) as file:
        assert Scan.load(out / "evidence.npz", SoftmaxLayer(file["W"], file["b"])).verify()
    assert (out / "card.html").read_text().startswith("<!doctype html>")
    never = table.token[table.verdict == "unargmaxable"]
    assert f"never an output: {' '.join(never[:20])}" in capsys.readouterr().out
    assert list((out / "blocks").glob("*.npz"))


@pytest.mark.parametrize(
    "options", ["--features unbounded", "--features ball --bound 2", "--bound 1 --low -0.3"]
)
def test_feature_sets_of_the_command_line(model, tmp_path, options) -> None:
    assert main(["scan", str(model), "--out", str(tmp_path / "out"), *options.split()]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--features", "norm"], "no final normalisation"),
        (["--low", "200"], "low < high"),
        (["--low", "0", "--features", "ball"], "--low has no meaning with --features ball"),
        (["--bound", "3", "--features", "unbounded"], "--bound has no meaning"),
        (["--classes", "3-x"], "class number"),
        (["--classes", "40"], "between 0 and 39"),
        (["--fail-on", "nonsense"], "--fail-on"),
        (["--out", ""], "--out is empty"),
        (["--script", "GREEK"], "GREEK"),
        (["--device", "nonsense"], "nonsense"),
    ],
)
def test_errors_are_one_sentence_and_a_non_zero_exit(
    model, tmp_path, capsys, options, message
) -> None:
    place = [] if "--out" in options else ["--out", str(tmp_path / "out")]
    assert main(["scan", str(model), *place, *options]) == 1
    error = capsys.readouterr().err
    assert error.startswith("softgeom: ")
    assert message in error
    assert error.count("\n") == 1


def test_results_are_not_written_into_a_file(model, capsys) -> None:
    assert main(["scan", str(model), "--out", str(model)]) == 1
    assert "is a file: name a folder" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["m.npz", "m.onnx", "m.safetensors", "m.pt", "m.bin"])
def test_empty_file_is_named(tmp_path, capsys, name) -> None:
    (tmp_path / name).touch()
    assert main(["scan", str(tmp_path / name), "--out", str(tmp_path / "out")]) == 1
    assert f"{name} is empty: fetch" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"W": np.arange(5.0)}, r"'W' in shape (5,), not as a matrix (classes, features)"),
        ({"W": np.array([[1.0, np.nan]])}, "m.npz: W has a NaN"),
        ({"W": np.ones((5, 3)), "b": np.ones(4)}, "m.npz: b must have one entry per class (5)"),
    ],
)
def test_a_layer_that_is_none_names_its_file(tmp_path, capsys, arrays, message) -> None:
    np.savez(tmp_path / "m.npz", **arrays)
    assert main(["scan", str(tmp_path / "m.npz"), "--out", str(tmp_path / "out")]) == 1
    assert message in capsys.readouterr().err


def test_missing_file_is_named(tmp_path, capsys) -> None:
    assert main(["scan", str(tmp_path / "none.npz"), "--out", str(tmp_path)]) == 1
    assert "none.npz" in capsys.readouterr().err


def test_real_layers(real_data, tmp_path) -> None:
    """Every token of the small language model can win: all its programmes were solved."""
    file = real_data / "models" / "aidreams260K.bin"
    assert main(["scan", str(file), "--out", str(tmp_path)]) == 0
    counts = json.loads((tmp_path / "summary.json").read_text())["counts"]
    assert counts == {"argmaxable": 512, "tied": 0, "unargmaxable": 0, "undecided": 0}


def test_recogniser_has_imprisoned_characters() -> None:
    pytest.importorskip("onnx")
    from softgeom.bottleneck import scan
    from softgeom.checkpoints import ppocr_head

    try:
        layer = ppocr_head()
    except ValueError as error:
        pytest.skip(str(error))
    found = scan(layer, np.arange(0, 6625, 25))
    assert found.verify()
    assert found.counts["undecided"] == 0
    assert 4 <= found.counts["unargmaxable"] <= 14
