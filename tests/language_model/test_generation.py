"""The text that keeps its keys and values is the text that does not."""

from __future__ import annotations

import pytest
import torch

from softgeom.language_model import GPT, Continuation, GPTConfig, Llama, LlamaConfig, generate

MODELS = {
    "GPT": lambda: GPT(
        GPTConfig(d_vocab=29, d_model=24, n_heads=3, n_layers=3, d_mlp=40, n_ctx=20, init_std=0.3),
        seed=1,
    ),
    "Llama": lambda: Llama(
        LlamaConfig(
            29, 24, n_heads=6, n_kv_heads=2, n_layers=2, d_mlp=40, n_ctx=20, rotary_base=50.0
        ),
        seed=2,
    ),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]().requires_grad_(False)


def test_logits_after_each_token_are_those_of_the_whole_text(model):
    model.double()
    tokens = torch.randint(29, (20,), generator=torch.Generator().manual_seed(0))
    expected = model(tokens[None])[0]
    kept, at = Continuation(model, 20), 0
    for length in (7, 1, 1, 5, 6):  # a prompt, single tokens, and chunks after them
        torch.testing.assert_close(
            kept.read(tokens[at : at + length]), expected[at + length - 1], rtol=0, atol=1e-12
        )
        at += length
    assert len(kept) == 20


@pytest.mark.parametrize("temperature", [0.0, 1.3])
@pytest.mark.parametrize(("prompt", "new"), [(1, 19), (5, 15), (20, 1), (18, 9), (25, 4), (3, 0)])
def test_the_same_tokens_with_and_without_a_cache(model, temperature, prompt, new):
    """Also where the window starts to slide, or has slid before."""
    tokens = torch.randint(29, (prompt,), generator=torch.Generator().manual_seed(prompt))
    texts = [
        generate(
            model,
            tokens,
            new,
            temperature=temperature,
            generator=torch.Generator().manual_seed(5),
            cache=cache,
        )
        for cache in (True, False)
    ]
    assert torch.equal(*texts)
    assert torch.equal(texts[0][:prompt], tokens)
    assert len(texts[0]) == prompt + new


def test_half_precision_goes_on_without_a_cache(model):
    model.bfloat16()
    with pytest.raises(ValueError, match=r"torch\.bfloat16 on cpu cannot keep its past"):
        Continuation(model, 18)
    assert len(generate(model, torch.arange(4), 3, temperature=0)) == 7


def test_too_many_tokens_are_refused(model):
    with pytest.raises(ValueError, match="does not fit a context of 20"):
        Continuation(model, 21)
    kept = Continuation(model, 4)
    kept.read(torch.tensor([1, 2, 3]))
    with pytest.raises(
        ValueError, match="2 tokens after 3 do not fit the 4 positions kept: give 1 to 1"
    ):
        kept.read(torch.tensor([1, 2]))
    with pytest.raises(ValueError, match="0 tokens"):
        kept.read(torch.tensor([], dtype=torch.long))
