"""Seeded layers with known properties: for benchmarks, notebooks and tests."""

from __future__ import annotations

import numpy as np

from softgeom.layer import SoftmaxLayer


def normal_layer(
    classes: int, dimension: int, *, bias: bool = False, seed: int = 0
) -> SoftmaxLayer:
    """Standard normal rows (float32): in high dimension every class wins in its own direction."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((classes, dimension), dtype=np.float32)
    return SoftmaxLayer(W, rng.standard_normal(classes, dtype=np.float32) if bias else None)


def uniform_layer(classes: int, dimension: int, *, seed: int = 0) -> SoftmaxLayer:
    """Weights and bias from U(-1, 1) (float32), as in Figure 10 of paper 001."""
    rng = np.random.default_rng(seed)
    W = rng.uniform(-1, 1, (classes, dimension)).astype(np.float32)
    return SoftmaxLayer(W, rng.uniform(-1, 1, classes).astype(np.float32))


def hard_layer(
    classes: int = 32_000, dimension: int = 512, *, planted: int = 100, seed: int = 0
) -> SoftmaxLayer:
    """A layer that is hard to search, whose last ``planted`` classes can never win (float32, with
    bias).

    Rows have log-normal norms and a common shift; the last fifth is squeezed near the mean of the
    others with a lower bias, and the last ``planted`` rows are Dirichlet mixtures of 3 d rows with
    a bias below theirs on average.
    """
    rng = np.random.default_rng(seed)
    norms = np.exp(rng.normal(0, 0.35, classes))
    W = rng.normal(size=(classes, dimension)) / np.sqrt(dimension) * norms[:, None]
    W += rng.normal(size=dimension) * 0.8 / np.sqrt(dimension)
    b = rng.normal(0, 0.3, classes)
    squeezed = classes - classes // 5
    noise = rng.normal(size=(classes - squeezed, dimension)) * 0.25 / np.sqrt(dimension)
    W[squeezed:] = W[:squeezed].mean(axis=0) + noise
    b[squeezed:] -= 0.7
    for t in range(classes - planted, classes):
        rows = rng.choice(squeezed, 3 * dimension, replace=False)
        W[t] = rng.dirichlet(np.ones(3 * dimension)) @ W[rows]
        b[t] = -0.8
    return SoftmaxLayer(W.astype(np.float32), b.astype(np.float32))
