"""The hub against a server here: which bytes are asked for, what a failure says."""

import json
import shutil
import sys
import time

import numpy as np
import pytest

from softgeom.checkpoints import load_head, load_softmax_layer, packages

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
    ("fault", "said"),
    [
        ({"honours_ranges": False}, r"model/model\.safetensors: the server sent other bytes"),
        ({"told": "bytes 5-9/100"}, "other bytes than the range 0-7"),
        ({"commit": "\x1b[31m"}, "the hub names no commit for revision 'main'; try again"),
        ({"url": "api"}, r"asking the hub failed \(division by zero\); try again"),
        ({"url": "range"}, r"model/model\.safetensors: division by zero; try again"),
        ({"url": "file"}, r"model/config\.json: division by zero; try again"),
        ({"files": {"pytorch_model.bin": b""}}, "no safetensors weights"),
        ({"files": {"config.json": b"[" * 200_000, "model.safetensors": b""}}, "nested too deeply"),
    ],
    ids=str,
)
def test_an_answer_that_is_wrong_is_one_sentence(hub, model_folders, monkeypatch, fault, said):
    hub.add_folder(model_folders["gpt2"][0])
    vars(hub).update(fault)
    broken = {"api": "HfApi.model_info", "range": "utils.http_backoff", "file": "hf_hub_download"}
    if hub.url in broken:
        monkeypatch.setattr(f"huggingface_hub.{broken[hub.url]}", lambda *_, **__: 1 / 0)
    with pytest.raises(ValueError, match=said) as caught:
        load_head("someone/model")
    assert str(caught.value).isprintable()


def test_a_model_that_is_not_there_and_a_client_that_is_not_there(hub, monkeypatch):
    with pytest.raises(ValueError, match="'nobody/nothing' here, and the hub has no such model"):
        load_softmax_layer("nobody/nothing")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ValueError, match=r"pip install 'softgeom\[hub\]'"):
        load_softmax_layer("someone/model")


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


def test_what_has_arrived_is_not_asked_for_again(hub, model_folders):
    folder, W, _ = model_folders["gpt2"]
    hub.add_folder(folder)
    load_softmax_layer("someone/model")
    first = hub.bytes_of("model.safetensors")
    np.testing.assert_array_equal(load_softmax_layer("someone/model").W, W)
    assert hub.bytes_of("model.safetensors") == first
    for path in packages.cache_folder().rglob("model.safetensors.*"):
        path.write_bytes(path.read_bytes()[:-1])
    np.testing.assert_array_equal(load_softmax_layer("someone/model").W, W)
