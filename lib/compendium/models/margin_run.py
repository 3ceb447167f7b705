"""One run of the margin sweep (003, Section 7): a GPT and its prior, trained."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from papers.language_model.configuration import TrainingConfig
from papers.language_model.gpt import GPT, GPTConfig
from papers.language_model.tokens import Tokens
from papers.language_model.training import DivergedError, Penalty, train
from papers.margins.embedding_prior import EmbeddingPrior, PriorConfig
from softgeom.arrays import Floats

# what a run depends on, for the cache
CODE = ("papers/margins", "papers/language_model", "compendium/models/margin_run.py")


@dataclass(frozen=True)
class MarginRun:
    """What a run ended with."""

    model: GPT
    prior: EmbeddingPrior
    evaluations: list[dict[str, float]]
    # a step; the last good model is kept then, and there are no evaluations
    diverged_at: int | None
    # (steps,) sizes of the batches' embeddings on the way, where the penalty notes them
    sizes: Floats = field(default_factory=lambda: np.zeros(0))


def train_margin_run(
    gpt: GPTConfig,
    training: TrainingConfig,
    prior_config: PriorConfig,
    tokens: Tokens,
    validation: Tokens,
    device: str,
    *,
    checkpoint: Path | None,
) -> MarginRun:
    """Train one model under the margin penalty; its seed gives all that is random."""
    prior = EmbeddingPrior(prior_config, seed=training.seed)
    model, evaluations, diverged_at = train_under(
        prior, gpt, training, tokens, validation, device, checkpoint=checkpoint
    )
    return MarginRun(model.eval(), prior.cpu().eval(), evaluations, diverged_at)


def train_under(
    penalty: Penalty,
    gpt: GPTConfig,
    training: TrainingConfig,
    tokens: Tokens,
    validation: Tokens,
    device: str,
    *,
    checkpoint: Path | None,
) -> tuple[GPT, list[dict[str, float]], int | None]:
    """Train under any penalty: the model, its evaluations, and the step at which it diverged."""
    model = GPT(gpt, seed=training.seed)
    try:
        result = train(
            model,
            tokens,
            validation,
            training,
            penalty=penalty,
            checkpoint=checkpoint,
            device=device,
        )
    except DivergedError as error:
        return model.cpu(), [], error.step
    return model.cpu(), result.evaluations, None
