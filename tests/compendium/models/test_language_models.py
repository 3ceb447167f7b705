"""Trained once, encoded once, and found again by name."""

from dataclasses import replace

import pytest
import torch

from compendium.corpora import Source, Text
from compendium.models import language_models
from compendium.models.language_models import load_encoded, load_trained, trained_gpt

TEXT = "a small text about a small model.\n" * 20
SOURCE = Source("test text", "local")


@pytest.fixture(autouse=True)
def processed(tmp_path, monkeypatch):
    monkeypatch.setattr("compendium.paths.processed_dir", lambda: tmp_path)


def test_the_name_means_the_model_trained_last(tiny, quick, monkeypatch):
    encoded = load_encoded("imdb", 270, text=Text(TEXT * 3, TEXT * 3, TEXT, SOURCE))
    told = "gpt", "default", encoded, replace(tiny, d_vocab=len(encoded.tokenizer))
    first, second = (trained_gpt(*told, replace(quick, seed=seed)) for seed in (1, 2))
    assert load_trained("gpt", "default").about == second.about
    assert first.about["seed"] == 1
    monkeypatch.setattr(language_models, "train", None)  # a further training would raise
    again = trained_gpt(*told, replace(quick, seed=1))
    assert torch.equal(again.model.W_E, first.model.W_E)
    assert load_trained("gpt", "default").about == first.about  # finding it made it the current one
    assert load_trained("gpt", "full").about == first.about
    assert load_trained("gpt", "own/default").tokenizer.decode(encoded.train) == TEXT * 3
    with pytest.raises(TypeError):
        trained_gpt(*told, replace(quick, seed=3))


def test_a_corpus_is_encoded_once_and_an_empty_part_refused(monkeypatch):
    text = Text(TEXT * 3, TEXT, TEXT, SOURCE)
    first = load_encoded("imdb", 280, characters=500, text=text)
    # a second training would raise
    monkeypatch.setattr("papers.language_model.tokens.train_tokenizer", None)
    again = load_encoded("imdb", 280, characters=500, text=text)
    assert again.key == first.key
    assert again.tokenizer.decode(again.train) == (TEXT * 3)[:500]
    with pytest.raises(TypeError):
        load_encoded("imdb", 280, characters=501, text=text)
    with pytest.raises(ValueError, match="the validation part of imdb is empty"):
        load_encoded("imdb", 280, text=Text(TEXT, "", TEXT, SOURCE))
