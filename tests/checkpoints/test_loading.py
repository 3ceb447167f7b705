"""Model folders written by `transformers`: the layer in the file is the layer of the live model."""

import json
import shutil

import numpy as np
import pytest

from softgeom.checkpoints import load_head, load_softmax_layer


@pytest.mark.parametrize(
    "family", ["gpt2", "llama", "gemma", "bert", "roberta", "marian", "sharded"]
)
def test_weights_and_bias_of_each_family(model_folders, family):
    folder, W, b = model_folders[family]
    layer = load_softmax_layer(folder)
    np.testing.assert_array_equal(layer.W, W)
    assert (layer.b is None) == (b is None)
    if b is not None:
        np.testing.assert_array_equal(layer.b, b)


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma", "bert", "roberta", "marian"])
def test_the_ellipsoid_is_what_the_final_norm_can_give(model_folders, family):
    """What the live model feeds its head lies in the set, and on its surface: u = (x - shift) /
    gain has norm sqrt(d).
    """
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = model_folders[family][0]
    automatic = {
        "marian": transformers.MarianMTModel,
        "bert": transformers.BertForMaskedLM,
        "roberta": transformers.RobertaForMaskedLM,
    }.get(family, transformers.AutoModelForCausalLM)
    model = automatic.from_pretrained(folder).eval()
    fed = []
    head = model.get_output_embeddings()
    head.register_forward_pre_hook(lambda _, inputs: fed.append(inputs[0].detach()))
    ids = torch.arange(2, 8)[None]
    with torch.no_grad():
        model(ids, decoder_input_ids=ids) if family == "marian" else model(ids)
    ellipsoid = load_head(folder).features
    u = (fed[0][0].double().numpy() - ellipsoid.bias) / ellipsoid.gain  # (T, d)
    np.testing.assert_allclose(np.linalg.norm(u, axis=1), ellipsoid.radius, rtol=2e-3)
    assert ellipsoid.centred == (family not in {"llama", "gemma"})
    if ellipsoid.centred:
        np.testing.assert_allclose(u.sum(axis=1), 0, atol=1e-3)


def test_an_untied_model_without_its_head_is_not_given_the_embedding(model_folders, tmp_path):
    from safetensors.numpy import load_file, save_file

    folder = model_folders["llama"][0]
    tensors = load_file(folder / "model.safetensors")
    del tensors["lm_head.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    shutil.copy(folder / "config.json", tmp_path)
    with pytest.raises(
        ValueError, match=r"not tied to the output.*model\.embed_tokens\.weight \(11, 8\)"
    ):
        load_softmax_layer(tmp_path)


def test_a_missing_shard_is_named(model_folders, tmp_path):
    shutil.copytree(model_folders["sharded"][0], tmp_path, dirs_exist_ok=True)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    shard = index["weight_map"]["lm_head.weight"]
    (tmp_path / shard).unlink()
    with pytest.raises(ValueError, match=f"{shard} is missing"):
        load_softmax_layer(tmp_path)


def test_an_index_that_leaves_its_folder_is_refused(tmp_path):
    index = {"weight_map": {"lm_head.weight": "../elsewhere.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match="points outside its folder"):
        load_softmax_layer(tmp_path)


def test_token_strings_beside_the_model_are_taken(model_folders, tmp_path):
    shutil.copytree(model_folders["gpt2"][0], tmp_path, dirs_exist_ok=True)
    (tmp_path / "vocab.json").write_text(json.dumps({f"word{i}": i for i in range(9)}))
    assert load_softmax_layer(tmp_path).tokens[7:] == (
        "word7",
        "word8",
        "<unused 9>",
        "<unused 10>",
    )


def test_an_empty_folder_says_what_was_looked_for(tmp_path):
    with pytest.raises(ValueError, match=r"holds no model: looked for model\.safetensors"):
        load_softmax_layer(tmp_path)


@pytest.mark.parametrize("name", ["nowhere/deep/model.npz", "model.npz", "./nothing here"])
def test_a_missing_path_is_not_sent_to_the_hub(name):
    with pytest.raises(ValueError, match="no file or folder"):
        load_softmax_layer(name)


def test_an_unknown_suffix_lists_the_known_ones(tmp_path):
    (tmp_path / "weights.h5").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"no known format: \.npz, \.onnx, \.safetensors"):
        load_softmax_layer(tmp_path / "weights.h5")
