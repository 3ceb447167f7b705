"""The log-barrier: definition, gradients of two orders, the boundary, precision, estimates."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from papers import margins
from papers.margins import (
    attention_jacobian_blocks,
    log_barrier,
    series_log_barrier,
    signed_log_barrier,
    stochastic_log_barrier,
)
from papers.margins.determinant import signed_logdet


def draw(seed: int, *shapes: tuple[int, ...], size: float = 0.6) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [
        size * torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in shapes
    ]


def layer(seed: int = 0, batch: tuple[int, ...] = (2,), T: int = 12) -> list[torch.Tensor]:
    return draw(seed, (*batch, T, 4), (2, 4), (2, 4))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**31),
    T=st.integers(1, 9),
    d=st.integers(1, 6),
    r=st.integers(1, 8),
    values=st.booleans(),
)
def test_it_is_the_determinant_of_the_closed_form(seed, T, d, r, values):
    """Shapes of every kind: one token, one dimension, more directions than dimensions or tokens."""
    X, W_Q, W_K, W_V = draw(seed, (2, T, d), (r, d), (r, d), (d, d), size=1.0)
    W_V = W_V if values else None
    out = signed_log_barrier(X, W_Q, W_K, W_V=W_V)
    for n in range(2):
        blocks = attention_jacobian_blocks(
            *(W if W is None else W.numpy() for W in (X[n], W_Q, W_K, W_V))
        )
        sign, logdet = np.linalg.slogdet(blocks)
        near = np.abs(np.linalg.det(blocks)) < 1e-4  # both lose digits there
        np.testing.assert_allclose(out.beta[n].numpy()[~near], -logdet[~near], atol=1e-9)
        assert (out.sign[n].numpy() == sign)[~near].all()


def test_arrays_and_lists_give_arrays_and_a_tensor_among_them_a_tensor():
    X, W_Q, W_K, W_V = draw(0, (2, 5, 4), (3, 2, 4), (3, 2, 4), (3, 4, 4))
    wanted = log_barrier(X, W_Q, W_K, W_V=W_V, positions=torch.tensor([4, 1]))
    for kept in (np.array([4, 1]), [4, 1]):
        arrays = [W.numpy() for W in (X, W_Q, W_K)]
        found = signed_log_barrier(*arrays, W_V=W_V.tolist(), positions=kept)
        assert isinstance(found.beta, np.ndarray)
        np.testing.assert_array_equal(found.beta, wanted)
        np.testing.assert_array_equal(
            found.sign,
            np.sign(np.linalg.det(attention_jacobian_blocks(*arrays, W_V.numpy()))[:, kept]),
        )
    weights = W_Q.clone().requires_grad_()
    log_barrier(X.numpy(), weights, W_K.numpy()).sum().backward()
    assert weights.grad.abs().sum() > 0
    estimate = series_log_barrier(X.numpy(), W_Q.numpy(), W_K.numpy())
    np.testing.assert_array_equal(estimate.beta, series_log_barrier(X, W_Q, W_K).beta)


def test_names_that_need_pytorch_are_listed_too():
    assert set(margins.__all__) <= set(dir(margins))


def test_heads_add_up_inside_the_determinant():
    X, W_Q, W_K, W_V = draw(0, (5, 4), (3, 2, 4), (3, 2, 4), (3, 4, 4))

    def residual(x, past):
        a = torch.softmax(torch.einsum("hrd,nd,hre,e->hn", W_K, past, W_Q, x), dim=1)
        return x - torch.einsum("hcd,hn,nd->c", W_V, a, past)

    got = log_barrier(X, W_Q, W_K, W_V=W_V)
    for i in range(1, 5):
        J = torch.autograd.functional.jacobian(lambda x, i=i: residual(x, X[:i]), X[i])
        assert got[i].item() == pytest.approx(-torch.linalg.slogdet(J).logabsdet.item(), abs=1e-10)
    averaged = torch.eye(4, dtype=torch.float64).expand(3, 4, 4) / 3
    wanted = log_barrier(X, W_Q, W_K, W_V=averaged)
    torch.testing.assert_close(log_barrier(X, W_Q, W_K), wanted, atol=1e-12, rtol=0)


@pytest.mark.parametrize("heads", [(), (2,)])
@pytest.mark.parametrize("series", [False, True])
def test_gradcheck_of_chosen_positions(series, heads):
    operands = draw(1, (2, 5, 3), (*heads, 2, 3), (*heads, 2, 3), (*heads, 3, 3))
    kept = torch.tensor([4, 1])

    def scores(X, Q, K, V, positions=kept):
        if series:
            return series_log_barrier(X, Q, K, W_V=V, order=3, positions=positions).beta
        return log_barrier(X, Q, K, W_V=V, positions=positions)

    torch.testing.assert_close(scores(*operands), scores(*operands, positions=None)[:, kept])
    assert torch.autograd.gradcheck(scores, [t.requires_grad_() for t in operands])


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


def test_hessian_is_that_of_a_barrier_without_our_functions():
    """With all mixed derivatives."""
    hessian, operands = torch.autograd.functional.hessian, tuple(draw(0, (5, 3), (2, 3), (2, 3)))
    ours = hessian(lambda *o: log_barrier(*o).sum(), operands)
    truth = hessian(plain_barrier, operands)
    for found, expected in zip(itertools.chain(*ours), itertools.chain(*truth), strict=True):
        assert expected.abs().max() > 0.1
        assert torch.allclose(found, expected, atol=1e-9)


def test_value_and_both_derivatives_across_blocks_of_rows():
    """More rows than are handled at once."""
    X, W_Q, W_K, direction = draw(2, (140, 2), (1, 2), (1, 2), (140, 2), size=0.4)

    def derivatives(barrier):
        value = X.clone().requires_grad_()
        beta = barrier(value, W_Q, W_K).sum()
        (slope,) = torch.autograd.grad(beta, value, create_graph=True)
        return beta, slope, torch.autograd.grad((slope * direction).sum(), value)[0]

    for ours, theirs in zip(derivatives(log_barrier), derivatives(plain_barrier), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-9)


def test_vmap_is_the_loop():
    X = torch.stack([draw(seed, (5, 3))[0] for seed in range(4)])
    W_Q, W_K = draw(9, (2, 3), (2, 3))

    def one(x):
        return log_barrier(x, W_Q, W_K)

    slope = torch.func.grad(lambda z: one(z).sum())
    assert torch.allclose(torch.func.vmap(one)(X), torch.stack([one(x) for x in X]))
    assert torch.allclose(torch.func.vmap(slope)(X), torch.stack([slope(x) for x in X]))
    hessian = torch.autograd.functional.hessian(lambda z: one(z).sum(), X[2])
    assert torch.allclose(torch.func.vmap(torch.func.jacrev(slope))(X)[2], hessian, atol=1e-9)


def on_the_line(variance: float, dtype=torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    """Position 3 of (-u, u, 0): weights 1/2, variance u^2, J = 1 - u^2 with c = 1."""
    u = variance**0.5
    return torch.tensor([[-u], [u], [0.0]], dtype=dtype), torch.ones(1, 1, dtype=dtype)


@pytest.mark.parametrize(("variance", "sign"), [(0.5, 1), (1 - 1e-6, 1), (1 + 1e-6, -1), (3.0, -1)])
def test_barrier_grows_without_bound_and_turns_beyond_the_boundary(variance, sign):
    X, one = on_the_line(variance)
    out = signed_log_barrier(X, one, one)
    assert out.beta[2].item() == pytest.approx(-np.log(abs(1 - variance)), abs=1e-8)
    assert out.sign.tolist() == [1, 1, sign]
    assert out.replaced.sum() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_singular_matrix_gets_a_finite_cap_and_finite_derivatives(dtype):
    J = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=dtype, requires_grad=True)
    out, eps = signed_logdet(J), torch.finfo(dtype).eps
    (slope,) = torch.autograd.grad(out.logabsdet, J)
    assert out.replaced.item() == 1
    # pivots 2 and the replacement 4 eps
    assert out.logabsdet.item() == pytest.approx(np.log(8 * eps), abs=1e-4)
    assert slope.abs().max() <= 8 / eps
    # the gradient points along the cofactors (4, -2; -2, 1): the way that opens the determinant
    cofactor = torch.tensor([[4.0, 2.0], [2.0, 1.0]], dtype=dtype)
    relative = slope.abs() / slope.abs().max()
    torch.testing.assert_close(relative, cofactor / 4, atol=1e-3, rtol=0)
    zero = signed_logdet(torch.zeros(3, 3, dtype=dtype))
    assert zero.replaced.item() == 3
    assert torch.isfinite(zero.logabsdet)
    J = torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=dtype, requires_grad=True)
    (slope,) = torch.autograd.grad(signed_logdet(J).logabsdet, J, create_graph=True)
    (second,) = torch.autograd.grad(slope[0, 0], J)
    assert torch.isfinite(second).all()
    assert second[0, 0] == -1.0


@pytest.mark.parametrize(
    "barrier", [log_barrier, lambda *operands: series_log_barrier(*operands, order=3).beta]
)
def test_autocast_gives_values_and_gradients_of_single_precision(barrier):
    found = []
    for enabled in (True, False):
        operands = [t.float().requires_grad_() for t in layer(6)]
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            penalty = barrier(*operands).mean()
        assert penalty.dtype == torch.float32
        found.append((penalty, *torch.autograd.grad(penalty, operands)))
    for got, wanted in zip(*found, strict=True):
        assert torch.equal(got, wanted)


def test_gradients_of_half_precision_flow_and_the_finest_type_is_used():
    operands = [t.bfloat16().requires_grad_() for t in layer(6)]
    log_barrier(*operands).mean().backward()
    single = [t.detach().float().requires_grad_() for t in operands]
    log_barrier(*single).mean().backward()
    for half, wanted in zip(operands, single, strict=True):
        assert torch.equal(half.grad, wanted.grad.bfloat16())
    for fine in range(3):
        mixed = [t if i == fine else t.float() for i, t in enumerate(layer(8))]
        assert log_barrier(*mixed).dtype == torch.float64


def test_common_offset_of_keys_and_values_costs_no_digits():
    """Coordinate 4 is 300 for every token, and the query does not read it: where E[pk] - E[p]E[k]
    would cancel in float32.
    """
    X, W_Q, W_K = layer(5, (1,), T=30)
    X[..., 3], W_Q[:, 3] = 300.0, 0.0
    W_V = torch.eye(4, dtype=torch.float64)
    W_V[0, 3] = 1.0
    single = log_barrier(*(t.float() for t in (X, W_Q, W_K)), W_V=W_V.float()).double()
    wanted = log_barrier(X, W_Q, W_K, W_V=W_V)
    torch.testing.assert_close(single, wanted, atol=3e-4, rtol=0)


def test_nan_is_not_hidden():
    X, W_Q, W_K = layer()
    X[0, 1, 0] = torch.nan
    assert torch.isnan(log_barrier(X, W_Q, W_K)[0, 1:]).any()


def small_layer(heads: tuple[int, ...], size: float) -> list[torch.Tensor]:
    shapes = ((3, 12, 6), (*heads, 3, 6), (*heads, 3, 6), (*heads, 6, 6))
    factors = (1, size, size, 0.5)
    return [f * W for f, W in zip(factors, draw(7, *shapes, size=1.0), strict=True)]


@pytest.mark.parametrize("heads", [(), (2,)])
@pytest.mark.parametrize("order", [1, 2, 3, 4, 7])
def test_series_error_is_within_its_bound(heads, order):
    X, W_Q, W_K, W_V = small_layer(heads, 0.12)
    estimate = series_log_barrier(X, W_Q, W_K, W_V=W_V, order=order)
    error = (estimate.beta - log_barrier(X, W_Q, W_K, W_V=W_V)).abs()
    assert torch.isfinite(estimate.remainder).all()
    assert (error <= estimate.remainder + 1e-12).all()
    assert error.max() > 1e-3 * estimate.remainder.max()  # and the bound is not empty talk
    assert not estimate.standard_error.any()


def test_bound_is_infinite_where_the_series_may_diverge():
    X, W_Q, W_K, _ = small_layer((), 0.6)
    estimate = series_log_barrier(X, W_Q, W_K)
    error = (estimate.beta - log_barrier(X, W_Q, W_K)).abs()
    assert error.max() > 1.0
    assert torch.isinf(estimate.remainder[error > 1.0]).all()
    assert (estimate.remainder[:, :2] == 0).all()  # no past, then a past of one token: A = 0


@pytest.mark.parametrize("heads", [(), (2,)])
def test_stochastic_estimate_is_unbiased_within_its_standard_error_and_differentiable(heads):
    X, W_Q, W_K, W_V = small_layer(heads, 0.2)
    W_Q.requires_grad_()
    series = series_log_barrier(X, W_Q, W_K, W_V=W_V, order=5)
    seeded = {"probes": 2000, "generator": torch.Generator().manual_seed(1)}
    estimate = stochastic_log_barrier(X, W_Q, W_K, W_V=W_V, order=5, **seeded)
    z = ((estimate.beta - series.beta)[:, 2:] / estimate.standard_error[:, 2:]).detach()
    assert 0.5 < z.std() < 1.6
    assert z.abs().max() < 5
    torch.testing.assert_close(estimate.remainder, series.remainder)
    slopes = [torch.autograd.grad(one.beta.mean(), W_Q)[0] for one in (series, estimate)]
    torch.testing.assert_close(*slopes, atol=1e-3, rtol=0.02)
