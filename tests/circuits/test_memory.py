"""The feed-forward network as a memory: the sum over neurons, and measures with known answers."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from softgeom.circuits import (
    busiest_neurons,
    dissect,
    explained_by_token,
    fewest_neurons,
    fold_norms,
    matched_keys,
    participation,
    promoted_tokens,
    run,
    share_of_active,
    share_of_detectors,
    strongest_inputs,
    sum_over_neurons,
)


def test_the_network_is_a_sum_over_neurons(anatomy, tokens, error):
    for block, layer in zip(anatomy.blocks, run(anatomy, tokens).layers, strict=True):
        found = sum_over_neurons(block, layer.mlp_post).sum(-2) + block.b_out
        assert error(found, layer.mlp_out) < 1e-10


def test_keys_fire_through_their_activation_function(anatomy, tokens, error):
    block, layer = anatomy.blocks[0], run(anatomy, tokens).layers[0]
    keys = matched_keys(block, layer.mlp_in, 5)
    fired = (
        F.gelu(keys[..., 0] + block.b_in[5])
        if block.W_gate is None
        else F.silu(keys[..., 0]) * keys[..., 1]
    )
    assert error(fired, layer.mlp_post[..., 5]) < 1e-10


def test_strongest_inputs_are_found_where_they_were_put():
    activations = torch.zeros(10, 4)
    activations[[3, 8], 2] = torch.tensor([5.0, 7.0])
    values, positions = strongest_inputs(activations, 2, 2)
    assert positions.tolist() == [8, 3]
    assert values.tolist() == [7, 5]


def test_a_value_row_promotes_what_it_is_made_of(anatomy):
    folded = fold_norms(anatomy)
    centred = folded.W_U - folded.W_U.mean(0)
    W_out = folded.blocks[0].W_out.clone()
    longest = int(centred.norm(dim=1).argmax())
    W_out[3] = centred[longest]  # by Cauchy and Schwarz it raises no other token more
    planted = replace(folded, blocks=(replace(folded.blocks[0], W_out=W_out), *folded.blocks[1:]))
    gains, tokens = promoted_tokens(planted, 0, 3, 4)
    assert int(tokens[0]) == longest
    assert (gains.diff() <= 0).all()


@pytest.mark.parametrize(("active", "expected"), [(1, 1.0), (3, 3.0)])
def test_measures_of_sparsity_count_equal_neurons(anatomy, active, expected):
    block = replace(anatomy.blocks[0], W_out=torch.eye(8, dtype=torch.float64))
    activations = torch.zeros(2, 8, dtype=torch.float64)
    activations[:, :active] = -4.0
    torch.testing.assert_close(
        participation(activations, block), torch.full((2,), expected, dtype=torch.float64)
    )
    assert fewest_neurons(activations, block, 0.99).tolist() == [active, active]
    assert share_of_active(activations, 0.5).tolist() == [active / 8] * 2


def test_a_neuron_that_detects_a_token_is_explained_and_noise_is_not():
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, 5, (400,), generator=generator)
    noise = torch.randn(400, 3, generator=generator, dtype=torch.float64)
    detector = (tokens == 2).double()[:, None] + 0.1 * noise[:, :1]
    half = torch.arange(400) < 200
    explained = explained_by_token(torch.cat([detector, noise], 1), tokens, half)
    assert explained[0] > 0.9
    assert explained[1:].max() < 0.1
    share, _ = share_of_detectors(torch.cat([detector, noise], 1), tokens, half, generator)
    assert share == 0.25


def test_busiest_neurons_take_the_layers_in_turn(model):
    anatomy = dissect(model, "a model")
    internals = run(anatomy, torch.arange(8)[None] % len(anatomy.W_E))
    chosen = busiest_neurons(anatomy, internals, 3)
    assert [layer for layer, _ in chosen][:2] == [0, 1]
    sizes = internals.layers[0].mlp_post[0].abs() * anatomy.blocks[0].W_out.norm(dim=-1)
    assert chosen[0] == (0, int(sizes.amax(0).argmax()))
