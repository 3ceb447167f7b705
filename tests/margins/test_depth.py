"""Localisation of the correction in a stack, by the full Jacobian of automatic differentiation."""

import numpy as np
import pytest
import torch

from papers.margins import attention_jacobian_blocks, depth
from papers.margins.depth import joint_terms
from papers.margins.heads import residuals
from papers.margins.prior import log_density

T, D, LAYERS = 4, 3, 2


@pytest.mark.parametrize("implicit", [False, True])
def test_a_layer_adds_volume_only_if_it_queries_its_own_output(implicit):
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(LAYERS + 1, T, D, generator=generator, dtype=torch.float64)
    prior = tuple(0.7 * torch.randn(2, D, D, generator=generator, dtype=torch.float64))
    blocks = [depth.Block.random(D, generator, implicit=own) for own in (False, implicit)]
    full, size = depth.stack_jacobian(X, prior, blocks), T * D
    by_level = full.reshape(LAYERS + 1, size, LAYERS + 1, size)
    assert torch.all(by_level[0, :, 1:] == 0)
    assert torch.equal(by_level[1, :, 1], torch.eye(size, dtype=torch.float64))
    assert torch.equal(by_level[2, :, 2], by_level[1, :, 1]) != implicit
    blocks_of_its_own = depth.implicit_blocks(X[1], X[2], blocks[1]) if implicit else torch.eye(D)
    extra = torch.linalg.slogdet(blocks_of_its_own).logabsdet.sum().item()
    assert (abs(extra) > 1e-2) == implicit
    of_the_prior = attention_jacobian_blocks(X[0].numpy(), *(W.numpy() for W in prior))
    volume = torch.linalg.slogdet(full).logabsdet.item()
    wanted = np.linalg.slogdet(of_the_prior).logabsdet.sum() + extra
    assert volume == pytest.approx(wanted, abs=1e-10)
    # and the factors of the stack's law multiply to the change of variables
    noise = torch.distributions.Normal(X.new_zeros(()), X.new_tensor(0.7))
    whole = noise.log_prob(depth.stack_residuals(X, prior, blocks)).sum().item() + volume
    factors = depth.stack_log_densities(X, prior, blocks, s=0.7)
    assert factors.shape == (LAYERS + 1, T)
    assert factors.sum().item() == pytest.approx(whole, abs=1e-10)


def test_a_factor_is_a_law_unless_its_map_folds():
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


def joint_log_density(X, tokens, U, W_Q, W_K, s):
    """log p(w, x) from library distributions and the determinant of the whole Jacobian."""

    J = torch.autograd.functional.jacobian(lambda Z: residuals(Z, W_Q, W_K), X, create_graph=True)
    words = torch.distributions.Categorical(logits=X @ U.T).log_prob(tokens).sum()
    noise = torch.distributions.Normal(X.new_zeros(()), X.new_tensor(s))
    volume = torch.linalg.slogdet(J.reshape(X.numel(), X.numel())).logabsdet
    return words + noise.log_prob(residuals(X, W_Q, W_K)).sum() + volume


@pytest.mark.parametrize(("T", "d", "classes"), [(1, 1, 1), (2, 3, 5), (6, 2, 3)])
def test_terms_add_up_to_the_joint_law_in_value_and_gradient(T, d, classes):
    generator = torch.Generator().manual_seed(0)
    X, U, W_Q, W_K = learned = [
        torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in ((T, d), (classes, d), (d, d), (d, d))
    ]
    tokens = torch.randint(classes, (T,), generator=generator)
    terms = joint_terms(X, tokens, U, W_Q, W_K, s=0.6)
    other = -joint_log_density(X, tokens, U, W_Q, W_K, 0.6)
    assert terms.total.item() == pytest.approx(other.item(), rel=1e-12, abs=1e-12)
    prior = (terms.energy + terms.barrier + terms.constant).item()
    in_numpy = log_density(*(Z.detach().numpy() for Z in (X, W_Q, W_K)), s=0.6)
    assert prior == pytest.approx(-in_numpy, rel=1e-12, abs=1e-12)
    ours, theirs = (torch.autograd.grad(value, learned) for value in (terms.total, other))
    scale = max(float(g.abs().max()) for g in theirs)
    for mine, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=0, atol=1e-11 * scale)
