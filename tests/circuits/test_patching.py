"""Interventions against passes whose weights are changed, and against shares."""

from dataclasses import replace

import pytest
import torch

from papers.circuits import (
    direct_effects,
    effects_along_paths,
    effects_of_heads,
    fold_norms,
    logit_gap,
    logit_shares,
    mean_donor,
    mixed_values,
    run,
    writers,
)
from papers.circuits.anatomy import attend


@pytest.fixture(scope="module")
def readout(anatomy, tokens):
    return logit_gap(anatomy, tokens[:, 3], tokens[:, 5], position=-2)


def _gap(logits, tokens):
    rows = torch.arange(len(tokens))
    return logits[rows, -2, tokens[:, 3]] - logits[rows, -2, tokens[:, 5]]


def test_the_readout_is_a_difference_of_logits(anatomy, tokens, readout):
    internals = run(anatomy, tokens)
    found, last = readout(internals.resid_final), internals.logits[:, -1]
    torch.testing.assert_close(found, _gap(internals.logits, tokens), rtol=1e-9, atol=1e-9)
    above = logit_gap(anatomy, tokens[:, 3])(internals.resid_final)
    expected = last[torch.arange(2), tokens[:, 3]] - last.mean(-1)
    torch.testing.assert_close(above, expected, rtol=1e-9, atol=1e-9)


def test_zero_ablation_is_the_model_without_the_head_s_weights(anatomy, tokens, readout):
    effects = effects_of_heads(anatomy, tokens, None, readout)
    before = readout(run(anatomy, tokens).resid_final)
    for depth, block in enumerate(anatomy.blocks):
        for head in range(anatomy.sizes["H"]):
            blocks, W_O = list(anatomy.blocks), block.W_O.clone()
            W_O[head] = 0
            blocks[depth] = replace(block, W_O=W_O)
            without = replace(anatomy, blocks=tuple(blocks))
            expected = _gap(run(without, tokens).logits, tokens) - before
            torch.testing.assert_close(effects[depth, head], expected, rtol=1e-8, atol=1e-9)


def test_patching_with_its_own_values_changes_nothing_and_with_all_of_another_run_something(
    anatomy, tokens, readout
):
    _, own = mixed_values(anatomy, tokens)
    for z, layer in zip(own, run(anatomy, tokens).layers, strict=True):
        torch.testing.assert_close(z, layer.z, rtol=1e-9, atol=1e-10)
    assert effects_of_heads(anatomy, tokens, own, readout).abs().max() < 1e-10
    other = (tokens + 1) % len(anatomy.W_E)
    _, theirs = mixed_values(anatomy, other)
    assert (effects_of_heads(anatomy, tokens, theirs, readout).abs().amax((1, 2)) > 1e-6).all()
    means, zeros = (effects_of_heads(anatomy, tokens, d, readout) for d in (mean_donor(own), None))
    assert not torch.equal(means, zeros)


def test_the_direct_effect_with_the_scale_held_is_the_share(anatomy, tokens):
    """Without the division there is nothing between a write and a logit: the share, sign turned."""
    internals, folded = run(anatomy, tokens), fold_norms(anatomy)
    asked = tokens[:, 3][:, None].expand(tokens.shape)
    shares = logit_shares(folded, internals, asked)
    shares = dict(zip(writers(internals).names, shares, strict=False))
    scale = internals.ln_final_scale[:, -1]

    def held(x):
        return (x[:, -1] / scale * folded.W_U[tokens[:, 3]]).sum(-1)

    effects = direct_effects(anatomy, tokens, None, held)
    for depth in range(len(anatomy.blocks)):
        for head in range(anatomy.sizes["H"]):
            share = shares[f"L{depth}.H{head}"][:, -1]
            torch.testing.assert_close(effects[depth, head], -share, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("side", ["queries", "keys", "values"])
def test_a_path_is_the_model_in_which_one_head_reads_another_stream(anatomy, tokens, readout, side):
    """Second route: the receiver's own weights on the changed stream, everything else as it was."""
    _, donor = mixed_values(anatomy, (tokens + 1) % len(anatomy.W_E))
    layer, head = len(anatomy.blocks) - 1, 1
    found = effects_along_paths(anatomy, tokens, donor, (layer, head), side, readout)
    internals, block = run(anatomy, tokens), anatomy.blocks[layer]
    own = internals.layers[layer]
    sent = torch.einsum("bhtk,hkd->hbtd", donor[0] - internals.layers[0].z, anatomy.blocks[0].W_O)
    for sender, change in enumerate(sent):
        changed = attend(block, block.ln1(own.resid_pre + change), anatomy.rotary_base)
        q = changed["q"] if side == "queries" else own.q
        k = changed["k"] if side == "keys" else own.k
        v = changed["v"] if side == "values" else own.v
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(torch.isinf(own.scores), -torch.inf)
        z = own.z.clone()
        z[:, head] = (scores.softmax(-1) @ v)[:, head]
        x = own.resid_pre + torch.einsum("bhtk,hkd->btd", z, block.W_O)
        x = x + block.feed_forward(block.ln2(x))[2]
        expected = readout(x) - readout(own.resid_post)
        torch.testing.assert_close(found[0, sender], expected, rtol=1e-8, atol=1e-9)
