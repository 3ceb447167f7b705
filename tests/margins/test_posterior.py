"""The negative log-posterior against library distributions and automatic differentiation."""

import numpy as np
import pytest
import torch

from softgeom.margins import depth
from softgeom.margins.depth import joint_terms
from softgeom.margins.prior import log_density


def joint_log_density(X, tokens, U, W_Q, W_K, s):
    """log p(w, x) from library distributions and the determinant of the whole Jacobian."""

    def residuals(Z):
        return depth.prior_residuals(Z, W_Q, W_K)

    J = torch.autograd.functional.jacobian(residuals, X, create_graph=True)
    words = torch.distributions.Categorical(logits=X @ U.T).log_prob(tokens).sum()
    noise = torch.distributions.Normal(X.new_zeros(()), X.new_tensor(s))
    volume = torch.linalg.slogdet(J.reshape(X.numel(), X.numel())).logabsdet
    return words + noise.log_prob(residuals(X)).sum() + volume


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


def test_no_noise_has_no_density():
    X = torch.zeros(2, 2, dtype=torch.float64)
    with pytest.raises(ValueError, match="noise scale s must be positive"):
        joint_terms(X, torch.tensor([0, 0]), X, X, X, s=-1.0)
