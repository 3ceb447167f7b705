"""Model folders written by `transformers`: the layer in the file is the layer of the live model."""

import gzip
import io
import json
import lzma
import shutil
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import softgeom as sg
from softgeom.checkpoints import load_head, load_softmax_layer
from softgeom.checkpoints.activation import named_activation
from softgeom.checkpoints.conventions import find_norm
from softgeom.checkpoints.tensors import ArrayStore


def test_a_folder_that_holds_a_model_goes_before_a_released_one_of_its_name(
    model_folders, tmp_path, monkeypatch
):
    folder, W, _ = model_folders["gpt2"]
    (tmp_path / "ppocr-v4").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(load_softmax_layer("ppocr-v4").W, W)


@pytest.mark.parametrize(("name", "assumed"), [("ReLU", True), ("ReLU6", False)])
def test_two_classes_suffice_and_a_bound_that_is_assumed_is_named(tmp_path, name, assumed):
    np.savez(tmp_path / "two.npz", W=np.eye(2))
    head = replace(load_head(tmp_path / "two.npz"), activation=named_activation(name))
    assert ("is assumed" in head.feature_set()[1]) == assumed


def test_gains_are_read_as_each_family_stores_them():
    """Other families whose name begins alike store them whole."""
    store = ArrayStore({"model.norm.weight": np.ones(3)}, "a model")
    for family, less in (("gemma3_text", 1), ("qwen3_next", 1), ("gemma3n_text", 0), ("llama", 0)):
        assert find_norm(store, {"model_type": family}, "lm_head.weight").less == less


@pytest.mark.parametrize(
    ("head", "norm", "architecture", "claimed"),
    [
        ("score", "model.norm", "LlamaForSequenceClassification", True),
        ("score", "transformer.ln_f", "ImageGPTForImageClassification", False),
        ("classification_head.out_proj", "decoder.layer_norm", "BartForSequenceClassification",
         False),
    ],
)  # fmt: skip
def test_a_norm_is_claimed_only_right_before_the_head(head, norm, architecture, claimed):
    """ImageGPT takes the mean over positions in between, others pool or have a dense layer."""
    store = ArrayStore({f"{norm}.weight": np.ones(3)}, "a model")
    family = architecture.partition("For")[0].lower()
    config = {"architectures": [architecture], "model_type": family}
    assert (find_norm(store, config, f"{head}.weight") is not None) == claimed


def test_what_changes_probabilities_behind_the_layer_is_said(tmp_path, caplog):
    from safetensors.numpy import save_file

    save_file({"lm_head.weight": np.eye(3, dtype=np.float32)}, tmp_path / "model.safetensors")
    cap = {"final_logit_softcapping": 30.0}
    for config, said in ((cap, True), ({"text_config": cap}, True), ({"logit_scale": 1.0}, False)):
        caplog.clear()
        (tmp_path / "config.json").write_text(json.dumps({"model_type": "gemma", **config}))
        assert (load_head(tmp_path).behind is not None) == said
        sg.ceilings(tmp_path, [0])
        sg.floor(tmp_path, [{0: 1.0}])
        assert caplog.text.count("scores are capped (30 * tanh(score / 30))") == 2 * said


def test_an_untied_model_without_its_head_is_not_given_the_embedding(model_folders, tmp_path):
    from safetensors.numpy import load_file, save_file

    folder = model_folders["llama"][0]
    tensors = load_file(folder / "model.safetensors")
    del tensors["lm_head.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    shutil.copy(folder / "config.json", tmp_path)
    with pytest.raises(ValueError, match=r"not tied to .*model\.embed_tokens\.weight \(11, 8\)"):
        load_softmax_layer(tmp_path)


def test_a_missing_shard_is_named(model_folders, tmp_path):
    shutil.copytree(model_folders["sharded"][0], tmp_path, dirs_exist_ok=True)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    shard = index["weight_map"]["lm_head.weight"]
    (tmp_path / shard).unlink()
    with pytest.raises(ValueError, match=f"{shard} is missing"):
        load_softmax_layer(tmp_path)


def test_an_empty_folder_and_an_index_that_leaves_its_folder_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"holds no model: looked for model\.safetensors"):
        load_softmax_layer(tmp_path)
    index = {"weight_map": {"lm_head.weight": "../elsewhere.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match="points outside its folder"):
        load_softmax_layer(tmp_path)


def test_a_matrix_in_a_file_of_its_own_is_read_and_an_array_beside_a_model_is_none(
    tmp_path, layer_arrays
):
    W, b = layer_arrays
    np.save(tmp_path / "W.npy", W)
    head = load_head(tmp_path / "W.npy", bias=b)
    np.testing.assert_array_equal(head.layer.W, W)
    np.testing.assert_array_equal(head.layer.b, b)
    np.savez(tmp_path / "head.npz", W=W[::-1])
    np.testing.assert_array_equal(load_head(tmp_path).layer.W, W[::-1])
    np.save(tmp_path / "vector.npy", W[0])
    with pytest.raises(ValueError, match=r"vector\.npy.* it has no matrix"):
        load_head(tmp_path / "vector.npy")


@pytest.mark.parametrize("place", ["head.npz", "am/head.npz"])
def test_the_only_model_in_a_folder_is_read_and_several_are_named(tmp_path, layer_arrays, place):
    W, b = layer_arrays
    (tmp_path / "am").mkdir()
    np.savez(tmp_path / place, W=W, b=b)
    (tmp_path / "config.json").write_text("{}")
    np.testing.assert_array_equal(load_softmax_layer(tmp_path).W, W)
    np.savez((tmp_path / place).with_name("other.npz"), W=W)
    with pytest.raises(ValueError, match=r"several models \((am/)?head\.npz, (am/)?other\.npz\)"):
        load_softmax_layer(tmp_path)


def archive(*members: str) -> bytes:
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w") as made:
            for member in members:
                made.writestr(member, b"")
        return file.getvalue()


UNREAD = [
    ("m.pt2", archive("m/archive_format", "m/models/model.json"), "torch.export: save state_dict"),
    ("m.jit", archive("m/data.pkl", "m/constants.pkl"), "TorchScript program"),
    ("m.keras", archive("config.json", "model.weights.h5"), "Keras archive"),
    ("m.model", archive("m/data.pkl"), r"PyTorch: give it the ending \.pt"),
    ("m.zip", archive("W.npy"), r"arrays: give it the ending \.npz"),
    ("n.zip", archive("model.onnx"), r"archive \(ZIP\): unpack"),
    ("o.zip", b"PK and nothing else", r"no known format: \.npz, \.npy, \.onnx"),
    ("m.h5", b"\x89HDF\r\n\x1a\n", "HDF5 file"),
    ("m.xz", lzma.compress(b"x"), r"compressed \(xz\): unpack"),
    ("model.bin", gzip.compress(b"x"), r"compressed \(gzip\)"),
    ("m.bin", b"version https://git-lfs.github.com/spec/v1", "pointer of Git LFS"),
    ("n.bin", b"<!DOCTYPE html>", "web page"),
    ("m.ggml", b"GGUF\3\0\0\0", r"ending \.gguf"),
    ("m.lite", b"\x1c\0\0\0TFL3", r"ending \.tflite"),
    ("saved_model.pb", b"\x08\x01", "SavedModel"),
    ("a.mlpackage/weight.bin", bytes(80), "Core ML"),
]


@pytest.mark.parametrize(("name", "content", "said"), UNREAD, ids=[row[0] for row in UNREAD])
def test_what_no_reader_takes_is_named_by_its_content(tmp_path, name, content, said):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    folders = [path.parent] if name in ("saved_model.pb", "a.mlpackage/weight.bin") else []
    for place in (path, *folders):
        with pytest.raises(ValueError, match=rf"^[^\n]*{said}[^\n]*\.$"):
            load_head(place)


def test_a_torchscript_program_is_recognised_under_any_name(tmp_path):
    torch = pytest.importorskip("torch")
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 3)), str(tmp_path / "m.pt"))
    with pytest.raises(ValueError, match=r"is a TorchScript program: save model\.state_dict"):
        load_head(tmp_path / "m.pt")


@pytest.mark.parametrize("name", ["nowhere/deep/model.npz", "model.npz", "./nothing here"])
def test_a_missing_path_is_not_sent_to_the_hub(name):
    with pytest.raises(ValueError, match="no file or folder"):
        load_softmax_layer(name)
