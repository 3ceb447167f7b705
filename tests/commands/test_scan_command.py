"""`softgeom scan` writes its three files and tells errors in one sentence."""

import json

import numpy as np
import pandas as pd
import pytest

from softgeom.bottleneck import Scan, SoftmaxLayer
from softgeom.bottleneck.certifying import partial
from softgeom.bottleneck.verdict_table import read_verdicts
from softgeom.cli import main
from softgeom.commands import boundary


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """`refused(model, message, *options)`: a scan of it ends with that sentence alone."""
    monkeypatch.chdir(tmp_path)

    def refused_(model, message, *options):
        assert main(["scan", str(model), *options]) == boundary.REFUSED
        said = capsys.readouterr().err
        assert said.startswith("softgeom: ")
        assert message in said
        assert said.count("\n") == 1

    return refused_


def test_scan_writes_verdicts_summary_and_evidence(npz, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["scan", str(npz), "--out", str(out)]) == 0
    table = pd.read_csv(out / "verdicts.csv")
    columns = "class token verdict method steps margin radius holds"
    assert list(table.columns) == columns.split()
    assert table.token[3] == "t3"
    lost = table[table.verdict == "unargmaxable"]
    assert set(lost.holds) == {"whatever the features", "up to 150"}
    assert table.holds.notna().sum() == len(lost)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["counts"]["unargmaxable"] == int((table.verdict == "unargmaxable").sum()) > 0
    assert summary["feature_set"] == "|x| <= 100"
    with np.load(npz) as file:
        assert Scan.load(out / "evidence.npz", SoftmaxLayer(file["W"], file["b"])).verify()
    assert (out / "card.html").read_text().startswith("<!doctype html>")
    never = table.token[table.verdict == "unargmaxable"]
    assert f"never an output: {' '.join(never[:20])}" in capsys.readouterr().out
    assert list((out / "blocks").glob("*.npz"))


@pytest.mark.parametrize(
    ("gain", "bias", "told"), [(2.0, 0, True), (0.0, 0, False), (2.0, 1, False)]
)
def test_a_norm_that_changes_no_verdict_is_told(tmp_path, capsys, gain, bias, told):
    W = np.random.default_rng(1).normal(size=(30, 3)).astype("f4")
    tensors = {"lm_head.weight": W, "model.norm.weight": np.float32([1.0, gain, 3.0])}
    tensors |= {"lm_head.bias": np.arange(30, dtype="f4")} if bias else {}
    np.savez(tmp_path / "m.npz", **tensors)
    lost = []
    for features in ("auto", "unbounded"):
        out = str(tmp_path / features)
        main(["scan", str(tmp_path / "m.npz"), "--features", features, "--out", out])
        lost.append(read_verdicts(tmp_path / features / "verdicts.csv")["verdict"].tolist())
        assert ("change no verdict" in capsys.readouterr().out) == (told and features == "auto")
    assert (lost[0] == lost[1]) >= told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--low", "200"], "low < high"),
        (["--low", "0", "--features", "ball"], "--low has no meaning with --features ball"),
        (["--classes", "3-x"], "class number"),
        (["--classes", "40"], "between 0 and 39"),
        (["--fail-on", "nonsense"], "--fail-on"),
        (["--out", ""], "--out is empty"),
        (["--out", "model.npz"], "is a file: name a folder"),
        (["--script", "GREEK"], "GREEK"),
        (["--device", "nonsense"], "nonsense"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(npz, refused, options, message):
    refused(npz, message, *options)


@pytest.mark.parametrize(
    ("name", "arrays", "message"),
    [
        ("none.npz", None, "none.npz"),
        *(
            (f"m.{kind}", {}, "is empty: fetch")
            for kind in ("npz", "onnx", "safetensors", "pt", "bin")
        ),
        ("m.npz", {"W": np.arange(5.0)}, "'W' in shape (5,), not as a matrix (classes, features)"),
        ("m.npz", {"W": np.array([[1.0, np.nan]])}, "m.npz: W has a NaN"),
        (
            "m.npz",
            {"W": np.ones((5, 3)), "b": np.ones(4)},
            "m.npz: b must have one entry per class (5)",
        ),
    ],
)
def test_a_file_without_a_layer_is_named(tmp_path, refused, name, arrays, message):
    if arrays:
        np.savez(tmp_path / name, **arrays)
    elif arrays is not None:
        (tmp_path / name).touch()
    refused(tmp_path / name, message)


def test_real_layers(real_data, tmp_path):
    """Every token of the small language model can win: all its programmes were solved."""
    file = real_data / "models" / "aidreams260K.bin"
    assert main(["scan", str(file), "--out", str(tmp_path)]) == 0
    counts = json.loads((tmp_path / "summary.json").read_text())["counts"]
    assert counts == {"argmaxable": 512, "tied": 0, "unargmaxable": 0, "undecided": 0}


def test_verdicts_only_claims_smaller_margins(tmp_path, monkeypatch):
    """The same verdicts as the whole scan, and of those that win margins that are below its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(partial, "FEWEST", 1000)
    W = np.random.default_rng(0).normal(size=(2000, 128)).astype(np.float32)
    np.savez("model.npz", W=W)
    assert main(["scan", "model.npz", "--out", "whole", "--quiet"]) == 0
    assert main(["scan", "model.npz", "--verdicts-only", "--out", "part", "--quiet"]) == 0
    whole, part = (read_verdicts(tmp_path / name / "verdicts.csv") for name in ("whole", "part"))
    assert list(whole.verdict) == list(part.verdict)
    assert (part.margin < whole.margin).mean() > 0.8
    assert main(["verify", "part", "model.npz"]) == 0
