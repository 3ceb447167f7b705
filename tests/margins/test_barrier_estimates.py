"""Estimates against the exact barrier: within the error that they state."""

import pytest
import torch

from softgeom.margins import log_barrier, series_log_barrier, stochastic_log_barrier


def _operands(heads: tuple[int, ...], size: float) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(7)
    shapes = ((3, 12, 6), (*heads, 3, 6), (*heads, 3, 6), (*heads, 6, 6))
    return [
        f * torch.randn(*shape, generator=generator, dtype=torch.float64)
        for f, shape in zip((1, size, size, 0.5), shapes, strict=True)
    ]


@pytest.mark.parametrize("heads", [(), (2,)])
@pytest.mark.parametrize("order", [1, 2, 3, 4, 7])
def test_series_error_is_within_its_bound(heads, order):
    X, W_Q, W_K, W_V = _operands(heads, 0.12)
    estimate = series_log_barrier(X, W_Q, W_K, W_V=W_V, order=order)
    error = (estimate.beta - log_barrier(X, W_Q, W_K, W_V=W_V, method="dense")).abs()
    assert torch.isfinite(estimate.remainder).all()
    assert (error <= estimate.remainder + 1e-12).all()
    assert error.max() > 1e-3 * estimate.remainder.max()  # and the bound is not empty talk
    assert not estimate.standard_error.any()


def test_bound_is_infinite_where_the_series_may_diverge():
    X, W_Q, W_K, _ = _operands((), 0.6)
    estimate = series_log_barrier(X, W_Q, W_K)
    remainder = estimate.remainder
    error = (estimate.beta - log_barrier(X, W_Q, W_K)).abs()
    assert error.max() > 1.0
    assert torch.isinf(remainder[error > 1.0]).all()
    assert (remainder[:, :2] == 0).all()  # no past, then a past of one token: A = 0


@pytest.mark.parametrize("heads", [(), (2,)])
def test_stochastic_estimate_is_unbiased_within_its_standard_error(heads):
    X, W_Q, W_K, W_V = _operands(heads, 0.2)
    series = series_log_barrier(X, W_Q, W_K, W_V=W_V, order=5)
    seeded = {"probes": 400, "generator": torch.Generator().manual_seed(0)}
    estimate = stochastic_log_barrier(X, W_Q, W_K, W_V=W_V, order=5, **seeded)
    z = (estimate.beta - series.beta)[:, 2:] / estimate.standard_error[:, 2:]
    assert 0.5 < z.std() < 1.6
    assert z.abs().max() < 5
    torch.testing.assert_close(estimate.remainder, series.remainder)


def test_stochastic_estimate_is_differentiable():
    X, W_Q, W_K, _ = _operands((), 0.2)
    gradients, seeded = [], {"probes": 2000, "generator": torch.Generator().manual_seed(1)}
    for method, options in (("series", {}), ("stochastic", seeded)):
        W = W_Q.clone().requires_grad_()
        log_barrier(X, W, W_K, method=method, order=5, **options).mean().backward()
        gradients.append(W.grad)
    torch.testing.assert_close(*gradients, atol=1e-3, rtol=0.02)


def test_bad_input_is_named():
    X, W_Q, W_K, _ = _operands((), 0.2)
    with pytest.raises(ValueError, match="at least 3"):
        stochastic_log_barrier(X, W_Q, W_K, order=2)
    with pytest.raises(ValueError, match="at least 1"):
        series_log_barrier(X, W_Q, W_K, order=0)
