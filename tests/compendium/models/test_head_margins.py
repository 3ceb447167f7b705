"""Heads of whole models: weights reach the formula the right way round."""

import itertools
from dataclasses import replace

import pandas as pd
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


def _derivatives(anatomy, x, depth, position):
    """dwrite_h / dx of every head, through the model's own forward pass: (H, d, d)."""
    block = anatomy.blocks[depth]

    def writes(state):
        read = block.ln1(torch.cat((x[:position], state[None]))[None])
        return circuits.attend(block, read, anatomy.rotary_base)["head_out"][0, -1]

    return torch.autograd.functional.jacobian(writes, x[position])


def test_determinants_in_few_dimensions_are_those_of_the_pass(anatomy, tokens):
    for depth, layer in enumerate(circuits.walk(anatomy, tokens)):
        heads = head_margins.head_weights(anatomy.blocks[depth], anatomy.rotary_base)
        B = head_margins.blocks_of(heads, layer, 1, torch.tensor([6]))[:, 0]
        x = layer.resid_pre[1]
        signs, logs = head_margins.determinants_by_autograd(anatomy, x, depth, 6)
        whole = _derivatives(anatomy, x, depth, 6)
        for side, sign in enumerate((-1, 1)):
            for A in (B, whole):
                expected = torch.linalg.slogdet(torch.eye(A.shape[-1], dtype=A.dtype) + sign * A)
                assert torch.equal(signs[:, side], expected.sign)
                torch.testing.assert_close(logs[:, side], expected.logabsdet, rtol=0, atol=1e-11)


def test_a_census_finds_the_folds_of_the_derivative(anatomy, tokens, monkeypatch):
    table = head_margins.census(anatomy, tokens)
    assert len(table) == 2 * anatomy.sizes["H"] * tokens.numel()
    found = table.set_index(["layer", "head", "text", "position"])
    patterns = [layer.pattern for layer in circuits.walk(anatomy, tokens)]
    folds = found[found["folded"]]
    assert 0 < len(folds) < len(found)
    for (depth, head, text, position), row in [*folds[:5].iterrows(), *found[:5].iterrows()]:
        *_, layer = itertools.islice(circuits.walk(anatomy, tokens), depth + 1)
        derivative = _derivatives(anatomy, layer.resid_pre[text], depth, position)[head]
        spectrum = torch.linalg.eigvals(derivative)
        real = spectrum[spectrum.imag.abs() < 1e-9].real
        assert row["folded"] == bool((real > 1).sum() % 2)
        if row["folded"]:
            assert row["eigenvalue"] == pytest.approx(float(real.max()))
        weights = patterns[depth][text, head, position]
        assert (row["first"], row["itself"]) == (weights[0], weights[position])
    some = head_margins.census(anatomy, tokens, [(1, 2), (1, 0)])
    expected = table.query("layer == 1 and head in (0, 2)")
    keys = ["head", "text", "position"]
    pd.testing.assert_frame_equal(
        *(t.sort_values(keys).reset_index(drop=True) for t in (some, expected))
    )
    monkeypatch.setattr(head_margins, "_TOGETHER", 1)
    pd.testing.assert_frame_equal(
        *(
            t.set_index(["layer", *keys]).sort_index()
            for t in (head_margins.census(anatomy, tokens), table)
        )
    )


def test_the_gain_of_small_noise_is_the_size_of_the_derivative(anatomy, tokens):
    """|W_O C D|_F / sqrt(d), by many draws."""
    table = head_margins.measure(anatomy, tokens[:1], torch.tensor([5]), 1e-4, 4000, 0)
    layer = next(circuits.walk(anatomy, tokens[:1]))
    derivative = _derivatives(anatomy, layer.resid_pre[0], 0, 5)
    expected = derivative.flatten(1).norm(dim=1) / derivative.shape[-1] ** 0.5
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
