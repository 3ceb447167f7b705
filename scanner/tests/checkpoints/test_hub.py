"""The hub against a server here: which bytes are asked for, what a failure says."""

import json
import shutil
import time

import numpy as np
import pytest

from softgeom.checkpoints import load_head, load_softmax_layer, packages, transfer

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def loaded_from_hub(W, b):
    """The head of the repository, which is this one."""
    head = load_head("someone/model")
    np.testing.assert_array_equal(head.layer.W, W)
    assert b is None or np.array_equal(head.layer.b, b)
    assert (head.source.kind, head.source.revision) == ("hub", COMMIT)
    return head


@pytest.mark.parametrize("family", ["marian", "sharded"])
def test_layer_tokens_and_commit(hub, model_folders, family):
    folder, W, b = model_folders[family]
    hub.add_folder(folder)
    hub.files["vocab.json"] = json.dumps({f"word{i}": i for i in range(10)}).encode()
    hub.files["added_tokens.json"] = json.dumps({"<new>": 10}).encode()
    assert loaded_from_hub(W, b).layer.tokens[3::7] == ("word3", "<new>")


def test_only_the_needed_byte_ranges_are_fetched(hub, layer_arrays, tmp_path):
    from safetensors.numpy import save_file

    W, _ = layer_arrays
    tensors = {"lm_head.weight": W, "model.layers.0.large": np.zeros((500, 500))}
    save_file(tensors, tmp_path / "model.safetensors")
    hub.add_folder(tmp_path)
    np.testing.assert_array_equal(load_softmax_layer("someone/model").W, W)
    assert len(hub.files["model.safetensors"]) > 2_000_000
    assert hub.bytes_of("model.safetensors") < W.nbytes + 400


@pytest.mark.parametrize(
    ("fault", "point"),
    [
        ({"honours_ranges": False}, "answered 200 to a request for bytes"),
        ({"claimed_size": 2**50}, "claims an impossible size of 1,125,899,906,842,624 bytes"),
        *(
            ({"told": told}, "the server sent other bytes than the range")
            for told in (None, "garbage", "bytes 5-9/100", "bytes 0-0/x", f"bytes 0-0/{10**23}")
        ),
        (
            {"claimed_size": 50 * 10**9, "lies_about": "tokenizer.json"},
            r"tokenizer\.json has 50,000,000,000 bytes, more than",
        ),
    ],
)
def test_a_server_that_answers_wrongly_is_told_and_not_swallowed(hub, model_folders, fault, point):
    hub.add_folder(model_folders["gpt2"][0])
    hub.files["tokenizer.json"] = b"{}"
    vars(hub).update(fault)
    with pytest.raises(ValueError, match=point):
        load_head("someone/model")


def test_a_model_with_pickles_only_or_unknown_is_told(hub):
    hub.files["pytorch_model.bin"] = b""
    with pytest.raises(ValueError, match="no safetensors weights"):
        load_softmax_layer("someone/model")
    with pytest.raises(ValueError, match="'nobody/nothing' here, and the hub has no such model"):
        load_softmax_layer("nobody/nothing")


def test_without_network_it_says_so_within_two_seconds(monkeypatch, asked_anew):
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    # TEST-NET-1: packets to it are dropped everywhere
    monkeypatch.setenv("HF_ENDPOINT", "http://192.0.2.1:9")
    monkeypatch.setenv("HF_HUB_OFFLINE", "")
    started = time.monotonic()
    with pytest.raises(ValueError, match="hub cannot be reached"):
        load_softmax_layer("someone/model")
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("family", ["marian", "sharded"])
def test_offline_a_model_in_the_clients_own_cache_is_found(
    monkeypatch, asked_anew, model_folders, tmp_path, family
):
    folder, W, b = model_folders[family]
    cached = tmp_path / "models--someone--model"
    shutil.copytree(folder, cached / "snapshots" / COMMIT)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text(COMMIT)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    loaded_from_hub(W, b)
    for name, revision in (("someone/else", None), ("someone/model", "v2")):
        with pytest.raises(ValueError, match="hub cannot be reached"):
            load_head(name, revision=revision)


def test_a_hub_that_breaks_off_is_told(hub, monkeypatch):
    def breaks_off(*_, **__):
        raise transfer.TransferError("the connection broke 3 times")

    monkeypatch.setattr("softgeom.checkpoints.hub.fetch", breaks_off)
    with pytest.raises(ValueError, match="hub failed: the connection broke 3 times; try again"):
        load_softmax_layer("someone/model")


def test_what_has_arrived_is_not_asked_for_again_unless_it_was_damaged(hub, model_folders):
    folder, W, _ = model_folders["gpt2"]
    hub.add_folder(folder)
    load_softmax_layer("someone/model")
    first = hub.bytes_of("model.safetensors")
    np.testing.assert_array_equal(load_softmax_layer("someone/model").W, W)
    assert hub.bytes_of("model.safetensors") - first < 2  # its size alone
    for path in packages.cache_folder().rglob("model.safetensors.*"):
        path.write_bytes(path.read_bytes()[:-1] + b"x")
    np.testing.assert_array_equal(load_softmax_layer("someone/model").W, W)


@pytest.mark.parametrize("sha", ["\x1b[31m", "main", None, "0123"])
def test_a_hub_that_names_no_commit_is_refused(hub, monkeypatch, sha):
    hub.commit = sha
    with pytest.raises(ValueError, match="the hub names no commit for revision 'main'") as caught:
        load_softmax_layer("someone/model")
    assert "\x1b" not in str(caught.value)


def test_a_listing_nested_too_deeply_is_one_sentence(hub):
    hub.files["config.json"] = b"[" * 200_000
    hub.files["model.safetensors"] = b""
    with pytest.raises(ValueError, match=r"config\.json .*nested too deeply"):
        load_softmax_layer("someone/model")
