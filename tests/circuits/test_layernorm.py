"""Normalisation: the geometry against torch's own layer_norm and rms_norm."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom.circuits import Normalisation, centring, fold, on_sphere, radius, scale

EPS = 1e-5


def draw(
    seed: int, d: int, spread: float = 1.0, centred: bool = True
) -> tuple[torch.Tensor, Normalisation]:
    generator = torch.Generator().manual_seed(seed)
    z = spread * torch.randn(7, d, generator=generator, dtype=torch.float64) + 3.0
    gamma = torch.randn(d, generator=generator, dtype=torch.float64)
    beta = (
        torch.randn(d, generator=generator, dtype=torch.float64)
        if centred
        else torch.zeros(d, dtype=torch.float64)
    )
    return z, Normalisation(gamma, beta, EPS, centred)


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


def test_the_centring_matrix_projects():
    P = centring(6)
    torch.testing.assert_close(P @ P, P)
    torch.testing.assert_close(P, P.T)
    assert P.sum(0).abs().max() < 1e-15
    assert int(torch.linalg.matrix_rank(P)) == 5


def test_the_radius_shrinks_with_eps_as_stated():
    z = torch.tensor([[1.0, -1.0, 0.0, 0.0]], dtype=torch.float64)  # sigma^2 = 1/2
    assert float(radius(z, eps=0.5, centred=True)) == pytest.approx(2 * 0.5**0.5)
    assert float(radius(z, eps=0.0, centred=True)) == pytest.approx(2.0)


@pytest.mark.parametrize("centred", [True, False])
def test_folding_leaves_a_division(centred):
    z, norm = draw(5, 8, centred=centred)
    generator = torch.Generator().manual_seed(6)
    W = torch.randn(3, 8, 5, generator=generator, dtype=torch.float64)  # three heads, not square
    b = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    folded, shift = fold(norm, W, b)
    found = torch.einsum("td,hdk->thk", z / scale(z, EPS, centred), folded) + shift
    expected = torch.einsum("td,hdk->thk", reference(z, norm), W) + b
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
