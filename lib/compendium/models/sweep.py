"""The training experiment of 003, Section 7: one GPT for each margin penalty lambda, equal in
everything else.

An :class:`Experiment` is a complete description of one run and its key a hash of it, which names
the run in tables; the trained model, the prior and what happened are kept (`compendium.keeping`),
so that a sweep that was killed goes on where it stopped and later notebooks read the models. All
random numbers of a run come from its seed: the weights at the start, the prior's M at the start and
the batches of every step are the same for every lambda.
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

from compendium.keeping import Shelf
from compendium.models import margin_run
from compendium.models.encoded import EncodedText
from compendium.models.margin_run import MarginRun
from softgeom import parallel
from softgeom.language_model import (
    GPT,
    GPTConfig,
    Tokens,
    TrainingConfig,
    configuration_hash,
    resolve_device,
    window_losses,
)
from softgeom.margins.barrier import signed_log_barrier
from softgeom.margins.embedding_prior import EmbeddingPrior, PriorConfig
from softgeom.margins.perturb import Perturbation, embedding_rms, perturber

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
    """What all runs of a sweep have in common: notebook 23's parameters by their names, and the
    corpus that they name.

    Parameters
    ----------
    told : mapping
        The notebook's ``globals()``, or the parameters of its record.
    text : EncodedText
        What is learned; it gives the size of the vocabulary, and with `epochs` the number of steps.
    learning_rate : float, optional
        The one that the short runs chose; the first of `learning_rates` when left out.
    """
    d = told["d_model"]
    sizes = {name: told[name] for name in ("d_model", "n_heads", "n_layers", "n_ctx")}
    gpt = GPTConfig(d_vocab=len(text.tokenizer), d_mlp=4 * d, **sizes)
    passes = told["epochs"] * len(text.train) / (told["batch_size"] * told["n_ctx"])
    training = TrainingConfig(
        steps=int(passes) if told["epochs"] > 0 else told["steps"],
        learning_rate=learning_rate or told["learning_rates"][0],
        compile=told["compile_model"],
        **{
            name: told[name]
            for name in (
                "batch_size",
                "evaluate_every",
                "evaluation_windows",
                "patience",
                "precision",
            )
        },
    )
    return Experiment("sweep", gpt, training, PriorConfig(d_model=d, rank=told["rank"]), text.key)


def penalty_grid(
    base: Experiment, weights: Sequence[float], seeds: Sequence[int]
) -> list[Experiment]:
    """Every lambda with every seed, the seeds outermost: a sweep that is cut short has whole
    seeds.
    """
    return [
        replace(
            base, group="sweep", training=replace(base.training, penalty_weight=weight, seed=seed)
        )
        for seed in seeds
        for weight in weights
    ]


def ablations(
    base: Experiment, weight: float, seeds: Mapping[str, int], stride: int = 1
) -> list[Experiment]:
    """Other readings of the prior at one lambda: positive and negative coupling, the quadratic
    term, a full M.

    Parameters
    ----------
    base : Experiment
        Gives everything else.
    weight : float
        Lambda.
    seeds : mapping of str to int
        Seeds 0, 1, ... of each reading by name; 0 leaves it out.
    stride : int
        Positions left out of the full matrix's mean, whose determinants are the dearest.

    Raises
    ------
    ValueError
        If a reading has another name.
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
        replace(
            base,
            group=name,
            prior=prior,
            training=replace(base.training, penalty_weight=weight, seed=seed),
        )
        for name, prior in readings.items()
        for seed in range(seeds.get(name, 0))
    ]


def rate_trials(base: Experiment, rates: Sequence[float], steps: int) -> list[Experiment]:
    """Short runs without penalty, one for each learning rate, with a seed that no run of the sweep
    has.
    """
    trial = replace(
        base.training, steps=steps, penalty_weight=0.0, seed=TRIAL_SEED, evaluate_every=steps
    )
    return [
        replace(base, group="learning rate", training=replace(trial, learning_rate=rate))
        for rate in rates
    ]


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
    """Train one run, or read it when it is finished.

    Parameters
    ----------
    experiment : Experiment
        What to train.
    tokens, validation : (n,) integers
        The corpus whose hash the experiment carries.
    folder : Path
        Where the whole sweep is kept.
    device : str
        As for :func:`softgeom.language_model.train`.

    Returns
    -------
    dict
        The columns of the experiment, ``evaluations`` (a list of dictionaries) and ``diverged_at``
        (a step, or None).
    """
    arguments = (experiment.gpt, experiment.training, experiment.prior, tokens, validation, device)
    run = _shelf(folder).keep(
        margin_run.train_margin_run, *arguments, label=experiment.key, resumes=True
    )
    return experiment.columns() | {"evaluations": run.evaluations, "diverged_at": run.diverged_at}


def load_experiment(folder: Path, key: str) -> tuple[GPT, EmbeddingPrior]:
    """The trained model and prior of a finished run, in evaluation.

    Raises
    ------
    FileNotFoundError
        If the run is not there, or was made by other code: the message names the notebook that
        makes it.
    """
    run = _shelf(folder).recall(key, maker="23_margin_sweep")
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
    """Mean loss of each window for one run: clean first, then under each perturbation.

    Parameters
    ----------
    folder : Path
        Of the sweep.
    key : str
        Of the run.
    window_tokens : (n, T + 1) integers
        From :func:`softgeom.language_model.windows`.
    perturbations : sequence of Perturbation
        Relative ones are in units of the root mean square of this model's embeddings of these
        windows.
    seed : int
        Seeds the perturbations; the draw of a window is the same for every run and level.
    direction : str
        As for :func:`softgeom.margins.perturb.add_drift`.
    device : str
        As for :func:`softgeom.language_model.train`.

    Returns
    -------
    (1 + perturbations, n) float64, in nats.
    """
    model = load_experiment(folder, key)[0].to(resolve_device(device))
    rms = embeddings_rms(model, window_tokens)
    conditions = [
        None,
        *(perturber(perturbation, rms, seed, direction) for perturbation in perturbations),
    ]
    return np.stack(
        [window_losses(model, window_tokens, perturb=change).mean(1) for change in conditions]
    )


def window_scores(model: GPT, prior: EmbeddingPrior, window_tokens: Tokens) -> NDArray[np.float64]:
    """Barrier scores (n, T) of every position of the windows: the first of
    :func:`signed_window_scores`.
    """
    return signed_window_scores(model, prior, window_tokens)[0]


@torch.no_grad()
def signed_window_scores(
    model: GPT, prior: EmbeddingPrior, window_tokens: Tokens
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Barrier scores and the sign of the determinant, -1 where the map has folded, of every
    position of the windows, in double precision, where the model is.

    Parameters
    ----------
    model : GPT
        Its embeddings are scored.
    prior : EmbeddingPrior
        Left as it is.
    window_tokens : (n, T + 1) integers
        From :func:`softgeom.language_model.windows`.

    Returns
    -------
    (n, T) float64, in nats, and (n, T) signs.
    """
    factors = [W.to(model.W_E.device, torch.float64) for W in prior.factors()]
    tokens = torch.from_numpy(window_tokens[:, :-1].astype(np.int64)).to(model.W_E.device)
    # sixteen windows at a time, since each takes T matrices of the prior's rank
    found = [signed_log_barrier(model.embed(rows).double(), *factors) for rows in tokens.split(16)]
    beta, sign = (torch.cat(each).cpu().numpy() for each in list(zip(*found, strict=True))[:2])
    return beta, sign


def embeddings_rms(model: GPT, window_tokens: Tokens) -> float:
    """Root mean square of a model's embeddings of a text: frequent tokens count as often as they
    occur.
    """
    tokens = torch.from_numpy(window_tokens[:, :-1].astype(np.int64)).to(model.W_E.device)
    return embedding_rms(model.embed(tokens))


def evaluations_table(outcomes: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """All evaluations of all runs, one row each, with the columns of their experiments."""
    return pd.DataFrame(
        [
            {
                name: value
                for name, value in outcome.items()
                if name not in ("evaluations", "diverged_at")
            }
            | evaluation
            for outcome in outcomes
            for evaluation in outcome["evaluations"]
        ]
    )


def _shelf(folder: Path) -> Shelf[MarginRun]:
    return Shelf(folder, margin_run.write, margin_run.read)
