"""What is measured of a run of the barrier sweep when it ends: all that 003's Section 7 reports, in
numbers small enough to keep.

The weights do not stay, so noise and drift come on wide geometric grids, on two rulers: one
absolute size for all runs, and one relative to each run's own embeddings. Three regimes are read
from them later. Intervals are those of the source: over 100 subsamples of 16 windows, as five
quantiles, so that its box plots can be drawn.

Shapes: windows (n, T + 1); losses, scores and errors (n, T).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from compendium.models.barrier_run import Run, Setting, Trained, prior_config
from compendium.models.language_models import EncodedText
from compendium.models.ngrams import NGramTable
from papers.language_model import GPT, Tokens, draw_batch, window_losses, windows
from papers.margins.barrier import signed_log_barrier
from papers.margins.embedding_prior import EmbeddingPrior
from papers.margins.intervals import draw_subsamples
from papers.margins.perturb import (
    FAMILIES,
    SCALES,
    Perturbation,
    contextual_embedding_error,
    embedding_rms,
    perturber,
)
from papers.margins.support import (
    READINGS,
    ROUNDING,
    barrier_shares,
    cumulative_shares,
    effective_support_size,
)
from softgeom.arrays import Floats

QUANTILES = (0.025, 0.25, 0.5, 0.75, 0.975)
# From a sixteenth of an embedding's size, where nothing happens, to 32 of them, where all is noise
MULTIPLES = tuple(2.0 ** (k / 2 - 4) for k in range(19))
TOP = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377)  # places on the cumulative curve
_UNIT = 0.1  # of the absolute ruler: about the size (root mean square) of trained embeddings
_SUBSAMPLES, _SUBSAMPLE_WINDOWS = 100, 16
_RANDOM_SEED = 1000  # added to a run's seed: the prior that never learned
_SEEN_WINDOWS = 512  # of those read, for the training perplexity
_OTHER_WINDOWS = 1024  # of each part of the other corpus
_FIRST = 5  # positions with little past


def measure(
    setting: Setting, run: Run, trained: Trained, text: EncodedText, other: Mapping[str, Tokens]
) -> dict[str, Any]:
    """Everything about a finished run, as plain numbers, lists and dictionaries.

    ``other`` holds encoded texts out of the training domain, by name. The run without penalty says,
    in ``tables``, what tables of n-grams of the tokens that it read reach on the same windows.
    """
    model, length = trained.model, setting.n_ctx
    everything, seen = windows(text.validation, length), seen_windows(setting, run, text.train)
    chosen = windows(text.validation, length, setting.measured_windows)
    take = min(_SUBSAMPLE_WINDOWS, len(chosen))
    draws = draw_subsamples(len(chosen), _SUBSAMPLES, take, seed=0)
    clean = window_losses(model, chosen).mean(1)
    some = seen[:: max(1, len(seen) // _SEEN_WINDOWS)]
    found = {
        "validation": float(window_losses(model, everything).mean()),
        "training": float(window_losses(model, some).mean()),
        "clean": {"nats": float(clean.mean()), "perplexity": spread(np.exp(clean[draws].mean(1)))},
        "error": spread(embedding_errors(model, chosen).mean(1)[draws].mean(1)),
        "other": {
            name: float(window_losses(model, windows(tokens, length, _OTHER_WINDOWS)).mean())
            for name, tokens in other.items()
        },
        "sizes": sizes(model, chosen),
        "perturbed": perturbed(model, chosen, clean, draws, run.seed),
        "barrier": barriers(setting, run, trained, chosen, draws),
    }
    if run.arm == "plain":
        found["tables"] = table_losses(seen, everything, model.config.d_vocab)
    return found


def spread(values: Floats) -> list[float]:
    """The five quantiles of finite values (subsamples,); NaN where there are none."""
    finite = values[np.isfinite(values)]
    return np.quantile(finite, QUANTILES).tolist() if finite.size else [float("nan")] * 5


def seen_windows(setting: Setting, run: Run, tokens: Tokens) -> Tokens:
    """The windows that a run has read, batch by batch."""
    config = setting.training(run)
    steps = range(config.steps)
    return np.concatenate([draw_batch(tokens, config, setting.n_ctx, s).numpy() for s in steps])


def table_losses(seen: Tokens, held_out: Tokens, d_vocab: int) -> dict[str, float]:
    """Losses in nats of smoothed tables of single tokens, pairs, and interpolated Kneser-Ney
    triples, counted on the tokens that the run has read.
    """
    orders = {"unigrams": 1, "bigrams": 2, "trigrams": 3}
    return {
        name: float(
            -NGramTable(seen, d_vocab, order, kneser_ney=order == 3)
            .log_probabilities(held_out)
            .mean()
        )
        for name, order in orders.items()
    }


def perturbed(
    model: GPT, chosen: Tokens, clean: Floats, draws: np.ndarray, seed: int
) -> list[list[Any]]:
    """A row for each family, ruler and multiple: these three, the mean loss in nats, and the five
    quantiles over subsamples of the ratio of perplexities. A window's draw depends on its place
    and the seed alone.
    """
    rms, rows = embeddings_rms(model, chosen), []
    for family in FAMILIES:
        # a drift along a unit vector is as strong as noise at sqrt(d) times its size
        unit = _UNIT * (model.config.d_model**0.5 if family == "drift" else 1.0)
        for scale in SCALES:
            for level, multiple in enumerate(MULTIPLES, start=1):
                sigma = multiple * (unit if scale == "absolute" else 1.0)
                change = perturber(Perturbation(family, scale, level, sigma), rms, seed)
                loss = window_losses(model, chosen, perturb=change).mean(1)
                ratios = spread(np.exp((loss - clean)[draws].mean(1)))
                rows.append([family, scale, multiple, float(loss.mean()), *ratios])
    return rows


def embeddings_rms(model: GPT, chosen: Tokens) -> float:
    """Root mean square of the embeddings of a text, tokens counted as often as they occur."""
    return embedding_rms(model.embed(_long(chosen[:, :-1])))


@torch.no_grad()
def sizes(model: GPT, chosen: Tokens) -> dict[str, Any]:
    """Sizes of the embeddings: root mean square over the text, quantiles of lengths over tokens,
    and the number of directions that carry the text's covariance, (tr C)^2 / tr C^2.
    """
    X = model.embed(_long(chosen[:, :-1])).flatten(0, 1).double()
    C = torch.cov(X.T)
    return {
        "rms": embedding_rms(X),
        "lengths": spread(model.W_E.norm(dim=1).double().numpy()),
        "directions": (C.trace() ** 2 / C.pow(2).sum()).item(),
    }


@torch.no_grad()
def embedding_errors(model: GPT, chosen: Tokens) -> Floats:
    """Contextual embedding error (n, T) of each next token, 003's Section 7.5 (c):
    ||e - sum_v p(v | past) E_v||^2 / ||e||^2.
    """
    errors = [
        contextual_embedding_error(model(rows[:, :-1]), rows[:, 1:], model.W_E)
        for rows in _long(chosen).split(16)
    ]
    return torch.cat(errors).double().numpy()


def barriers(
    setting: Setting, run: Run, trained: Trained, chosen: Tokens, draws: np.ndarray
) -> dict[str, Any]:
    """Scores of the learned M, of the M that it started from, and of one that never learned, on the
    run's own embeddings: by name, their description and how they concentrate in each reading.
    """
    config = prior_config(setting, run.arm)
    priors = {
        "learned": trained.prior,
        "start": EmbeddingPrior(config, run.seed) if trained.prior is not None else None,
        "random": EmbeddingPrior(config, run.seed + _RANDOM_SEED),
    }
    return {
        name: _barrier(prior, trained.model, chosen, draws)
        for name, prior in priors.items()
        if prior is not None
    }


@torch.no_grad()
def _barrier(
    prior: EmbeddingPrior, model: GPT, chosen: Tokens, draws: np.ndarray
) -> dict[str, Any]:
    beta, sign = signed_scores(model, prior, chosen)
    past = beta[:, 1:]  # the first position has no past
    M = prior.coupling_matrix().double()
    values = torch.linalg.eigvals(M).real
    first = barrier_shares(beta, "softmax")[:, :_FIRST].sum(1)
    return {
        "mean": float(past.mean()),
        "largest": float(past.max()),
        "quantiles": spread(past.ravel()),
        "positive_share": float((past > ROUNDING).mean()),
        "folded_share": float((sign[:, 1:] < 0).mean()),
        "softmax_share_of_the_first": float(first.mean()),
        "coupling_norm": M.norm().item(),
        "coupling_eigenvalues": [values.min().item(), values.max().item()],
        "readings": {reading: concentration(beta, reading, draws) for reading in READINGS},
    }


def concentration(beta: Floats, reading: str, draws: np.ndarray) -> dict[str, Any]:
    """Share of windows with any pressure; over these the mean cumulative share of the places in
    `TOP`, the mean effective support, and its quantiles over subsamples.
    """
    shares = barrier_shares(beta, reading)
    pressed = np.isfinite(shares).all(1)
    if not pressed.any():
        return {"windows_with_pressure": 0.0}
    places = [min(k, beta.shape[1]) - 1 for k in TOP]
    support = np.where(pressed, effective_support_size(shares), np.nan)
    by_subsample = np.ma.masked_invalid(support[draws]).mean(1).filled(np.nan)
    return {
        "windows_with_pressure": float(pressed.mean()),
        "cumulative": cumulative_shares(shares[pressed]).mean(0)[places].tolist(),
        "support": float(support[pressed].mean()),
        "quantiles": spread(by_subsample),
    }


@torch.no_grad()
def signed_scores(model: GPT, prior: EmbeddingPrior, chosen: Tokens) -> tuple[Floats, Floats]:
    """Barrier scores (n, T) in nats of the model's embeddings, and the signs of the determinants,
    -1 where the map has folded, in double precision.
    """
    factors = [W.double() for W in prior.factors()]
    # eight windows at a time, since each takes T matrices of the prior's rank
    found = [
        signed_log_barrier(model.embed(rows).double(), *factors)
        for rows in _long(chosen[:, :-1]).split(8)
    ]
    return tuple(torch.cat([each[i] for each in found]).numpy() for i in (0, 1))  # type: ignore[return-value]


def _long(tokens: Tokens) -> torch.Tensor:
    return torch.from_numpy(tokens.astype(np.int64))
