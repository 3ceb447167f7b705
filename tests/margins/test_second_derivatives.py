"""Second derivatives of the log-barrier: torch.linalg alone, gradgradcheck, vmap."""

import itertools

import pytest
import torch

from papers.margins import log_barrier
from papers.margins.determinant import signed_logdet

METHODS = ("dense", "low_rank", "dual")


def layer(seed=0, T=5, d=3, r=2):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(T, d, generator=generator, dtype=torch.float64)
    W_Q, W_K = 0.7 * torch.randn(2, r, d, generator=generator, dtype=torch.float64)
    return X, W_Q, W_K


def plain_barrier(X, W_Q, W_K):
    """sum_i -log |det(I - S_i M)| position by position, in torch's own operations."""
    total, eye = X.new_zeros(()), torch.eye(X.shape[1], dtype=X.dtype)
    for i in range(1, len(X)):
        past = X[:i]
        a = torch.softmax((past @ W_K.T) @ (W_Q @ X[i]), dim=0)
        centred = past - a @ past
        S = torch.einsum("j,jc,je->ce", a, centred, centred)
        total = total - torch.linalg.slogdet(eye - S @ W_K.T @ W_Q).logabsdet
    return total


@pytest.mark.parametrize("method", METHODS)
def test_hessian_is_that_of_a_barrier_without_our_functions(method):
    """With all mixed derivatives."""
    hessian = torch.autograd.functional.hessian
    ours = hessian(lambda *o: log_barrier(*o, method=method).sum(), layer())
    truth = hessian(plain_barrier, layer())
    for found, expected in zip(itertools.chain(*ours), itertools.chain(*truth), strict=True):
        assert expected.abs().max() > 0.1
        assert torch.allclose(found, expected, atol=1e-9)


def test_value_and_both_derivatives_across_blocks_of_rows():
    X, W_Q, W_K = layer(2, T=140, d=2, r=1)  # more rows than the low-rank route handles at once
    X = 0.3 * X
    direction = torch.randn(X.shape, generator=torch.Generator().manual_seed(0), dtype=X.dtype)

    def derivatives(method):
        value = X.clone().requires_grad_()
        beta = log_barrier(value, W_Q, W_K, method=method)
        (slope,) = torch.autograd.grad(beta.sum(), value, create_graph=True)
        return beta, slope, torch.autograd.grad((slope * direction).sum(), value)[0]

    for ours, by_definition in zip(derivatives("low_rank"), derivatives("dense"), strict=True):
        assert torch.allclose(ours, by_definition, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_vmap_is_the_loop(method):
    X = torch.stack([layer(seed)[0] for seed in range(4)])
    _, W_Q, W_K = layer()

    def one(x):
        return log_barrier(x, W_Q, W_K, method=method)

    def slope(x):
        return torch.func.grad(lambda z: one(z).sum())(x)

    assert torch.allclose(torch.func.vmap(one)(X), torch.stack([one(x) for x in X]))
    assert torch.allclose(torch.func.vmap(slope)(X), torch.stack([slope(x) for x in X]))
    hessian = torch.autograd.functional.hessian(lambda z: one(z).sum(), X[2])
    assert torch.allclose(torch.func.vmap(torch.func.jacrev(slope))(X)[2], hessian, atol=1e-9)


def test_a_singular_matrix_has_finite_second_derivatives():
    J = torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    out = signed_logdet(J)
    assert out.replaced == 1
    (slope,) = torch.autograd.grad(out.logabsdet, J, create_graph=True)
    (second,) = torch.autograd.grad(slope[0, 0], J)
    assert torch.isfinite(second).all()
    assert second[0, 0] == -1.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_singular_matrix_gets_a_finite_cap_and_a_finite_gradient(dtype):
    J = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=dtype, requires_grad=True)
    out = signed_logdet(J)
    out.logabsdet.backward()
    eps = torch.finfo(dtype).eps
    assert out.replaced.item() == 1
    # pivots 2 and the replacement 4 eps
    assert out.logabsdet.item() == pytest.approx(torch.tensor(8 * eps).log().item(), abs=1e-4)
    assert torch.isfinite(J.grad).all()
    assert J.grad.abs().max() <= 8 / eps
    # the gradient points along the cofactors (4, -2; -2, 1): the way that opens the determinant
    slope, cofactor = J.grad.abs(), torch.tensor([[4.0, 2.0], [2.0, 1.0]], dtype=dtype)
    torch.testing.assert_close(slope / slope.max(), cofactor / 4, atol=1e-3, rtol=0)
    zero = signed_logdet(torch.zeros(3, 3, dtype=dtype))
    assert zero.replaced.item() == 3
    assert torch.isfinite(zero.logabsdet)
