"""A tiny model and a tiny corpus with some structure to learn."""

from __future__ import annotations

import numpy as np
import pytest

from softgeom.language_model import GPTConfig, TrainingConfig

torch = pytest.importorskip("torch")


@pytest.fixture
def tiny() -> GPTConfig:
    return GPTConfig(d_vocab=29, d_model=12, n_heads=2, n_layers=2, d_mlp=20, n_ctx=10)


@pytest.fixture
def corpus() -> tuple[np.ndarray, np.ndarray]:
    """Each token is the one before plus 1, 2 or 3, modulo 29."""
    rng = np.random.default_rng(5)
    tokens = np.cumsum(rng.integers(1, 4, 3000)) % 29
    return tokens[:2500].astype(np.int32), tokens[2500:].astype(np.int32)


@pytest.fixture
def quick() -> TrainingConfig:
    return TrainingConfig(
        steps=12, batch_size=4, learning_rate=1e-2, warmup_steps=2, evaluate_every=4, evaluation_windows=5, seed=3
    )
