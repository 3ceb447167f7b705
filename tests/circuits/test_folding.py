"""Folded norms and changed bases keep the logits; what a layer norm can give."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.circuits import (
    Normalisation,
    centre_writers,
    change_basis,
    commuting_basis,
    fold_norms,
    on_sphere,
    radius,
    relative_error,
    run,
)
from papers.circuits.anatomy import attend


def test_folded_norms_keep_the_logits_also_in_another_basis(anatomy, tokens):
    folded = run(fold_norms(anatomy), tokens)
    whole = run(anatomy, tokens)
    assert relative_error(folded.logits, whole.logits) < 1e-10
    for layer, expected in zip(folded.layers, whole.layers, strict=True):
        assert relative_error(layer.pattern, expected.pattern) < 1e-10
        assert relative_error(layer.resid_post, expected.resid_post) < 1e-10
    M = commuting_basis(*anatomy.blocks[0].W_Q.shape[::2], torch.Generator().manual_seed(1))
    once = fold_norms(anatomy)
    turned = replace(once, blocks=tuple(change_basis(block, M) for block in once.blocks))
    assert relative_error(run(turned, tokens).logits, whole.logits) < 1e-10


def test_centred_writers_make_a_layer_norm_model_an_rms_norm_model(anatomy, tokens):
    if not anatomy.ln_final.centred:
        pytest.skip("RMSNorm reads the mean")
    centred = centre_writers(anatomy)
    found = run(centred, tokens)
    assert not centred.blocks[0].ln1.centred
    assert found.resid_final.mean(-1).abs().max() < 1e-10
    assert relative_error(found.logits, run(anatomy, tokens).logits) < 1e-10
    assert relative_error(run(fold_norms(centred), tokens).logits, found.logits) < 1e-10


def test_scores_change_in_a_basis_that_does_not_commute_with_the_rotations(anatomy, tokens):
    block = anatomy.blocks[0]
    H, _, K = block.W_Q.shape
    attn_in = run(anatomy, tokens).layers[0].attn_in
    generator = torch.Generator().manual_seed(0)
    expected = attend(block, attn_in, anatomy.rotary_base)["scores"]
    M = torch.randn(H, K, K, generator=generator, dtype=torch.float64)
    broken = attend(change_basis(block, M), attn_in, anatomy.rotary_base)["scores"]
    assert relative_error(broken, expected) > 1e-3  # a basis that does not commute changes them
    # Without positions any basis does: at offset zero query and key are turned alike.
    assert relative_error(broken.diagonal(0, -2, -1), expected.diagonal(0, -2, -1)) < 1e-10


EPS = 1e-5


def draw(
    seed: int, d: int, spread: float = 1.0, centred: bool = True
) -> tuple[torch.Tensor, Normalisation]:
    generator = torch.Generator().manual_seed(seed)
    z = spread * torch.randn(7, d, generator=generator, dtype=torch.float64) + 3.0
    gamma, beta = torch.randn(2, d, generator=generator, dtype=torch.float64)
    return z, Normalisation(gamma, beta * centred, EPS, centred)


def reference(z: torch.Tensor, norm: Normalisation) -> torch.Tensor:
    if norm.centred:
        return F.layer_norm(z, z.shape[-1:], norm.gamma, norm.beta, norm.eps)
    return F.rms_norm(z, z.shape[-1:], norm.gamma, norm.eps)


@settings(max_examples=30)
@given(st.integers(0, 1000), st.integers(2, 9), st.sampled_from([1e-4, 1.0, 1e3]), st.booleans())
def test_projection_sphere_and_affine_map_are_the_norm(seed, d, spread, centred):
    z, norm = draw(seed, d, spread, centred)
    expected = reference(z, norm)
    torch.testing.assert_close(norm(z), expected, rtol=1e-10, atol=1e-10)
    affine = torch.einsum("td,tde->te", z, norm.matrix(z)) + norm.beta
    torch.testing.assert_close(affine, expected, rtol=1e-10, atol=1e-10)
    point = on_sphere(z, EPS, centred)
    torch.testing.assert_close(point.norm(dim=-1), radius(z, EPS, centred), rtol=1e-10, atol=1e-12)
    assert (radius(z, EPS, centred) < d**0.5).all()
    if centred:
        assert point.sum(-1).abs().max() < 1e-9
