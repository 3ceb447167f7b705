"""Localisation of the correction in a stack, by the full Jacobian of automatic differentiation."""

from __future__ import annotations

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


def test_standard_layers_add_no_volume(stack):
    X, prior, generator = stack
    blocks = [depth.Block.random(D, generator) for _ in range(LAYERS)]
    full = depth.stack_jacobian(X, prior, blocks)
    size = T * D
    for level in range(1, LAYERS + 1):
        own = full[level * size : (level + 1) * size, level * size : (level + 1) * size]
        torch.testing.assert_close(own, torch.eye(size, dtype=torch.float64), atol=0.0, rtol=0.0)
    assert torch.all(full.reshape(LAYERS + 1, size, LAYERS + 1, size)[0, :, 1:] == 0)
    stage = torch.linalg.slogdet(torch.as_tensor(attention_jacobian_blocks(X[0].numpy(), *(W.numpy() for W in prior))))
    assert torch.linalg.slogdet(full).logabsdet.item() == pytest.approx(stage.logabsdet.sum().item(), abs=1e-10)


def test_layer_that_queries_its_own_output_adds_its_own_term(stack):
    X, prior, generator = stack
    blocks = [depth.Block.random(D, generator), depth.Block.random(D, generator, implicit=True)]
    total = torch.linalg.slogdet(depth.stack_jacobian(X, prior, blocks)).logabsdet.item()
    stage = torch.linalg.slogdet(torch.as_tensor(attention_jacobian_blocks(X[0].numpy(), *(W.numpy() for W in prior))))
    extra = torch.linalg.slogdet(depth.implicit_blocks(X[1], X[2], blocks[1])).logabsdet.sum().item()
    assert abs(extra) > 1e-2
    assert total == pytest.approx(stage.logabsdet.sum().item() + extra, abs=1e-10)
