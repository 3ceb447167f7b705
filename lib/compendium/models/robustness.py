"""What perturbed embeddings cost the models of a sweep, on the paper's ruler and on each model's
own (003, Section 7.3).

Every perturbation comes twice: of one absolute size for all models, as in the source, and of one
size relative to each model's own embeddings, in multiples of the baseline's embedding size.

Losses: key of a run -> (1 + perturbations, windows), nats per token, clean first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compendium.models.sweep import measure_losses
from papers.language_model import Tokens
from papers.margins.intervals import median_interval
from papers.margins.perturb import SCALES, Perturbation, degradation_ratios
from softgeom import parallel

Losses = dict[str, NDArray[np.float64]]


def perturbation_grid(
    multiples: Mapping[str, Sequence[float]],
    baseline_rms: float,
    d_model: int,
    direction: str = "unit",
) -> list[Perturbation]:
    """Both rulers at every multiple of the baseline's embedding size, by family; of a drift along a
    unit vector the unit is an embedding's typical length, sqrt(d_model) rms.
    """
    found = []
    for family, sizes in multiples.items():
        unit = baseline_rms * (d_model**0.5 if family == "drift" and direction == "unit" else 1.0)
        for level, multiple in enumerate(sizes, start=1):
            found += [
                Perturbation(family, s, level, multiple * (unit if s == "absolute" else 1.0))
                for s in SCALES
            ]
    return found


def perturb_models(
    folder: Path,
    keys: Sequence[str],
    windows: Tokens,
    perturbations: Sequence[Perturbation],
    *,
    seed: int = 0,
    direction: str = "unit",
    device: str = "auto",
    n_jobs: int = 1,
) -> Losses:
    """Losses of every model on the same windows under the same draws, a few models at a time."""
    jobs = [(folder, key, windows, perturbations, seed, direction, device) for key in keys]
    found = parallel.run_blocks(
        measure_losses, jobs, n_jobs=n_jobs, description="perturbing models"
    )
    return dict(zip(keys, found, strict=True))


def degradation_table(
    runs: pd.DataFrame,
    losses: Losses,
    perturbations: Sequence[Perturbation],
    draws: NDArray[np.int64],
) -> pd.DataFrame:
    """The source's protocol: median ratio of perplexities over subsamples of windows, with 95%."""
    rows = []
    for (group, weight), part in runs.groupby(["group", "penalty_weight"], sort=False):
        for number, perturbation in enumerate(perturbations, start=1):
            found = (losses[key] for key in part["key"])
            ratios = np.concatenate([degradation_ratios(x[0], x[number], draws) for x in found])
            ratio, nats = median_interval(ratios), median_interval(np.log(ratios)).median
            row = {"group": group, "penalty_weight": weight} | asdict(perturbation)
            row |= {"median_ratio": ratio.median, "ratio_low": ratio.low, "ratio_high": ratio.high}
            rows.append(row | {"median_nats": nats})
    return pd.DataFrame(rows)


def gains_by_seed(
    runs: pd.DataFrame, losses: Losses, perturbations: Sequence[Perturbation]
) -> pd.DataFrame:
    """Extra loss in nats of each penalised run against its seed's without; negative is a gain."""
    baseline = runs[(runs["group"] == "sweep") & (runs["penalty_weight"] == 0)]
    plain = dict(zip(baseline["seed"], baseline["key"], strict=True))
    rows = []
    for run in runs[runs["penalty_weight"] > 0].itertuples():
        added, added_plain = (
            losses[key][1:] - losses[key][0] for key in (str(run.key), plain[run.seed])
        )
        for perturbation, extra in zip(perturbations, (added - added_plain).mean(1), strict=True):
            rows.append(
                {"group": run.group, "penalty_weight": run.penalty_weight, "seed": run.seed}
                | asdict(perturbation)
                | {"extra_nats": extra}
            )
    return pd.DataFrame(rows)


def living_levels(degradation: pd.DataFrame, scale: pd.DataFrame, family: str) -> list[int]:
    """Levels of a family at which the models without penalty still beat a table of single tokens:
    perplexity, clean times median ratio, below the unigrams'. Beyond them a model says nothing
    about language, and verdicts are not taken there.
    """
    row = scale.iloc[0]
    plain = degradation[
        (degradation["group"] == "sweep")
        & (degradation["penalty_weight"] == 0)
        & (degradation["family"] == family)
        & (degradation["scale"] == "absolute")
    ]
    alive = row["baseline_perplexity"] * plain["median_ratio"] < row["unigram_perplexity"]
    return sorted(plain.loc[alive, "level"].astype(int))


def evidence_at(
    gain: pd.DataFrame, levels: Sequence[int], family: str, scale: str, weight: float
) -> dict[str, float | int | None]:
    """What rules ask of one weight: extra loss at the strongest and at the weakest of some levels,
    and how many of them gain or lose with their whole interval.
    """
    part = gain[
        (gain["group"] == "sweep")
        & (gain["penalty_weight"] == weight)
        & (gain["family"] == family)
        & (gain["scale"] == scale)
        & gain["level"].isin(levels)
    ].sort_values("level")
    ends = {"gain": "extra_nats", "low": "low", "high": "high"}
    top = {key: float(part[column].iloc[-1]) if len(part) else None for key, column in ends.items()}
    return top | {
        "levels": len(part),
        "better": int((part["high"] < 0).sum()),
        "worse": int((part["low"] > 0).sum()),
        "weakest": float(part["extra_nats"].iloc[0]) if len(part) else None,
    }
