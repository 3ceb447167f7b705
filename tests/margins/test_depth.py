"""Localisation of the correction in a stack, by the full Jacobian of automatic differentiation."""

import numpy as np
import pytest
import torch

from softgeom.margins import attention_jacobian_blocks, depth

T, D, LAYERS = 4, 3, 2


@pytest.fixture
def stack():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(LAYERS + 1, T, D, generator=generator, dtype=torch.float64)
    prior = tuple(0.7 * torch.randn(2, D, D, generator=generator, dtype=torch.float64))
    return X, prior, generator


def volume_of_the_prior(X, prior):
    blocks = attention_jacobian_blocks(X[0].numpy(), *(W.numpy() for W in prior))
    return np.linalg.slogdet(blocks).logabsdet.sum()


def test_standard_layers_add_no_volume(stack):
    X, prior, generator = stack
    blocks = [depth.Block.random(D, generator) for _ in range(LAYERS)]
    full = depth.stack_jacobian(X, prior, blocks)
    size = T * D
    for level in range(1, LAYERS + 1):
        own = full[level * size : (level + 1) * size, level * size : (level + 1) * size]
        torch.testing.assert_close(own, torch.eye(size, dtype=torch.float64), atol=0.0, rtol=0.0)
    assert torch.all(full.reshape(LAYERS + 1, size, LAYERS + 1, size)[0, :, 1:] == 0)
    total = torch.linalg.slogdet(full).logabsdet.item()
    assert total == pytest.approx(volume_of_the_prior(X, prior), abs=1e-10)


def test_layer_that_queries_its_own_output_adds_its_own_term(stack):
    X, prior, generator = stack
    blocks = [depth.Block.random(D, generator), depth.Block.random(D, generator, implicit=True)]
    total = torch.linalg.slogdet(depth.stack_jacobian(X, prior, blocks)).logabsdet.item()
    own = torch.linalg.slogdet(depth.implicit_blocks(X[1], X[2], blocks[1])).logabsdet
    extra = own.sum().item()
    assert abs(extra) > 1e-2
    assert total == pytest.approx(volume_of_the_prior(X, prior) + extra, abs=1e-10)


def test_factors_multiply_to_the_change_of_variables(stack):
    X, prior, generator = stack
    noise = torch.distributions.Normal(X.new_zeros(()), X.new_tensor(0.7))
    for implicit in (False, True):
        blocks = [depth.Block.random(D, generator, implicit=own) for own in (False, implicit)]
        residuals = depth.stack_residuals(X, prior, blocks)
        volume = torch.linalg.slogdet(depth.stack_jacobian(X, prior, blocks)).logabsdet
        whole = noise.log_prob(residuals).sum() + volume
        factors = depth.stack_log_densities(X, prior, blocks, s=0.7)
        assert factors.shape == (LAYERS + 1, T)
        assert factors.sum().item() == pytest.approx(whole.item(), abs=1e-10)


def test_a_factor_is_a_law_unless_its_map_folds_or_has_no_noise(stack):
    eye, flat = torch.eye(2, dtype=torch.float64), torch.zeros(2, 2, dtype=torch.float64)
    past = torch.tensor([[1.0, -1.0], [-1.0, 1.0], [2.0, 0.0]], dtype=torch.float64)
    axis = torch.linspace(-9, 9, 361, dtype=torch.float64)
    grid, cell = torch.cartesian_prod(axis, axis), float(axis[1] - axis[0]) ** 2

    def mass(c: float, implicit: bool) -> float:
        block = depth.Block(c * eye, eye, eye, eye, flat, flat, implicit)
        return cell * depth.conditional_log_density(grid, past, block, s=0.5).exp().sum().item()

    assert mass(2.0, implicit=False) == pytest.approx(1.0, abs=1e-6)
    # negative coupling never folds
    assert mass(-2.0, implicit=True) == pytest.approx(1.0, abs=1e-6)
    assert mass(2.0, implicit=True) > 1.1
    X, prior, _ = stack
    with pytest.raises(ValueError, match="noise scale s must be positive"):
        depth.stack_log_densities(X, prior, [], s=0.0)
