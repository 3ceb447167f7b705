"""What the runs of a margin sweep ended with, against what they have to beat, and against the run
of their seed at lambda = 0, which started alike and saw the same batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from compendium import statistics
from compendium.book import load_record, load_sources
from compendium.models.language_models import EncodedText, load_encoded
from compendium.models.ngrams import NGramTable
from compendium.models.sweep import Experiment, embeddings_rms, load_experiment, window_scores
from papers.language_model import Tokens, resolve_device, window_losses, windows
from papers.language_model.configuration import draw_batch
from papers.margins.support import ROUNDING


def describe_run(
    outcome: Mapping[str, Any], folder: Path, held_out: Tokens, seen: Tokens, device: str = "auto"
) -> dict[str, Any]:
    """Perplexities of a run on two sets of windows, size of its embeddings, state of its prior."""
    model, prior = load_experiment(folder, outcome["key"])
    model = model.to(resolve_device(device))
    beta = window_scores(model, prior, held_out)[:, 1:]  # the first position has no past
    with torch.no_grad():
        eigenvalues = torch.linalg.eigvals(prior.coupling_matrix().double()).real
    return {name: value for name, value in outcome.items() if name != "evaluations"} | {
        "training_perplexity": float(np.exp(window_losses(model, seen).mean())),
        "validation_perplexity": float(np.exp(window_losses(model, held_out).mean())),
        "embedding_rms": embeddings_rms(model, held_out),
        "mean_beta": float(beta.mean()),
        "largest_beta": float(beta.max()),
        "positive_share": float((beta > ROUNDING).mean()),
        "largest_eigenvalue": eigenvalues.max().item(),
        "smallest_eigenvalue": eigenvalues.min().item(),
        "coupling_norm": prior.coupling_matrix().norm().item(),
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def training_windows(experiment: Experiment, tokens: Tokens) -> Tokens:
    """The windows that a run has read, batch by batch; the corpus once, where it read more."""
    config, length = experiment.training, experiment.gpt.n_ctx
    if config.steps * config.batch_size * length >= len(tokens):
        return windows(tokens, length)
    batches = (draw_batch(tokens, config, length, step) for step in range(config.steps))
    return np.concatenate([batch.numpy() for batch in batches])


def table_perplexities(
    experiment: Experiment, tokens: Tokens, held_out: Tokens
) -> dict[str, float]:
    """Perplexities of smoothed tables that read what the run has read."""
    read, d_vocab = training_windows(experiment, tokens), experiment.gpt.d_vocab
    return {
        "unigram_perplexity": NGramTable(read, d_vocab, 1).perplexity(held_out),
        "bigram_perplexity": NGramTable(read, d_vocab, 2).perplexity(held_out),
        "trigram_perplexity": NGramTable(read, d_vocab, 3, kneser_ney=True).perplexity(held_out),
    }


def scale_of(
    runs: pd.DataFrame, baselines: Iterable[Experiment], tokens: Tokens, held_out: Tokens
) -> pd.DataFrame:
    """One row with what a rule's gate asks: perplexity of the models without penalty and of the
    tables, tokens, parameters, seeds.
    """
    experiments = list(baselines)
    found = [table_perplexities(experiment, tokens, held_out) for experiment in experiments]
    tables = pd.DataFrame(found).mean()
    config, length = experiments[0].training, experiments[0].gpt.n_ctx
    plain = runs[(runs["group"] == "sweep") & (runs["penalty_weight"] == 0)]
    row = {
        "baseline_perplexity": plain["validation_perplexity"].mean(),
        **tables,
        "tokens": config.steps * config.batch_size * length,
        "parameters": int(plain["parameters"].iloc[0]),
        "seeds": len(experiments),
    }
    return pd.DataFrame([row])


def gate(scale: pd.DataFrame) -> dict[str, float | int]:
    """The evidence on scale that every rule about a trained model takes."""
    row = scale.to_dict("records")[0]
    return {str(name): row[name] for name in row if name != "trigram_perplexity"}


def chosen_rate(trials: pd.DataFrame) -> float:
    """The learning rate of the short run with the lowest loss on text that nothing else reads."""
    return float(trials.sort_values("validation")["learning_rate"].iloc[0])


def over_baseline(runs: pd.DataFrame, column: str) -> pd.Series:
    """A column of every run over that of the run without penalty of the same seed."""
    plain = runs[(runs["group"] == "sweep") & (runs["penalty_weight"] == 0)].set_index("seed")
    return runs[column] / runs["seed"].map(plain[column])


def by_weight(
    runs: pd.DataFrame,
    columns: Iterable[str],
    keys: str | list[str] = "penalty_weight",
    *,
    logarithms: bool = False,
) -> pd.DataFrame:
    """Mean over seeds with its 95% interval for each value of ``keys``: columns ``<name>``,
    ``<name>_low``, ``<name>_high``; of ratios and counts by logarithms, so the mean is geometric.
    """
    rows = []
    for key, part in runs.groupby(keys, sort=False):
        of = key if isinstance(key, tuple) else (key,)
        by = [keys] if isinstance(keys, str) else keys
        names: dict[str, Any] = dict(zip(by, of, strict=True))
        for column in columns:
            values = np.log(part[column]) if logarithms else part[column]
            interval = statistics.over_seeds(values)
            ends = np.array([interval.mean, interval.low, interval.high])
            found = np.exp(ends) if logarithms else ends
            named = (column, f"{column}_low", f"{column}_high")
            names |= dict(zip(named, found.tolist(), strict=True))
        rows.append(names | {"seeds": len(part)})
    return pd.DataFrame(rows).set_index(keys)


def load_text_of_sweep(notebook: str, profile: str) -> EncodedText:
    """The corpus that a notebook's runs were trained on, encoded as they read it; ValueError when
    it now comes from another source, such as a stand-in.
    """
    told = load_record(notebook, profile)["parameters"]
    sizes = {name: told[name] for name in ("characters", "held_out_characters")}
    text = load_encoded(told["corpus"], told["d_vocab"], **sizes)
    now, then = text.source, load_sources(notebook, profile)[0]
    if (now.name, now.stand_in) != (then.name, then.stand_in):
        again = f"set DATA as it was, or run {notebook} again"
        which = f"notebook {notebook} read {then.name}, but {told['corpus']} is now {now.name}"
        raise ValueError(f"{which}: {again}")
    return text
