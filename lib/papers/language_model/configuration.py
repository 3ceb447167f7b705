"""The configuration of a training run, and what follows from it alone (batches, learning
rates, a name).
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from papers.language_model.tokens import Tokens

PRECISIONS = ("float32", "bfloat16", "float64")


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained; equal configurations give equal losses on one machine."""

    steps: int = 300  # parameter updates
    batch_size: int = 16  # windows per update
    learning_rate: float = 3.0e-3  # at the end of the warm-up
    final_fraction: float = 0.1  # of the learning rate that is left at the last step
    warmup_steps: int = 20  # updates of linear rise
    beta1: float = 0.9  # memory of AdamW's mean
    beta2: float = 0.95  # memory of AdamW's mean square
    weight_decay: float = 0.01  # of matrices; gains and biases have none
    # largest gradient norm, of the model and of the penalty's parameters each
    clip_norm: float = 1.0
    penalty_weight: float = 0.0  # lambda
    seed: int = 0  # seeds the choice of windows
    evaluate_every: int = 100  # updates between evaluations and checkpoints
    evaluation_windows: int = 64  # validation windows, spread evenly
    patience: int = 0  # evaluations without progress before the run stops; 0 never stops
    # bfloat16 computes activations in it and keeps the weights in float32
    precision: str = "float32"
    compile: bool = False  # let torch.compile fuse the model: pays on a GPU

    def __post_init__(self) -> None:
        if not self.penalty_weight >= 0:
            raise ValueError(
                f"penalty_weight (lambda) is {self.penalty_weight}: a negative one would reward "
                "what the penalty forbids; give zero or more."
            )
        if self.precision not in PRECISIONS:
            raise ValueError(
                f"precision is {self.precision!r}: choose one of {', '.join(PRECISIONS)}."
            )
        for name in ("steps", "batch_size", "evaluate_every", "evaluation_windows"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"TrainingConfig.{name} is {getattr(self, name)}: it must be at least 1."
                )


def configuration_hash(*parts: Any) -> str:
    """Twelve hexadecimal digits of dataclasses, dictionaries, texts and arrays."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(np.ascontiguousarray(part).tobytes())
        else:
            plain = asdict(part) if hasattr(part, "__dataclass_fields__") else part
            digest.update(json.dumps(plain, sort_keys=True).encode())
        digest.update(b"\0")
    return digest.hexdigest()[:12]


def draw_batch(tokens: Tokens, config: TrainingConfig, length: int, step: int) -> Tensor:
    """The windows of one step, (batch_size, length + 1), from corpus, seed and step alone."""
    starts = np.random.default_rng([config.seed, step]).integers(
        0, len(tokens) - length, config.batch_size
    )
    return torch.from_numpy(tokens[starts[:, None] + np.arange(length + 1)].astype(np.int64))


def learning_rate(config: TrainingConfig, step: int) -> float:
    """Linear warm-up, then half a cosine down to ``final_fraction`` at the last step."""
    if step < config.warmup_steps:
        return config.learning_rate * (step + 1) / config.warmup_steps
    progress = (step - config.warmup_steps) / max(1, config.steps - 1 - config.warmup_steps)
    low = config.final_fraction
    return config.learning_rate * (
        low + (1 - low) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    )
