"""Rewritten weights, unchanged logits."""

from dataclasses import replace

import pytest
import torch

from softgeom.circuits import centre_writers, change_basis, commuting_basis, fold_norms, run
from softgeom.circuits.anatomy import attend


def test_folded_norms_keep_the_logits(anatomy, tokens, error):
    folded = run(fold_norms(anatomy), tokens)
    whole = run(anatomy, tokens)
    assert error(folded.logits, whole.logits) < 1e-10
    for layer, expected in zip(folded.layers, whole.layers, strict=True):
        assert error(layer.pattern, expected.pattern) < 1e-10
        assert error(layer.resid_post, expected.resid_post) < 1e-10


def test_folding_twice_is_refused(anatomy):
    with pytest.raises(ValueError, match="folded already"):
        fold_norms(fold_norms(anatomy))


def test_centred_writers_make_a_layer_norm_model_an_rms_norm_model(anatomy, tokens, error):
    if not anatomy.ln_final.centred:
        with pytest.raises(ValueError, match="RMSNorm, which reads the mean"):
            centre_writers(anatomy)
        return
    centred = centre_writers(anatomy)
    found = run(centred, tokens)
    assert not centred.blocks[0].ln1.centred
    assert found.resid_final.mean(-1).abs().max() < 1e-10
    assert error(found.logits, run(anatomy, tokens).logits) < 1e-10
    assert error(run(fold_norms(centred), tokens).logits, found.logits) < 1e-10


def test_scores_survive_a_change_of_basis_that_commutes_with_the_rotations(anatomy, tokens, error):
    block = anatomy.blocks[0]
    H, _, K = block.W_Q.shape
    attn_in = run(anatomy, tokens).layers[0].attn_in
    generator = torch.Generator().manual_seed(0)
    expected = attend(block, attn_in, anatomy.rotary_base)["scores"]
    turned = change_basis(block, commuting_basis(H, K, generator))
    assert error(attend(turned, attn_in, anatomy.rotary_base)["scores"], expected) < 1e-10
    M = torch.randn(H, K, K, generator=generator, dtype=torch.float64)
    broken = attend(change_basis(block, M), attn_in, anatomy.rotary_base)["scores"]
    assert error(broken, expected) > 1e-3  # a basis that does not commute changes them
    # Without positions any basis does: at offset zero query and key are turned alike.
    diagonal = attend(change_basis(block, M), attn_in, anatomy.rotary_base)["scores"].diagonal(
        dim1=-2, dim2=-1
    )
    assert error(diagonal, expected.diagonal(dim1=-2, dim2=-1)) < 1e-10


def test_a_basis_change_of_folded_heads_turns_their_biases(anatomy, tokens, error):
    folded = fold_norms(anatomy)
    M = commuting_basis(*folded.blocks[0].b_Q.shape, torch.Generator().manual_seed(1))
    turned = replace(folded, blocks=tuple(change_basis(block, M) for block in folded.blocks))
    assert error(run(turned, tokens).logits, run(anatomy, tokens).logits) < 1e-10
