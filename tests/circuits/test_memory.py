"""The feed-forward network as a memory: the sum over neurons, and measures with known answers."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from softgeom.circuits import (
    fewest_neurons,
    fold_norms,
    matched_keys,
    participation,
    promoted_tokens,
    run,
    share_of_active,
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
    fired = F.gelu(keys[..., 0] + block.b_in[5]) if block.W_gate is None else F.silu(keys[..., 0]) * keys[..., 1]
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
    torch.testing.assert_close(participation(activations, block), torch.full((2,), expected, dtype=torch.float64))
    assert fewest_neurons(activations, block, 0.99).tolist() == [active, active]
    assert share_of_active(activations, 0.5).tolist() == [active / 8] * 2
