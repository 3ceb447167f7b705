"""Where the barrier's pressure lies in the models of a sweep: under the prior that learned and
under one that never did (003, Section 7.4).

Scores of both priors are taken on the same embeddings of the same windows; everything is summarised
by seed first, over windows, and then over seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from compendium import statistics
from compendium.models.sweep import embedding_errors, load_experiment, window_scores
from papers.language_model import Tokens, resolve_device, window_losses
from papers.margins.embedding_prior import EmbeddingPrior
from papers.margins.support import (
    READINGS,
    ROUNDING,
    barrier_shares,
    effective_support_size,
    support_tokens,
    top_share,
)
from softgeom.arrays import Floats

PRIORS = ("learned", "random-init")
_RANDOM_SEED = 1000  # added to a run's seed: the prior that never learned


@dataclass(frozen=True)
class Scored:
    """One run on the windows, all (windows, T): scores by prior, loss and error of next tokens."""

    penalty_weight: float
    seed: int
    scores: dict[str, Floats]
    loss: Floats
    error: Floats


def score_run(
    folder: Path, key: str, penalty_weight: float, seed: int, windows: Tokens, device: str = "auto"
) -> Scored:
    """Scores, losses and contextual embedding errors of one finished run."""
    model, prior = load_experiment(folder, key)
    model = model.to(resolve_device(device))
    untrained = EmbeddingPrior(prior.config, seed=seed + _RANDOM_SEED)
    both = zip(PRIORS, (prior, untrained), strict=True)
    scores = {name: window_scores(model, one, windows) for name, one in both}
    losses, errors = window_losses(model, windows), embedding_errors(model, windows)
    return Scored(penalty_weight, seed, scores, losses, errors)


def concentration_by_seed(scored: Sequence[Scored], k: int) -> pd.DataFrame:
    """Share of windows with any pressure, and their mean top-k share and effective support."""
    rows = []
    for run in scored:
        for prior in PRIORS:
            for reading in READINGS:
                shares = barrier_shares(run.scores[prior], reading)
                pressed = np.isfinite(shares).all(axis=1)
                size = effective_support_size(shares[pressed]).mean() if pressed.any() else np.nan
                top = top_share(shares[pressed], k).mean() if pressed.any() else np.nan
                of = (run.penalty_weight, run.seed, prior, reading)
                rows.append((*of, pressed.mean(), top, size))
    columns = "penalty_weight seed prior reading windows_with_pressure top_share effective_support"
    return pd.DataFrame(rows, columns=columns.split())


def support_ratios(by_seed: pd.DataFrame, weight: float) -> dict[str, statistics.Interval]:
    """Effective support of the learned over the random prior, by reading; 1 without pressure."""
    part = by_seed[by_seed["penalty_weight"] == weight]
    wide = part.pivot(index=["reading", "seed"], columns="prior", values="effective_support")
    ratio = (wide["learned"] / wide["random-init"]).fillna(1.0)
    return {reading: statistics.over_seeds(ratio.loc[reading]) for reading in READINGS}


def places_by_seed(scored: Sequence[Scored], first: int) -> pd.DataFrame:
    """How much of the barrier lies on the first positions of a window, by run and prior."""
    rows = []
    for run in scored:
        for prior, beta in run.scores.items():
            shares = barrier_shares(beta, "softmax")[:, :first].sum(-1)
            row = {"penalty_weight": run.penalty_weight, "seed": run.seed, "prior": prior}
            row |= {"mean_beta": beta[:, 1:].mean()}
            row |= {"positive_share": (beta[:, 1:] > ROUNDING).mean()}
            row |= {"top_position_is_among_the_first": (support_tokens(beta)[:, 0] < first).mean()}
            rows.append(row | {"softmax_share_of_the_first": shares.mean()})
    return pd.DataFrame(rows)
