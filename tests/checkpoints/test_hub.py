"""The hub path against a server on this machine: which bytes are asked for, and what is said when something fails."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from softgeom.checkpoints import load_head, load_softmax_layer

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize("family", ["marian", "sharded"])
def test_layer_tokens_and_commit(hub, model_folders, family):
    folder, W, b = model_folders[family]
    hub.add_folder(folder)
    hub.files["vocab.json"] = json.dumps({f"word{i}": i for i in range(11)}).encode()
    head = load_head("someone/model")
    np.testing.assert_array_equal(head.layer.W, W)
    assert b is None or np.array_equal(head.layer.b, b)
    assert head.layer.tokens[3] == "word3"
    assert (head.source.kind, head.source.revision) == ("hub", COMMIT)


def test_only_the_needed_byte_ranges_are_fetched(hub, layer_arrays, tmp_path):
    from safetensors.numpy import save_file

    W, _ = layer_arrays
    save_file({"lm_head.weight": W, "model.layers.0.large": np.zeros((500, 500))}, tmp_path / "model.safetensors")
    hub.add_folder(tmp_path)
    np.testing.assert_array_equal(load_softmax_layer("someone/model").W, W)
    assert len(hub.files["model.safetensors"]) > 2_000_000
    assert hub.bytes_of("model.safetensors") < W.nbytes + 400


def test_a_server_that_ignores_ranges_is_told_and_not_swallowed(hub, model_folders):
    hub.add_folder(model_folders["gpt2"][0])
    hub.honours_ranges = False
    with pytest.raises(ValueError, match="answered 200 to a request for bytes"):
        load_softmax_layer("someone/model")


def test_a_truncated_file_on_the_hub_is_named(hub, model_folders):
    hub.add_folder(model_folders["gpt2"][0])
    hub.files["model.safetensors"] = hub.files["model.safetensors"][:-5]
    with pytest.raises(ValueError, match=r"someone/model/model\.safetensors is truncated.*\(5 bytes missing\)"):
        load_softmax_layer("someone/model")


def test_a_model_with_pickles_only_says_what_to_do(hub):
    hub.files["pytorch_model.bin"] = b""
    with pytest.raises(ValueError, match="no safetensors weights"):
        load_softmax_layer("someone/model")


def test_an_unknown_model_is_told(hub):
    with pytest.raises(ValueError, match="no file or folder 'nobody/nothing' here, and the hub has no such model"):
        load_softmax_layer("nobody/nothing")


def test_without_network_it_says_so_within_two_seconds(monkeypatch):
    from compendium import corpora

    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://192.0.2.1:9")  # TEST-NET-1: packets to it are dropped everywhere
    monkeypatch.setenv("HF_HUB_OFFLINE", "")
    corpora.hub_reachable.cache_clear()
    started = time.monotonic()
    with pytest.raises(ValueError, match="hub cannot be reached"):
        load_softmax_layer("someone/model")
    assert time.monotonic() - started < 2
    corpora.hub_reachable.cache_clear()


def test_a_hub_that_breaks_off_is_told(hub, monkeypatch):
    from huggingface_hub import HfApi

    def breaks_off(*_, **__):
        raise RuntimeError("connection reset")  # the client's transport has errors of its own

    monkeypatch.setattr(HfApi, "model_info", breaks_off)
    with pytest.raises(ValueError, match=r"asking the hub failed \(RuntimeError: connection reset\); try again"):
        load_softmax_layer("someone/model")
