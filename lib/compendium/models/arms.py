"""Arms of one training, which differ in what the embeddings feel of the margin penalty (003,
Section 7).

Arms of a seed start from the same weights and see the same batches. ``none`` has no penalty,
``placebo`` the whole code path and an M that learns, with a share of the embeddings' gradient that
changes little more than rounding does; ``penalty`` is the treatment; ``size`` pulls the embeddings
along the sizes that the treatment went through. Placebo against none is the null: how far two runs
of one seed drift apart for no reason. Every run is kept.

Losses: (seed, arm) -> (1 + perturbations, windows), nats per token, clean first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from compendium.cache import Cache
from compendium.models import margin_run
from compendium.models.margin_run import MarginRun
from compendium.models.robustness import perturbation_grid
from compendium.models.sweep import (
    Experiment,
    embedding_errors,
    embeddings_rms,
    losses_under,
    signed_window_scores,
    window_scores,
)
from papers.language_model import (
    GPT,
    GPTConfig,
    Penalty,
    Tokens,
    TrainingConfig,
    resolve_device,
    train,
)
from papers.margins.controls import DosedPrior, SizePull
from papers.margins.embedding_prior import EmbeddingPrior, PriorConfig
from papers.margins.perturb import Perturbation
from papers.margins.support import ROUNDING
from softgeom import parallel
from softgeom.arrays import Floats

Losses = dict[tuple[int, str], Floats]
NONE, PLACEBO = "none", "placebo"


@dataclass(frozen=True)
class Arm:
    """One treatment or control."""

    name: str
    penalty_weight: float  # lambda, or the strength of the pull
    dose: float = 1.0  # share of the penalty's gradient that the embeddings feel
    follows: str = ""  # the arm whose embedding sizes it is pulled along
    prior: PriorConfig | None = None  # readings of the prior, where they are its own


def arms_of(weights: Sequence[float], dose: float, pull: float) -> list[Arm]:
    """None, placebo, and a penalty of each weight with its size arm, in order of training."""
    penalties = [Arm(f"penalty {weight:g}", weight) for weight in weights]
    treated = [arm for one in penalties for arm in (one, size_arm(one, pull))]
    return [Arm(NONE, 0.0), Arm(PLACEBO, weights[0], dose=dose), *treated]


def held_arms(base: PriorConfig, weight: float, scale: float, stride: int) -> list[Arm]:
    """Penalties whose M is positive and keeps the norm of its start (``scale`` times the usual
    entries): of the base's rank, and full, with a mean over every ``stride``-th position.
    """
    low = replace(base, coupling="held", init_scale=scale)
    full = replace(low, rank=0, stride=stride)
    return [
        Arm(f"held {weight:g}, {name}", weight, prior=prior)
        for name, prior in ((f"rank {base.rank}", low), ("full", full))
    ]


def size_arm(treated: Arm, pull: float) -> Arm:
    """The control that is pulled along the embedding sizes of another arm."""
    return Arm(f"size of {treated.name}", pull, follows=treated.name)


def train_arm(
    gpt: GPTConfig,
    training: TrainingConfig,
    prior_config: PriorConfig,
    dose: float,
    path: Floats,
    tokens: Tokens,
    validation: Tokens,
    device: str,
    *,
    checkpoint: Path | None,
) -> MarginRun:
    """Train one arm; weights, prior and batches all come from the training's seed. Where ``path``,
    (steps,) or (0,), holds sizes, the embeddings are pulled along them in place of a prior.
    """
    dosed = DosedPrior(prior_config, training.seed, dose, training.steps)
    penalty: Penalty = SizePull(path) if len(path) else dosed
    model, evaluations, diverged_at = margin_run.train_under(
        penalty, gpt, training, tokens, validation, device, checkpoint=checkpoint
    )
    sizes = dosed.sizes.double().cpu().numpy()
    prior = dosed.prior.cpu().eval()
    return MarginRun(model.eval(), prior, evaluations, diverged_at, sizes)


@contextlib.contextmanager
def _flushing_denormals() -> Iterator[None]:
    """Denormal numbers in saturated attention are slow; what comes after may need them."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


@_flushing_denormals()
def run_seed(
    base: Experiment,
    seed: int,
    arms: Sequence[Arm],
    tokens: Tokens,
    validation: Tokens,
    folder: Path,
    windows: Tokens,
    multiples: Mapping[str, Sequence[float]],
    device: str = "auto",
) -> tuple[list[dict[str, Any]], Losses, list[dict[str, Any]]]:
    """Train every arm of a seed on a corpus, or read it in the folder where runs are kept, and
    measure it on windows (n, T + 1): one dictionary an arm, with ``seed`` and ``arm``; the losses;
    one dictionary an evaluation.

    ``base`` gives sizes, training and readings of the prior; the seed is that of weights, batches,
    M and perturbations. The arm without penalty stands first, one that follows another after it.
    ``multiples`` are sizes of each family of perturbations, in units of :func:`perturbation_grid`.
    """
    rows: list[dict[str, Any]] = []
    losses: Losses = {}
    evaluations: list[dict[str, Any]] = []
    sizes: dict[str, Floats] = {}
    perturbations: list[Perturbation] = []
    code = (*margin_run.CODE, "compendium/models/arms.py")
    cache = Cache(folder, code)
    for arm in arms:
        training = replace(base.training, seed=seed, penalty_weight=arm.penalty_weight)
        path = sizes[arm.follows] if arm.follows else np.zeros(0)
        label = f"{seed}-{arm.name}-{training.steps}".replace(" ", "_").replace(",", "")
        told = (base.gpt, training, arm.prior or base.prior, arm.dose, path)
        run = cache.keep(train_arm, *told, tokens, validation, device, label=label, resumes=True)
        sizes[arm.name] = run.sizes
        if arm.name == NONE:
            rms = embeddings_rms(run.model, windows)
            perturbations = perturbation_grid(multiples, rms, base.gpt.d_model)
        numbers, losses[seed, arm.name] = measure_run(run, windows, perturbations, seed, device)
        row = {"seed": seed, "arm": arm.name, "penalty_weight": arm.penalty_weight}
        rows.append(row | numbers | {"diverged_at": run.diverged_at})
        evaluations += [{"seed": seed, "arm": arm.name} | row for row in run.evaluations]
        print(f"seed {seed}, {arm.name}: perplexity {numbers['perplexity']:.2f}", flush=True)
    return rows, losses, evaluations


def run_seeds(
    base: Experiment, seeds: Sequence[int], arms: Sequence[Arm], *others: Any, n_jobs: int = 1
) -> tuple[pd.DataFrame, Losses, pd.DataFrame]:
    """:func:`run_seed` for each seed, ``n_jobs`` at a time; ``others`` are its other arguments."""
    jobs = [(base, seed, arms, *others) for seed in seeds]
    found = parallel.run_blocks(run_seed, jobs, n_jobs=n_jobs, description="seeds")
    losses: Losses = {}
    for _, measured, _ in found:
        losses |= measured
    runs, evaluations = (
        pd.DataFrame([row for each in found for row in each[place]]) for place in (0, 2)
    )
    return runs, losses, evaluations


@torch.no_grad()
def measure_run(
    run: MarginRun, windows: Tokens, perturbations: Sequence[Perturbation], seed: int, device: str
) -> tuple[dict[str, float], Floats]:
    """Perplexity, sizes, mean embedding error and scores of a trained model, by its M and by the M
    of its start, by name; its losses (1 + perturbations, windows), clean and perturbed.
    """
    model, prior = run.model.to(resolve_device(device)), run.prior
    losses = losses_under(model, windows, perturbations, seed)
    # the first position has no past
    beta, sign = (each[:, 1:] for each in signed_window_scores(model, prior, windows))
    untrained = window_scores(model, EmbeddingPrior(prior.config, seed), windows)[:, 1:]
    numbers = {
        "perplexity": float(np.exp(losses[0].mean())),
        "embedding_rms": embeddings_rms(model, windows),
        "embedding_error": float(embedding_errors(model, windows).mean()),
        "mean_beta": float(beta.mean()),
        "untrained_beta": float(untrained.mean()),
        "positive_share": float((beta > ROUNDING).mean()),
        "folded_share": float((sign < 0).mean()),
        "coupling_norm": prior.coupling_matrix().norm().item(),
        "parameters": float(sum(p.numel() for p in model.parameters())),
    }
    return numbers, losses


@_flushing_denormals()
def inert_forms(
    base: Experiment, weight: float, dose: float, steps: int, tokens: Tokens, seed: int
) -> pd.DataFrame:
    """Three penalties that ought to do nothing, of lambda ``weight`` times zero, and the placebo of
    a dose: largest distance of their weights from those of a run without penalty, after a few
    steps on the same tokens.
    """
    training = replace(base.training, steps=steps, seed=seed, penalty_weight=weight)
    training = replace(training, evaluate_every=steps, evaluation_windows=1)
    through = EmbeddingPrior(base.prior, seed)
    frozen = EmbeddingPrior(replace(base.prior, init_scale=0.0), seed).requires_grad_(False)
    penalties: dict[str, Penalty] = {
        "weight zero": lambda X: 0.0 * through(X),
        "frozen M of zero norm": frozen,
        "penalty on a detached copy": DosedPrior(base.prior, seed, 0.0, steps),
        f"placebo, dose {dose:g}": DosedPrior(base.prior, seed, dose, steps),
    }
    plain = _trained(base.gpt, replace(training, penalty_weight=0.0), tokens, None)
    rows = []
    for name, penalty in penalties.items():
        weights = _trained(base.gpt, training, tokens, penalty)
        apart = max((a - b).abs().max().item() for a, b in zip(weights, plain, strict=True))
        rows.append({"penalty": name, "steps": steps, "largest_difference": apart})
    return pd.DataFrame(rows)


def _trained(
    gpt: GPTConfig, training: TrainingConfig, tokens: Tokens, penalty: Penalty | None
) -> list[Tensor]:
    model = GPT(gpt, seed=training.seed)
    train(model, tokens, tokens[: 2 * gpt.n_ctx], training, penalty=penalty, device="cpu")
    return [parameter.detach() for parameter in model.parameters()]
