from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from compendium import corpora
from compendium.models import trained
from compendium.models.encoded import load_encoded
from compendium.models.store import load_trained, trained_gpt
from papers.language_model import GPT, load_model, save_model

TEXT = "a small text about a small model.\n" * 20
SOURCE = corpora.Source("test text", "local")


@pytest.fixture(autouse=True)
def processed(tmp_path, monkeypatch):
    monkeypatch.setattr("compendium.paths.processed_dir", lambda: tmp_path / "processed")
    return tmp_path / "processed"


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_model_comes_back_as_it_was_and_weights_of_others_are_refused(
    tiny, tmp_path, tied, dtype
):
    model = GPT(replace(tiny, tie_embeddings=tied), seed=8).to(dtype)
    tokens = torch.arange(10)[None]
    save_model(tmp_path / "m", model)
    loaded = load_model(tmp_path / "m")
    assert loaded.config == model.config
    assert torch.equal(loaded(tokens), model(tokens))
    weights = load_file(tmp_path / "m" / "model.safetensors")
    weights["W_E"] = torch.zeros(30, 12)
    save_file(weights, tmp_path / "m" / "model.safetensors")
    with pytest.raises(ValueError, match=r"W_E has shape \(30, 12\), expected \(29, 12\)"):
        load_model(tmp_path / "m")


def test_the_name_means_the_model_trained_last(tiny, quick, monkeypatch):
    encoded = load_encoded("imdb", 270, text=corpora.Text(TEXT * 3, TEXT * 3, TEXT, SOURCE))
    told = "gpt", "default", encoded, replace(tiny, d_vocab=len(encoded.tokenizer))
    first, second = (trained_gpt(*told, replace(quick, seed=seed)) for seed in (1, 2))
    assert load_trained("gpt", "default").about == second.about
    assert first.about["seed"] == 1
    monkeypatch.setattr(trained, "train", None)  # a further training would raise
    again = trained_gpt(*told, replace(quick, seed=1))
    assert torch.equal(again.model.W_E, first.model.W_E)
    assert load_trained("gpt", "default").about == first.about  # finding it made it the current one
    assert load_trained("gpt", "full").about == first.about
    assert load_trained("gpt", "own/default").tokenizer.decode(encoded.train) == TEXT * 3
    with pytest.raises(TypeError):
        trained_gpt(*told, replace(quick, seed=3))


def test_a_corpus_is_encoded_once_and_an_empty_part_refused(monkeypatch):
    text = corpora.Text(TEXT * 3, TEXT, TEXT, SOURCE)
    first = load_encoded("imdb", 280, characters=500, text=text)
    # a second training would raise
    monkeypatch.setattr("papers.language_model.tokens.train_tokenizer", None)
    again = load_encoded("imdb", 280, characters=500, text=text)
    assert again.key == first.key
    assert again.tokenizer.decode(again.train) == (TEXT * 3)[:500]
    with pytest.raises(TypeError):
        load_encoded("imdb", 280, characters=501, text=text)
    with pytest.raises(ValueError, match="the validation part of imdb is empty"):
        load_encoded("imdb", 280, text=corpora.Text(TEXT, "", TEXT, SOURCE))
