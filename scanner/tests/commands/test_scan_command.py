"""`softgeom scan` writes its three files and tells errors in one sentence."""

import json

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from softgeom.layer import SoftmaxLayer
from softgeom.scan_result import Scan
from softgeom.verdict_table import read_verdicts


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_scan_writes_verdicts_summary_and_evidence(npz, tmp_path, told):
    out = tmp_path / "out"
    said = told("scan", npz, "--out", out)
    table = pd.read_csv(out / "verdicts.csv")
    columns = "class token verdict method steps margin radius holds"
    assert list(table.columns) == columns.split()
    assert table.token[3] == "t3"
    lost = table[table.verdict == "unargmaxable"]
    assert set(lost.holds) == {"for any features", "up to 150"}
    assert table.holds.notna().sum() == len(lost)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["counts"]["unargmaxable"] == len(lost) > 0
    assert summary["feature_set"] == "|x| <= 100"
    with np.load(npz) as file:
        assert Scan.load(out / "evidence.safetensors", SoftmaxLayer(file["W"], file["b"])).verify()
    assert (out / "card.html").read_text().startswith("<!doctype html>")
    assert f"outputs that can never win: {' '.join(lost.token[:20])}" in said
    assert list((out / "blocks").glob("*.safetensors"))


@pytest.mark.parametrize(
    ("gain", "bias", "changes_none"), [(2.0, 0, True), (0.0, 0, False), (2.0, 1, False)]
)
def test_a_norm_that_changes_no_verdict_is_told(tmp_path, gain, bias, changes_none, told):
    W = np.random.default_rng(1).normal(size=(30, 3)).astype("f4")
    tensors = {"lm_head.weight": W, "model.norm.weight": np.float32([1.0, gain, 3.0])}
    tensors |= {"lm_head.bias": np.arange(30, dtype="f4")} if bias else {}
    save_file(tensors, tmp_path / "model.safetensors")
    described = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
    (tmp_path / "config.json").write_text(json.dumps(described))
    lost = []
    for features in ("auto", "unbounded"):
        said = told("scan", "model.safetensors", "--features", features, "--out", features)
        lost.append(read_verdicts(tmp_path / features)["verdict"].tolist())
        assert ("change no verdict" in said) == (changes_none and features == "auto")
    assert (lost[0] == lost[1]) >= changes_none


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
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(npz, refused, options, message):
    refused(message, "scan", npz, *options)


@pytest.mark.parametrize(
    ("name", "arrays", "message"),
    [
        ("none.npz", None, "none.npz"),
        *((f"m.{kind}", {}, "is empty") for kind in ("npz", "onnx", "safetensors", "pt", "bin")),
        ("m.npz", {"W": np.arange(5.0)}, "'W' in shape (5,), not as a matrix"),
        ("m.npz", {"W": np.array([[1.0, np.nan]])}, "m.npz: W has a NaN"),
        ("m.npz", {"W": np.ones((5, 3)), "b": np.ones(4)}, "one entry per class (5)"),
    ],
)
def test_a_file_without_a_layer_is_named(tmp_path, refused, name, arrays, message):
    if arrays:
        np.savez(tmp_path / name, **arrays)
    elif arrays is not None:
        (tmp_path / name).touch()
    refused(message, "scan", name)


def test_real_layers(real_data, told):
    """Every token of the small language model can win: all its programmes were solved."""
    found = json.loads(told("scan", real_data / "models" / "aidreams260K.bin", "--json"))
    counts = {"argmaxable": 512, "tied": 0, "unargmaxable": 0, "undecided": 0}
    assert found["counts"] == counts
