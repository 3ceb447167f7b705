"""Models, texts and configurations that make no sense are refused in one sentence."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from papers.language_model import (
    GPT,
    GPTConfig,
    Llama,
    LlamaConfig,
    TrainingConfig,
    generate,
    table_losses,
    train_tokenizer,
    windows,
)

SIZES = {"d_vocab": 19, "d_model": 24, "n_heads": 4, "n_layers": 1, "d_mlp": 20, "n_ctx": 12}
LLAMA = LlamaConfig(n_kv_heads=2, tie_embeddings=False, **SIZES)
MODELS = (GPT(GPTConfig(**SIZES)), Llama(LLAMA))


@pytest.mark.parametrize("model", MODELS, ids=["GPT", "Llama"])
def test_tokens_and_prompts_that_do_not_fit_are_refused(model):
    for call, tokens, message in (
        (model, torch.zeros(1, 13, dtype=torch.long), "13 tokens does not fit a context of 12"),
        (model, torch.zeros(3, dtype=torch.long), "batch of sequences"),
        (model.run_with_internals, torch.tensor([[19]]), r"token 19 is outside .* 0\.\.18"),
        (lambda tokens: generate(model, tokens, 1), torch.tensor([40]), "outside the vocabulary"),
        (lambda tokens: generate(model, tokens, 1), torch.tensor([]).long(), "at least one token"),
    ):
        with pytest.raises(ValueError, match=message):
            call(tokens)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GPTConfig(d_model=8, n_heads=3), "multiple of 6"),
        (lambda: GPTConfig(n_layers=0), "n_layers is 0"),
        (lambda: replace(LLAMA, n_kv_heads=3), "do not share 3"),
        (lambda: replace(LLAMA, n_heads=5), "does not split"),
        (lambda: replace(LLAMA, d_mlp=0), "d_mlp is 0"),
        (lambda: TrainingConfig(penalty_weight=-0.1), r"penalty_weight \(lambda\) is -0.1"),
        (lambda: TrainingConfig(penalty_weight=np.nan), r"penalty_weight \(lambda\) is nan"),
        (lambda: TrainingConfig(precision="float8"), "choose one of float32, bfloat16, float64"),
        (lambda: TrainingConfig(steps=0), "steps is 0"),
        (lambda: train_tokenizer("a text", 256), "at least 257"),
        (lambda: train_tokenizer("  \n", 300), "corpus is empty"),
        (lambda: windows(np.arange(0), 10), "has 0 tokens, one window needs 11"),
        (lambda: windows(np.arange(10), 10), "has 10 tokens, one window needs 11"),
        (lambda: table_losses(np.arange(1), np.arange(4), 6), "hold no pair"),
    ],
)
def test_what_makes_no_sense_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
