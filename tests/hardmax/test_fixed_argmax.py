"""The short way through the layers against the long one: `hardmax_step` recorded by autograd, and
finite differences.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom.hardmax.dynamics import hardmax_step
from softgeom.hardmax.fixed_argmax import mean_after_layers


def reviews(seed, d=2, batch=5, n=12):
    generator = torch.Generator().manual_seed(seed)
    Z = torch.randn(batch, n, d, generator=generator, dtype=torch.float64)
    counts = torch.randint(1, 4, (batch, n), generator=generator).double()
    lengths = torch.randint(1, n + 1, (batch, 1), generator=generator)
    return Z, torch.where(torch.arange(n) < lengths, counts, 0.0)


def long_way(Z, counts, alpha, layers):
    for _ in range(layers):
        Z = hardmax_step(
            Z, torch.eye(Z.shape[-1], dtype=Z.dtype), alpha, counts=counts, check=False
        )
    return (counts[..., None] * Z).sum(1) / counts.sum(1, keepdim=True)


@given(
    seed=st.integers(0, 10**6),
    d=st.sampled_from([1, 2, 5, 9]),
    alpha=st.floats(0.05, 4.0),
    layers=st.integers(0, 6),
)
@settings(max_examples=30, deadline=None)
def test_value_and_gradients_equal_those_of_the_layers(seed, d, alpha, layers):
    Z, counts = reviews(seed, d)
    direction = torch.linspace(-1, 1, d + 1, dtype=torch.float64)[1:]
    results = []
    for way in (mean_after_layers, long_way):
        tokens, step = (
            Z.clone().requires_grad_(),
            torch.tensor(alpha, dtype=torch.float64, requires_grad=True),
        )
        mean = way(tokens, counts, step, layers)
        (mean @ direction).sum().backward()
        results.append(
            (mean.detach(), tokens.grad, step.grad if step.grad is not None else torch.zeros(()))
        )
    for short, long in zip(*results, strict=True):
        torch.testing.assert_close(short, long.to(short.dtype), rtol=1e-9, atol=1e-12)


def test_gradients_by_finite_differences():
    Z, counts = reviews(3, batch=2, n=5)
    step = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda z, a: mean_after_layers(z, counts, a, 4), (Z.requires_grad_(), step)
    )


def test_padding_is_never_chosen_and_has_no_gradient():
    Z = torch.tensor([[[1.0, 0.0], [0.2, 0.1], [50.0, 50.0]]], requires_grad=True)
    counts = torch.tensor([[1.0, 2.0, 0.0]])
    mean = mean_after_layers(Z, counts, torch.tensor(1.0), 8)
    assert mean.abs().max() < 1.1
    mean.sum().backward()
    assert Z.grad is not None
    assert Z.grad[0, 2].abs().max() == 0


def test_weights_sum_to_one_and_no_layers_leave_the_mean():
    Z, counts = reviews(1)
    Z.requires_grad_()
    mean_after_layers(Z, counts, torch.tensor(1.0, dtype=torch.float64), 5)[:, 0].sum().backward()
    assert Z.grad is not None
    torch.testing.assert_close(Z.grad[..., 0].sum(1), torch.ones(len(Z), dtype=torch.float64))
    plain = mean_after_layers(Z.detach(), counts, torch.tensor(1.0, dtype=torch.float64), 0)
    torch.testing.assert_close(plain, long_way(Z.detach(), counts, 1.0, 0))


@pytest.mark.parametrize("layers", [0, 8])
def test_one_word_reviews_stay_where_they_are(layers):
    Z = torch.randn(3, 1, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(mean_after_layers(Z, torch.ones(3, 1), torch.tensor(2.0), layers), Z[:, 0])
