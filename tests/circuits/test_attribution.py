"""Attributions against finite differences and their sum, networks against changed weights."""

from dataclasses import replace

import pytest
import torch

from papers.circuits import (
    attention_from,
    blank,
    effects_of_attention,
    effects_of_networks,
    gradient_times_input,
    integrated_gradients,
    logit_gap,
    mean_donor,
    mixed_values,
    network_writes,
    occlusion,
    run,
    run_from,
    take_out,
)


@pytest.fixture(scope="module")
def readout(anatomy, tokens):
    return logit_gap(anatomy, tokens[:, 3], tokens[:, 5])


@pytest.fixture(scope="module")
def x(anatomy, tokens):
    return anatomy.embed(tokens)


def test_a_pass_from_the_embeddings_is_the_model(anatomy, tokens, x):
    expected = run(anatomy, tokens).resid_final
    torch.testing.assert_close(run_from(anatomy, 0, x), expected, rtol=1e-9, atol=1e-10)


def test_the_gradient_is_the_slope_towards_the_blank(anatomy, x, readout):
    """Second route: central differences along x_i - x0_i, one token at a time."""
    x0, h = blank(anatomy, x), 1e-5
    found = gradient_times_input(anatomy, x, x0, readout)
    for place in (0, 1, 9, 15):
        step = torch.zeros_like(x)
        step[:, place] = h * (x - x0)[:, place]
        above, below = (readout(run_from(anatomy, 0, x + s * step)) for s in (1, -1))
        slope = (above - below) / (2 * h)
        torch.testing.assert_close(found[:, place], slope, rtol=1e-4, atol=1e-6)
    assert (found[:, 0] == 0).all()  # the start stays


def test_integrated_gradients_are_complete(anatomy, x, readout):
    """Along a short segment the quadrature is exact to rounding: the sum is the difference."""
    x0 = x + 0.1 * (blank(anatomy, x) - x)
    found = integrated_gradients(anatomy, x, x0, readout, points=24)
    expected = readout(run_from(anatomy, 0, x)) - readout(run_from(anatomy, 0, x0))
    torch.testing.assert_close(found.sum(1), expected, rtol=1e-6, atol=1e-7)
    few, many = (integrated_gradients(anatomy, x, x0, readout, points=n) for n in (1, 24))
    assert not torch.allclose(few, many, rtol=1e-9)


def test_occlusion_is_a_pass_without_the_token(anatomy, tokens, x, readout):
    x0 = blank(anatomy, x)
    found = occlusion(anatomy, x, x0, readout)
    other = x.clone()
    other[:, 7] = x0[:, 7]
    assert torch.equal(take_out(x, x0, torch.full((2, 1), 7)), other)
    lost = readout(run_from(anatomy, 0, x)) - readout(run_from(anatomy, 0, other))
    torch.testing.assert_close(found[:, 7], lost, rtol=1e-9, atol=1e-10)
    # a row of W_E in the place of another is the model on the other token
    changed = (tokens + 1) % len(anatomy.W_E)
    swapped = take_out(x, anatomy.embed(changed), torch.arange(16).expand(2, -1))
    torch.testing.assert_close(swapped, anatomy.embed(changed), rtol=0, atol=0)


def test_attention_is_the_mean_row_of_all_patterns(anatomy, tokens):
    patterns = torch.stack([layer.pattern for layer in run(anatomy, tokens).layers])
    expected = patterns[:, :, :, -1].mean((0, 2))
    torch.testing.assert_close(attention_from(anatomy, tokens), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("effects", "weights"),
    [(effects_of_networks, ("W_out", "b_out")), (effects_of_attention, ("W_O",))],
)
def test_zero_ablation_is_the_model_without_the_weights(anatomy, tokens, readout, effects, weights):
    found = effects(anatomy, tokens, None, readout)
    before = readout(run(anatomy, tokens).resid_final)
    for depth, block in enumerate(anatomy.blocks):
        gone = replace(block, **{name: torch.zeros_like(getattr(block, name)) for name in weights})
        blocks = (*anatomy.blocks[:depth], gone, *anatomy.blocks[depth + 1 :])
        without = run(replace(anatomy, blocks=blocks), tokens).resid_final
        torch.testing.assert_close(found[depth], readout(without) - before, rtol=1e-8, atol=1e-9)


def test_a_network_s_own_writes_change_nothing_and_means_something(anatomy, tokens, readout):
    writes = network_writes(anatomy, *mixed_values(anatomy, tokens))
    for write, layer in zip(writes, run(anatomy, tokens).layers, strict=True):
        torch.testing.assert_close(write, layer.mlp_out, rtol=1e-9, atol=1e-10)
    assert effects_of_networks(anatomy, tokens, writes, readout).abs().max() < 1e-10
    means = effects_of_networks(anatomy, tokens, mean_donor(writes), readout)
    assert (means.abs().amax(1) > 1e-6).all()
