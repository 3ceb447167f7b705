"""Heads of whole models: weights reach the formula the right way round."""

from dataclasses import replace

import pytest
import torch

from compendium.models import head_margins
from softgeom import circuits
from softgeom.language_model import GPT, GPTConfig, Llama, LlamaConfig

MODELS = {
    "GPT": lambda: GPT(
        GPTConfig(d_vocab=23, d_model=18, n_heads=3, n_layers=2, d_mlp=20, n_ctx=12, init_std=0.5),
        seed=1,
    ),
    "Llama": lambda: Llama(
        LlamaConfig(23, 16, n_heads=4, n_kv_heads=2, n_layers=2, d_mlp=20, n_ctx=12), seed=2
    ),
}


@pytest.fixture(params=MODELS)
def anatomy(request):
    return circuits.dissect(MODELS[request.param]().double().requires_grad_(False), request.param)


@pytest.fixture
def tokens():
    return torch.randint(23, (2, 9), generator=torch.Generator().manual_seed(0))


def test_determinants_in_few_dimensions_are_those_of_the_pass(anatomy, tokens):
    for depth, layer in enumerate(circuits.walk(anatomy, tokens)):
        heads = head_margins.head_weights(anatomy.blocks[depth], anatomy.rotary_base)
        B = head_margins.blocks_of(heads, layer, 1, torch.tensor([6]))[:, 0]
        eye = torch.eye(B.shape[-1], dtype=torch.float64)
        found = torch.stack(
            [torch.linalg.slogdet(eye + sign * B).logabsdet for sign in (-1, 1)], -1
        )
        expected = head_margins.log_determinants_by_autograd(anatomy, layer.resid_pre[1], depth, 6)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)


def test_the_gain_of_small_noise_is_the_size_of_the_derivative(anatomy, tokens):
    """|W_O C D|_F / sqrt(d), by many draws."""
    table = head_margins.measure(anatomy, tokens[:1], torch.tensor([5]), 1e-4, 4000, 0)
    layer, block = next(circuits.walk(anatomy, tokens[:1])), anatomy.blocks[0]
    x = layer.resid_pre[0]

    def writes(state):
        read = block.ln1(torch.cat((x[:5], state[None]))[None])
        return circuits.attend(block, read, anatomy.rotary_base)["head_out"][0, -1]

    derivative = torch.autograd.functional.jacobian(writes, x[5])
    expected = derivative.flatten(1).norm(dim=1) / x.shape[-1] ** 0.5
    found = torch.tensor(table[table["layer"] == 0].sort_values("head")["gain"].to_numpy())
    torch.testing.assert_close(found, expected, rtol=0.05, atol=0)


def test_heads_are_summed_up_and_folded_norms_and_biases_refused(anatomy, tokens):
    table = head_margins.measure(anatomy, tokens, torch.tensor([3, 8]), 0.1, 2, 0)
    summed = head_margins.by_head(table)
    part = table[(table["layer"] == 1) & (table["head"] == 2)]
    row = summed[(summed["layer"] == 1) & (summed["head"] == 2)].iloc[0]
    assert len(part) == 4
    assert row["closest"] == part["residual"].min()
    assert row["positive"] == (part["coupling"] > 0).mean()
    assert len(head_margins.measure_layers(anatomy, tokens, 4)) == 2
    with pytest.raises(ValueError, match="are folded"):
        head_margins.head_weights(circuits.fold_norms(anatomy).blocks[0], None)
    biased = replace(anatomy.blocks[0], b_K=anatomy.blocks[0].b_K + 1)
    with pytest.raises(ValueError, match="have biases"):
        head_margins.head_weights(biased, None)
