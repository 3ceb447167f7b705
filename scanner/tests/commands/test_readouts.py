"""What every command says about a model that does more than a softmax behind its layer."""

import json
import re

import numpy as np
import pytest

import softgeom as sg
from softgeom import options as asked
from softgeom.asking import Answers
from softgeom.checkpoints import load_head

W = np.array([[1, 0], [-1, 1], [-1, -1], [0, 0]], np.float32)
ON = np.array([9, 9, 9, 2], np.float32)  # label 3 is on at 0, and never the largest
ROWS = np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [0.45, 0.45]], np.float32)


@pytest.fixture
def folder(tmp_path):
    """Write a model folder: its head, a normalisation without gain, its configuration."""
    from safetensors.numpy import save_file

    def written(config, rows=ROWS, head="lm_head.weight", norm="model.norm.weight"):
        ones = np.ones(rows.shape[1], np.float32)
        save_file({head: rows, norm: ones}, tmp_path / "model.safetensors")
        (tmp_path / "config.json").write_text(json.dumps(config))
        return tmp_path

    return written


@pytest.fixture
def npz(tmp_path):
    np.savez(tmp_path / "m.npz", W=W, b=ON)
    return tmp_path / "m.npz"


CAUSAL = {"tie_word_embeddings": False}
GRANITE = {"architectures": ["GraniteForCausalLM"], "model_type": "granite", **CAUSAL}
GEMMA = {"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", **CAUSAL}
CASES = {
    "scale": ({**GRANITE, "logits_scaling": 8.0}, 10, lambda y: y / 8),
    "cap": ({**GEMMA, "final_logit_softcapping": 30.0}, 100, lambda y: 30 * np.tanh(y / 30)),
    "plain": ({"architectures": ["LlamaForCausalLM"], "model_type": "llama", **CAUSAL}, 4, None),
}


@pytest.mark.parametrize("name", CASES)
def test_ceilings_of_a_folder_are_those_of_its_own_output(folder, name):
    config, size, behind = CASES[name]
    model = folder(config, size * ROWS)
    turn = np.linspace(0, 2 * np.pi, 4001)
    radius = sg.load(model).features.radius  # sqrt(2) and room for rounding
    y = radius * np.stack([np.cos(turn), np.sin(turn)], 1) @ (size * ROWS.T.astype(float))
    y = y if behind is None else behind(y)
    own = (np.exp(y) / np.exp(y).sum(1, keepdims=True)).max(0)
    found = sg.ceilings(model, features="norm")
    assert (own <= found.ceiling).all()
    if name == "scale":
        assert (found.reached <= own * 1.001).all()
    wins = str(sg.explain(model, 0, features="norm"))
    assert float(re.search(r"probability there is at least ([0-9.]+)%", wins)[1]) <= 100 * own[0]
    said = str(found)
    assert ("scaled or capped" in said) == (behind is not None)
    explained = str(sg.explain(model, 4, features="norm"))
    assert ("scaled or capped" in explained) == (behind is not None)


def test_tied_t5_scales_its_features(folder):
    config = {"architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "d_model": 2}
    model = folder({**config, "tie_word_embeddings": True}, 4 * ROWS, "shared.weight",
                   "decoder.final_layer_norm.weight")  # fmt: skip
    head = load_head(model)
    known, why = head.feature_set()
    assert np.allclose(known.gain, head.features.gain / np.sqrt(2))
    assert "times 0.707107" in why


def test_a_label_that_is_on_is_not_called_never(npz, told, tmp_path):
    said = told("scan", npz, "--rule", "threshold", "--out", tmp_path / "out")
    assert "can be on: 4" in said
    assert "can never win" not in said
    assert "each label is decided by itself" in said
    card = (tmp_path / "out" / "card.html").read_text()
    assert "0 of 4 labels are never on" in card
    assert "4 answers re-checked" in told("verify", tmp_path / "out", npz)
    argmax = told("scan", npz, "--out", tmp_path / "argmax")
    assert "outputs that can never win: 3" in argmax


def test_a_label_that_is_never_on_is_proven(npz, told):
    found = sg.scan((W, -ON), rule="threshold", features="ball", bound=1.0)
    assert isinstance(found, Answers)
    assert [a.verdict for a in found.answers] == ["impossible"] * 4
    assert sg.scan((W, -ON), [0], rule="threshold").counts["possible"] == 1
    text = str(sg.explain((W, -ON), 3, rule="threshold"))
    assert "is never on" in text
    assert "at most 12.0%" in text  # the sigmoid of -2


@pytest.mark.parametrize("verb", [sg.prune, sg.repair])
def test_what_is_about_the_largest_is_refused_of_labels(verb):
    with pytest.raises(ValueError, match="decides each label by itself"):
        verb((W, ON), rule="threshold")


def test_an_option_without_meaning_for_labels_is_refused(npz, refused):
    refused("--wider has no meaning", "scan", npz, "--rule", "threshold", "--wider")


def test_a_scan_says_which_layer_it_judged(folder, told, tmp_path):
    model = folder({**GRANITE, "logits_scaling": 8.0})
    found = sg.scan(model)
    assert found.head.tensors["weight"] == "lm_head.weight"
    assert found.head.shape == (5, 2)
    assert found.head.known_set  # the box was scanned, the normalisation is known
    assert found.head.readout.scale == 0.125
    for part in ("lm_head.weight (5, 2)", "would use another set", "multiplied by 0.125"):
        assert part in str(found)
    assert sg.scan(model, features="norm").head.known_set is None
    assert found[0:2].head == found.head
    said = told("scan", model, "--out", tmp_path / "out")
    assert "multiplied by 0.125" in said
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["head"]["shape"] == [5, 2]
    assert summary["head"]["readout"]["scale"] == 0.125
    assert "multiplied by 0.125" in (tmp_path / "out" / "card.html").read_text()


def test_probabilities_of_another_kind_are_not_printed(monkeypatch):
    from dataclasses import replace

    from softgeom.readout import Readout

    def one_vs_rest(model, **options):
        found = load_head(model, **options)
        return replace(found, readout=Readout(probability="normalised sigmoids"))

    monkeypatch.setattr(asked, "load_head", one_vs_rest)
    with pytest.raises(ValueError, match="normalised sigmoids"):
        sg.ceilings((W, ON))
    assert "robability" not in str(sg.explain((W, ON), 3)).split("behind")[0]
    assert "probability at most" not in sg.scan((W, ON))._repr_html_()
