"""Heads of whole models: weights reach the formula the right way round."""

from dataclasses import replace

import pytest
import torch

from compendium.models import head_margins
from papers import circuits
from papers.language_model import GPT, GPTConfig, Llama, LlamaConfig

SIZES = {"d_vocab": 23, "n_layers": 2, "d_mlp": 20, "n_ctx": 12}
CONFIGS = {
    GPT: GPTConfig(d_model=18, n_heads=3, init_std=0.5, **SIZES),
    Llama: LlamaConfig(d_model=16, n_heads=4, n_kv_heads=2, **SIZES),
}


@pytest.fixture(params=CONFIGS)
def anatomy(request):
    model = request.param(CONFIGS[request.param], seed=1).double().requires_grad_(False)
    return circuits.dissect(model, "a model")


@pytest.fixture
def tokens():
    return torch.randint(23, (2, 9), generator=torch.Generator().manual_seed(0))


def test_determinants_in_few_dimensions_are_those_of_the_pass(anatomy, tokens):
    for depth, layer in enumerate(circuits.walk(anatomy, tokens)):
        heads = head_margins.head_weights(anatomy.blocks[depth], anatomy.rotary_base)
        B = head_margins.blocks_of(heads, layer, 1, torch.tensor([6]))[:, 0]
        eye = torch.eye(B.shape[-1], dtype=torch.float64)
        found = torch.stack([torch.linalg.slogdet(A).logabsdet for A in (eye - B, eye + B)], -1)
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
    summed, one = head_margins.by_head(table), "layer == 1 and head == 2"
    part, (_, row) = table.query(one), *summed.query(one).iterrows()
    assert len(part) == 4
    assert row["closest"] == part["residual"].min()
    assert row["positive"] == (part["coupling"] > 0).mean()
    assert len(head_margins.measure_layers(anatomy, tokens, 4)) == 2
    folded, block = circuits.fold_norms(anatomy).blocks[0], anatomy.blocks[0]
    biased = replace(block, b_K=block.b_K + 1)
    for odd, message in ((folded, "are folded"), (biased, "have biases")):
        with pytest.raises(ValueError, match=message):
            head_margins.head_weights(odd, None)
