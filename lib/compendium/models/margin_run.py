"""One run of the margin sweep (003, Section 7): a GPT and its prior, trained, written, read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from safetensors.torch import load_file, save_file

from papers.language_model.configuration import TrainingConfig
from papers.language_model.gpt import GPT, GPTConfig
from papers.language_model.saved import load_model, save_model
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
    return MarginRun(model, prior.cpu(), evaluations, diverged_at)


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


def write(folder: Path, run: MarginRun) -> None:
    """Weights as safetensors, the rest as JSON."""
    save_model(folder, run.model)
    tensors = {name: tensor.contiguous().cpu() for name, tensor in run.prior.state_dict().items()}
    save_file(tensors, folder / "prior.safetensors")
    np.save(folder / "sizes.npy", run.sizes, allow_pickle=False)
    outcome = {
        "evaluations": run.evaluations,
        "diverged_at": run.diverged_at,
        "prior": asdict(run.prior.config),
    }
    (folder / "outcome.json").write_text(json.dumps(outcome, indent=1) + "\n", encoding="utf-8")


def read(folder: Path) -> MarginRun:
    """What `write` wrote; model and prior in evaluation."""
    outcome = json.loads((folder / "outcome.json").read_text(encoding="utf-8"))
    prior = EmbeddingPrior(PriorConfig(**outcome.pop("prior")))
    prior.load_state_dict(load_file(folder / "prior.safetensors"))
    sizes = np.load(folder / "sizes.npy", allow_pickle=False)
    return MarginRun(load_model(folder).eval(), prior.eval(), **outcome, sizes=sizes)
