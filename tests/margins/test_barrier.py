"""The log-barrier: three exact routes, gradcheck, the boundary, mixed precision."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.margins import (
    attention_jacobian_blocks,
    log_barrier,
    series_log_barrier,
    signed_log_barrier,
    stochastic_log_barrier,
)
from papers.margins.barrier import EXACT_METHODS, cheapest_exact_method


def _operands(seed: int, *shapes: tuple[int, ...], size: float = 0.6) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [
        size * torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in shapes
    ]


@pytest.mark.parametrize("method", EXACT_METHODS)
@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**31),
    T=st.integers(1, 9),
    d=st.integers(1, 6),
    r=st.integers(1, 8),
    values=st.booleans(),
)
def test_every_exact_method_is_the_determinant_of_the_closed_form(method, seed, T, d, r, values):
    """Shapes of every kind: one token, one dimension, more directions than dimensions or tokens."""
    X, W_Q, W_K, W_V = _operands(seed, (2, T, d), (r, d), (r, d), (d, d), size=1.0)
    W_V = W_V if values else None
    out = signed_log_barrier(X, W_Q, W_K, W_V=W_V, method=method)
    for n in range(2):
        operands = [W if W is None else W.numpy() for W in (X[n], W_Q, W_K, W_V)]
        sign, logdet = np.linalg.slogdet(attention_jacobian_blocks(*operands))
        # both lose digits there
        near = np.abs(np.linalg.det(attention_jacobian_blocks(*operands))) < 1e-4
        np.testing.assert_allclose(out.beta[n].numpy()[~near], -logdet[~near], atol=1e-9)
        assert (out.sign[n].numpy() == sign)[~near].all()


def _multi_head_residual(x, past, W_Q, W_K, W_V):
    out = x
    for Q, K, V in zip(W_Q, W_K, W_V, strict=True):
        out = out - V @ (torch.softmax((past @ K.T) @ (Q @ x), dim=0) @ past)
    return out


@pytest.mark.parametrize("method", EXACT_METHODS)
def test_heads_add_up_inside_the_determinant(method):
    X, W_Q, W_K, W_V = _operands(0, (5, 4), (3, 2, 4), (3, 2, 4), (3, 4, 4))
    got = log_barrier(X, W_Q, W_K, W_V=W_V, method=method)
    for i in range(1, 5):
        J = torch.autograd.functional.jacobian(
            lambda x, i=i: _multi_head_residual(x, X[:i], W_Q, W_K, W_V), X[i]
        )
        assert got[i].item() == pytest.approx(-torch.linalg.slogdet(J).logabsdet.item(), abs=1e-10)
    averaged = torch.eye(4, dtype=torch.float64).expand(3, 4, 4) / 3
    wanted = log_barrier(X, W_Q, W_K, W_V=averaged, method="dense")
    got = log_barrier(X, W_Q, W_K, method=method)
    torch.testing.assert_close(got, wanted, atol=1e-12, rtol=0)


@pytest.mark.parametrize("method", [*EXACT_METHODS, "series"])
@pytest.mark.parametrize("heads", [(), (2,)])
def test_gradcheck(method, heads):
    operands = _operands(1, (2, 5, 3), (*heads, 2, 3), (*heads, 2, 3), (*heads, 3, 3))
    operands = [t.requires_grad_() for t in operands]
    kept = torch.tensor([1, 4])
    assert torch.autograd.gradcheck(
        lambda X, Q, K, V: log_barrier(X, Q, K, W_V=V, method=method, positions=kept, order=3),
        operands,
    )


def test_positions_select_rows():
    X, W_Q, W_K = _operands(3, (2, 7, 4), (2, 4), (2, 4))
    kept = torch.tensor([6, 0, 3])
    for method in (*EXACT_METHODS, "series"):
        whole = log_barrier(X, W_Q, W_K, method=method)
        part = log_barrier(X, W_Q, W_K, method=method, positions=kept)
        torch.testing.assert_close(part, whole[:, kept])


def _on_the_line(variance: float, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Position 3 of (-u, u, 0): weights 1/2, variance u^2, J = 1 - u^2 with c = 1."""
    u = variance**0.5
    return torch.tensor([[-u], [u], [0.0]], dtype=dtype), torch.ones(1, 1, dtype=dtype)


@pytest.mark.parametrize("method", EXACT_METHODS)
def test_barrier_grows_without_bound_and_turns_beyond_the_boundary(method):
    for variance, sign in ((0.5, 1), (1 - 1e-6, 1), (1 + 1e-6, -1), (3.0, -1)):
        X, one = _on_the_line(variance, torch.float64)
        out = signed_log_barrier(X, one, one, method=method)
        assert out.beta[2].item() == pytest.approx(-np.log(abs(1 - variance)), abs=1e-8)
        assert out.sign.tolist() == [1, 1, sign]
        assert out.replaced.sum() == 0


@pytest.mark.parametrize("method", EXACT_METHODS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_on_the_boundary_value_and_gradient_are_finite_and_reported(method, dtype):
    X, one = _on_the_line(1.0, dtype)
    X.requires_grad_()
    out = signed_log_barrier(X, one, one, method=method)
    out.beta[2].backward()
    assert out.replaced.tolist()[2] == 1
    # one pivot at eps; the others, which differ between the methods, are of order one
    assert out.beta[2].item() == pytest.approx(-np.log(torch.finfo(dtype).eps), abs=1.0)
    assert torch.isfinite(X.grad).all()
    # descent pulls the past together, away from the boundary
    assert (X.grad[:2, 0] * X.detach()[:2, 0] > 0).all()


@pytest.mark.parametrize("method", [*EXACT_METHODS, "series"])
def test_autocast_gives_values_and_gradients_of_single_precision(method):
    found = []
    for enabled in (True, False):
        X, W_Q, W_K = (t.float().requires_grad_() for t in _operands(6, (2, 12, 4), (2, 4), (2, 4)))
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            penalty = log_barrier(X, W_Q, W_K, method=method, order=3).mean()
        assert penalty.dtype == torch.float32
        found.append((penalty, *torch.autograd.grad(penalty, (X, W_Q, W_K))))
    for got, wanted in zip(*found, strict=True):
        assert torch.equal(got, wanted)


def test_gradients_of_half_precision_flow_and_the_finest_type_is_used():
    operands = [t.bfloat16().requires_grad_() for t in _operands(6, (2, 12, 4), (2, 4), (2, 4))]
    log_barrier(*operands).mean().backward()
    single = [t.detach().float().requires_grad_() for t in operands]
    log_barrier(*single).mean().backward()
    for half, wanted in zip(operands, single, strict=True):
        assert torch.equal(half.grad, wanted.grad.bfloat16())
    X, W_Q, W_K, W_V = _operands(8, (4, 3), (2, 3), (2, 3), (3, 3))
    for fine in range(4):
        mixed = [t if i == fine else t.float() for i, t in enumerate((X, W_Q, W_K, W_V))]
        assert log_barrier(*mixed[:3], W_V=mixed[3]).dtype == torch.float64


def test_common_offset_of_keys_and_values_costs_no_digits():
    """Coordinate 4 is 300 for every token, and the query does not read it: where E[pk] - E[p]E[k]
    would cancel in float32.
    """
    X, W_Q, W_K = _operands(5, (1, 30, 4), (2, 4), (2, 4))
    X[..., 3] = 300.0
    W_Q[:, 3] = 0.0
    W_V = torch.eye(4, dtype=torch.float64)
    W_V[0, 3] = 1.0
    wanted = log_barrier(X, W_Q, W_K, W_V=W_V)
    single = log_barrier(*(t.float() for t in (X, W_Q, W_K)), W_V=W_V.float(), method="low_rank")
    torch.testing.assert_close(single.double(), wanted, atol=3e-4, rtol=0)


def test_auto_takes_the_smallest_determinant_and_nan_is_not_hidden():
    assert cheapest_exact_method(tokens=512, rank=64, dimension=384) == "low_rank"
    assert cheapest_exact_method(tokens=16, rank=64, dimension=384) == "dual"
    assert cheapest_exact_method(tokens=512, rank=384, dimension=64) == "dense"
    X, W_Q, W_K = _operands(0, (4, 3), (2, 3), (2, 3))
    X[1, 0] = torch.nan
    assert torch.isnan(log_barrier(X, W_Q, W_K, method="low_rank")[1:]).any()


def _small_operands(heads: tuple[int, ...], size: float) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(7)
    shapes = ((3, 12, 6), (*heads, 3, 6), (*heads, 3, 6), (*heads, 6, 6))
    return [
        f * torch.randn(*shape, generator=generator, dtype=torch.float64)
        for f, shape in zip((1, size, size, 0.5), shapes, strict=True)
    ]


@pytest.mark.parametrize("heads", [(), (2,)])
@pytest.mark.parametrize("order", [1, 2, 3, 4, 7])
def test_series_error_is_within_its_bound(heads, order):
    X, W_Q, W_K, W_V = _small_operands(heads, 0.12)
    estimate = series_log_barrier(X, W_Q, W_K, W_V=W_V, order=order)
    error = (estimate.beta - log_barrier(X, W_Q, W_K, W_V=W_V, method="dense")).abs()
    assert torch.isfinite(estimate.remainder).all()
    assert (error <= estimate.remainder + 1e-12).all()
    assert error.max() > 1e-3 * estimate.remainder.max()  # and the bound is not empty talk
    assert not estimate.standard_error.any()


def test_bound_is_infinite_where_the_series_may_diverge():
    X, W_Q, W_K, _ = _small_operands((), 0.6)
    estimate = series_log_barrier(X, W_Q, W_K)
    remainder = estimate.remainder
    error = (estimate.beta - log_barrier(X, W_Q, W_K)).abs()
    assert error.max() > 1.0
    assert torch.isinf(remainder[error > 1.0]).all()
    assert (remainder[:, :2] == 0).all()  # no past, then a past of one token: A = 0


@pytest.mark.parametrize("heads", [(), (2,)])
def test_stochastic_estimate_is_unbiased_within_its_standard_error(heads):
    X, W_Q, W_K, W_V = _small_operands(heads, 0.2)
    series = series_log_barrier(X, W_Q, W_K, W_V=W_V, order=5)
    seeded = {"probes": 400, "generator": torch.Generator().manual_seed(0)}
    estimate = stochastic_log_barrier(X, W_Q, W_K, W_V=W_V, order=5, **seeded)
    z = (estimate.beta - series.beta)[:, 2:] / estimate.standard_error[:, 2:]
    assert 0.5 < z.std() < 1.6
    assert z.abs().max() < 5
    torch.testing.assert_close(estimate.remainder, series.remainder)


def test_stochastic_estimate_is_differentiable():
    X, W_Q, W_K, _ = _small_operands((), 0.2)
    gradients, seeded = [], {"probes": 2000, "generator": torch.Generator().manual_seed(1)}
    for method, options in (("series", {}), ("stochastic", seeded)):
        W = W_Q.clone().requires_grad_()
        log_barrier(X, W, W_K, method=method, order=5, **options).mean().backward()
        gradients.append(W.grad)
    torch.testing.assert_close(*gradients, atol=1e-3, rtol=0.02)
