"""The training experiment of 003, Section 7: one GPT for each margin penalty lambda, equal in
everything else.

An :class:`Experiment` is a complete description of one run and its key a hash of it; what came of
the run is kept (`compendium.cache`). All that is random comes from its seed: weights and the
prior's M at the start, and the batches, are the same for every lambda.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from compendium.cache import Cache
from compendium.models import margin_run
from compendium.models.language_models import EncodedText
from papers.language_model import (
    GPT,
    GPTConfig,
    Tokens,
    TrainingConfig,
    configuration_hash,
    resolve_device,
    window_losses,
)
from papers.margins.barrier import signed_log_barrier
from papers.margins.embedding_prior import EmbeddingPrior, PriorConfig
from papers.margins.perturb import (
    Perturbation,
    contextual_embedding_error,
    embedding_rms,
    perturber,
)
from softgeom import parallel

TRIAL_SEED = 1000  # of the runs that choose a learning rate


@dataclass(frozen=True)
class Experiment:
    """One run of the sweep."""

    group: str  # "sweep", or the name of the ablation
    gpt: GPTConfig
    training: TrainingConfig
    prior: PriorConfig
    corpus: str  # hash of the encoded corpus

    @property
    def key(self) -> str:
        """Name of the run, a hash of its description; two groups may share a run."""
        return configuration_hash(self.gpt, self.training, self.prior, self.corpus)

    def columns(self) -> dict[str, Any]:
        """What a table needs to tell runs apart."""
        return {
            "key": self.key,
            "group": self.group,
            "penalty_weight": self.training.penalty_weight,
            "seed": self.training.seed,
            "coupling": self.prior.coupling,
            "rank": self.prior.rank,
            "quadratic": self.prior.quadratic,
        }


def base_experiment(
    told: Mapping[str, Any], text: EncodedText, learning_rate: float | None = None
) -> Experiment:
    """What all runs of a sweep have in common, from notebook 23's parameters by name and the text
    that is learned, which gives the size of the vocabulary and, with `epochs`, the number of steps;
    the first of the `learning_rates` where none is given.
    """
    d = told["d_model"]
    sizes = {name: told[name] for name in ("d_model", "n_heads", "n_layers", "n_ctx")}
    gpt = GPTConfig(d_vocab=len(text.tokenizer), d_mlp=4 * d, **sizes)
    passes = told["epochs"] * len(text.train) / (told["batch_size"] * told["n_ctx"])
    as_told = "batch_size evaluate_every evaluation_windows patience precision".split()
    training = TrainingConfig(
        steps=int(passes) if told["epochs"] > 0 else told["steps"],
        learning_rate=learning_rate or told["learning_rates"][0],
        compile=told["compile_model"],
        **{name: told[name] for name in as_told},
    )
    return Experiment("sweep", gpt, training, PriorConfig(d_model=d, rank=told["rank"]), text.key)


def penalty_grid(
    base: Experiment, weights: Sequence[float], seeds: Sequence[int]
) -> list[Experiment]:
    """Every lambda with every seed, the seeds outermost: one that is cut short has whole seeds."""
    return [_changed(base, "sweep", weight, seed) for seed in seeds for weight in weights]


def _changed(base: Experiment, group: str, weight: float, seed: int) -> Experiment:
    training = replace(base.training, penalty_weight=weight, seed=seed)
    return replace(base, group=group, training=training)


def ablations(
    base: Experiment, weight: float, seeds: Mapping[str, int], stride: int = 1
) -> list[Experiment]:
    """Other readings of the prior at one lambda: positive and negative coupling, the quadratic
    term, a full M, whose mean is over every ``stride``-th position. ``seeds`` says of each how
    many; ValueError if one has another name.
    """
    readings = {
        "positive coupling": replace(base.prior, coupling="positive"),
        "negative coupling": replace(base.prior, coupling="negative"),
        "quadratic term": replace(base.prior, quadratic=True),
        "full M": replace(base.prior, rank=0, stride=stride),
    }
    if unknown := seeds.keys() - readings.keys():
        raise ValueError(
            f"no reading of the prior is called {min(unknown)!r}: choose among "
            f"{', '.join(readings)}."
        )
    return [
        _changed(replace(base, prior=prior), name, weight, seed)
        for name, prior in readings.items()
        for seed in range(seeds.get(name, 0))
    ]


def rate_trials(base: Experiment, rates: Sequence[float], steps: int) -> list[Experiment]:
    """Short runs without penalty, one for each learning rate, with a seed of their own."""
    trial = _changed(base, "learning rate", 0.0, TRIAL_SEED)
    short = replace(trial.training, steps=steps, evaluate_every=steps)
    return [replace(trial, training=replace(short, learning_rate=rate)) for rate in rates]


def run_experiments(
    experiments: Sequence[Experiment],
    tokens: Tokens,
    validation: Tokens,
    folder: Path,
    device: str = "auto",
    n_jobs: int = 1,
) -> list[dict[str, Any]]:
    """:func:`run_experiment` for each, ``n_jobs`` at a time, with progress."""
    jobs = [(experiment, tokens, validation, folder, device) for experiment in experiments]
    return parallel.run_blocks(run_experiment, jobs, n_jobs=n_jobs, description="training runs")


def run_experiment(
    experiment: Experiment, tokens: Tokens, validation: Tokens, folder: Path, device: str = "auto"
) -> dict[str, Any]:
    """Train one run on tokens and validation (n,), or read it in the folder of the sweep: the
    columns of the experiment, ``evaluations`` and ``diverged_at`` (a step, or None).
    """
    arguments = (experiment.gpt, experiment.training, experiment.prior, tokens, validation, device)
    run = _cache(folder).keep(
        margin_run.train_margin_run, *arguments, label=experiment.key, resumes=True
    )
    return experiment.columns() | {"evaluations": run.evaluations, "diverged_at": run.diverged_at}


def load_experiment(folder: Path, key: str) -> tuple[GPT, EmbeddingPrior]:
    """The trained model and prior of a finished run, in evaluation; FileNotFoundError if it is not
    there, or was made by other code.
    """
    run: margin_run.MarginRun = _cache(folder).recall(key, maker="23_margin_sweep")
    return run.model, run.prior


def measure_losses(
    folder: Path,
    key: str,
    window_tokens: Tokens,
    perturbations: Sequence[Perturbation],
    seed: int = 0,
    direction: str = "unit",
    device: str = "auto",
) -> NDArray[np.float64]:
    """Mean loss of each window (n, T + 1) for one run in a folder: clean first, then under each
    perturbation, (1 + perturbations, n) in nats. Relative ones are in units of the root mean square
    of this model's embeddings of these windows; the draw of a window is the same for every run.
    """
    model = load_experiment(folder, key)[0].to(resolve_device(device))
    return losses_under(model, window_tokens, perturbations, seed, direction)


def losses_under(
    model: GPT,
    window_tokens: Tokens,
    perturbations: Sequence[Perturbation],
    seed: int,
    direction: str = "unit",
) -> NDArray[np.float64]:
    """:func:`measure_losses` of a model that is at hand."""
    rms = embeddings_rms(model, window_tokens)
    conditions = [None, *(perturber(one, rms, seed, direction) for one in perturbations)]
    return np.stack(
        [window_losses(model, window_tokens, perturb=change).mean(1) for change in conditions]
    )


@torch.no_grad()
def embedding_errors(model: GPT, window_tokens: Tokens) -> NDArray[np.float64]:
    """Contextual embedding error of each next token (n, T), 003's Section 7.5 (c):
    ||e - sum_v p(v | past) E_v||^2 / ||e||^2.
    """
    tokens = torch.from_numpy(window_tokens.astype(np.int64)).to(model.W_E.device)
    errors = [
        contextual_embedding_error(model(rows[:, :-1]), rows[:, 1:], model.W_E)
        for rows in tokens.split(16)
    ]
    return torch.cat([error.double().cpu() for error in errors]).numpy()


def window_scores(model: GPT, prior: EmbeddingPrior, window_tokens: Tokens) -> NDArray[np.float64]:
    """Barrier scores (n, T): the first of :func:`signed_window_scores`."""
    return signed_window_scores(model, prior, window_tokens)[0]


@torch.no_grad()
def signed_window_scores(
    model: GPT, prior: EmbeddingPrior, window_tokens: Tokens
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Barrier scores, (n, T) in nats, and the sign of the determinant, -1 where the map has folded,
    of the model's embeddings at every position of the windows (n, T + 1), in double precision.
    """
    factors = [W.to(model.W_E.device, torch.float64) for W in prior.factors()]
    tokens = torch.from_numpy(window_tokens[:, :-1].astype(np.int64)).to(model.W_E.device)
    # sixteen windows at a time, since each takes T matrices of the prior's rank
    found = [signed_log_barrier(model.embed(rows).double(), *factors) for rows in tokens.split(16)]
    beta, sign = (torch.cat(each).cpu().numpy() for each in list(zip(*found, strict=True))[:2])
    return beta, sign


def embeddings_rms(model: GPT, window_tokens: Tokens) -> float:
    """Root mean square of a model's embeddings of a text, tokens counted as often as they occur."""
    tokens = torch.from_numpy(window_tokens[:, :-1].astype(np.int64)).to(model.W_E.device)
    return embedding_rms(model.embed(tokens))


def evaluations_table(outcomes: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """All evaluations of all runs, one row each, with the columns of their experiments."""
    rows = []
    for outcome in outcomes:
        run = {key: outcome[key] for key in outcome if key not in ("evaluations", "diverged_at")}
        rows += [run | evaluation for evaluation in outcome["evaluations"]]
    return pd.DataFrame(rows)


def _cache(folder: Path) -> Cache:
    return Cache(folder, margin_run.CODE)
