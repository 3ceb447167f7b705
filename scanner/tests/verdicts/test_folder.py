"""The proofs of a folder are verified; what is made from them for people is not read back."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from softgeom.blocks import block_path, code
from softgeom.certifying.folder import EVIDENCE, SUMMARY, TABLE, verify_folder, write_folder
from softgeom.certifying.verdict import Finding, Unknown
from softgeom.cli import main
from softgeom.commands import boundary
from softgeom.examples import uniform_layer
from softgeom.features import Ball, Box
from softgeom.layer import SoftmaxLayer, fingerprint
from softgeom.results import write_layer
from softgeom.scanner import scan


def example() -> SoftmaxLayer:
    """Sixty classes on two features: unargmaxable ones, winners, and a pair of twins."""
    layer = uniform_layer(60, 2, seed=3)
    return SoftmaxLayer(np.vstack([layer.W, layer.W[:1]]), np.append(layer.bias, layer.bias[0]))


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    out = tmp_path_factory.mktemp("original")
    write_folder(out, scan(example()), {"model": "example"})
    return out


@pytest.fixture
def out(original, tmp_path):
    shutil.copytree(original, tmp_path / "scan")
    return tmp_path / "scan"


def refused(out, match: str, layer=None) -> None:
    with pytest.raises(ValueError, match=match) as error:
        verify_folder(out, layer or example())
    assert "\n" not in str(error.value)


def test_an_untouched_folder_is_verified(out):
    report = verify_folder(out, example())
    assert report.scanned == report.classes == 61
    assert report.counts["tied"] == 2
    assert (report.fingerprint, report.features) == (fingerprint(example()), "|x| <= 100")
    summary = json.loads((out / SUMMARY).read_text())
    assert (summary["model"], summary["counts"]) == ("example", report.counts)
    assert summary["fingerprint"] == fingerprint(example())


def test_evidence_of_another_model_or_none_is_refused(out):
    refused(out, "another layer", SoftmaxLayer(example().W * 2, example().b))
    (out / EVIDENCE).unlink()
    refused(out, "no file of proofs at")


def test_everything_in_a_folder_is_verified_and_the_rest_is_named(out, capsys):
    """A scan beside ceilings, and answers beside both."""
    layer = out.parent / "layer.safetensors"
    write_layer(layer, example())
    assert main(["ceiling", str(layer), "0", "--out", str(out)]) == boundary.DONE
    assert main(["ask", str(layer), "--among", "0", "1", "--out", str(out.parent / "a")]) in (0, 3)
    shutil.copy(out.parent / "a" / "answers.safetensors", out)
    (out / TABLE).write_text("all is well")
    os.truncate(out / SUMMARY, 10**12)  # sparse: nobody can read it
    capsys.readouterr()
    assert main(["verify", str(out), str(layer)]) == boundary.DONE
    said = capsys.readouterr().out
    assert "61 verdicts re-checked" in said
    assert "1 ceilings of probability re-checked" in said
    assert "orders" in said
    assert "not checked: ceilings.csv, summary.json, verdicts.csv" in said
    for name in (EVIDENCE, "answers.safetensors", "ceilings.safetensors"):
        whole = (out / name).read_bytes()
        (out / name).write_bytes(whole[:-8])
        assert main(["verify", str(out), str(layer)]) == boundary.REFUSED
        assert name in capsys.readouterr().err
        (out / name).write_bytes(whole)
    assert main(["verify", str(out.parent), str(layer)]) == boundary.REFUSED
    assert "holds no proofs" in capsys.readouterr().err


def test_the_name_of_a_block_says_what_it_is_about(tmp_path):
    """Layer and stage, feature set, classes, and the code that decides."""
    layer = fingerprint(example())
    first = block_path(tmp_path, layer, "key", Box(1.0), np.arange(3))
    others = [("other", Box(1.0), 3), ("key", Box(2.0), 3), ("key", Box(1.0), 4)]
    names = {
        block_path(tmp_path, layer, key, features, np.arange(n)).name for key, features, n in others
    } | {block_path(tmp_path, "0" * 64, "key", Box(1.0), np.arange(3)).name}
    assert first == block_path(tmp_path, layer, "key", Box(1.0), np.arange(3, dtype=np.int32))
    assert first.parent == tmp_path
    assert len({first.name, *names}) == 5
    assert all(name.startswith("block-") and name.endswith(".safetensors") for name in names)


def test_other_code_gives_blocks_another_name(monkeypatch):
    ours = code()
    monkeypatch.setattr(Path, "read_bytes", lambda path: b"other")
    assert code.__wrapped__() != ours


def test_a_weakened_verdict_is_refused(out, capsys):
    whole = scan(example())
    weak = Finding(11, Unknown(np.inf, "who knows"), "lp", 0, np.inf, np.nan)
    whole = replace(whole, findings=[weak if f.index == 11 else f for f in whole.findings])
    write_folder(out, whole)
    assert verify_folder(out, whole.layer).undecided == (11,)
    write_layer(out / "layer.safetensors", whole.layer)
    assert main(["verify", str(out), str(out / "layer.safetensors")]) == boundary.REFUSED
    assert "Class 11 (11) is stored as undecided, but is" in capsys.readouterr().err


def test_a_folder_lies_in_new_ones_and_holds_a_page(tmp_path):
    out = tmp_path / "one" / "two"
    write_folder(out, scan(example(), [0, 5], features=Ball(2.0)), card="a page")
    assert (out / "card.html").read_text() == "a page"
    report = verify_folder(out, example())
    assert (report.scanned, report.features) == (2, "||x|| <= 2")
    write_folder(out, scan(example(), [0, 5], features=Ball(2.0)))
    assert not (out / "card.html").exists()
