"""The authors' recipe of 004 by dimension and by two routes, through its softmax surrogate and
through hard attention throughout, each run beside a twin without attention: the mean of its
embeddings, with the seed, split, start, batches and optimiser of its own.

What attention does is the difference from the twin, and what leaders explain, that from as many
random words; both are judged over seeds, of which each has a split of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from compendium import statistics
from compendium.corpora.published_bags import PublishedBags
from compendium.models.authors_recipe import Split, Watched, at_equal_loss, authors_recipe
from softgeom.hardmax.faithfulness import dissect, in_double, probe_explanation
from softgeom.hardmax.leading_words import head_count
from softgeom.hardmax.reviews import Bags
from softgeom.hardmax.sentiment import accuracy, logits

MEAN, ROUTES = "mean of embeddings", ("hard", "softmax")


def plan(
    data: PublishedBags, epochs: Mapping[int, int], seeds: Sequence[int], losses: int
) -> dict[tuple[int, int, str], tuple[Any, ...]]:
    """Arguments of `authors_recipe.watch` by dimension, seed and route, the twin first; ``epochs``
    by dimension. One that is cut short has whole dimensions, and of these whole seeds.
    """
    jobs: dict[tuple[int, int, str], tuple[Any, ...]] = {}
    for d, most in epochs.items():
        for seed in seeds:
            split = Split.pooled(len(data.bags), np.random.default_rng(seed))
            told = (data.bags, data.labels, split, len(data.vocabulary), losses)
            hard = authors_recipe(d, most, "hard", seed)
            jobs[d, seed, MEAN] = (replace(hard, layers=0, train_alpha=False), *told)
            jobs |= {(d, seed, route): (replace(hard, attention=route), *told) for route in ROUTES}
    return jobs


def examine(
    watched: Watched, twin: Watched, bags: Bags, labels: np.ndarray, split: Split, sample: int
) -> dict[str, float]:
    """One run beside its twin, both of the epoch that held-out reviews choose: test accuracies with
    its layers, without them and of the twin; the first and the last at the lowest training loss
    that both reach (NaN where there is none); and on ``sample`` test reviews, whose labels are not
    read, shares of decisions. Turned: by deleting the leaders, as many random words, or those to
    which the twin gives most weight. Given: by the leaders left alone, and by the head count of all
    tokens on either side.
    """
    model, test, answers = watched.stopped.model(), bags[split.test], labels[split.test]
    some = test[np.linspace(0, len(test) - 1, min(sample, len(test))).astype(int)]
    anatomy, weights = dissect(model, some), twin.stopped.embedding @ twin.stopped.w
    probed = probe_explanation(model, some, anatomy, weights, watched.stopped.recipe.seed)
    probe = {str(row["words"]): row for row in probed}
    loss, at_loss, twin_at_loss = at_equal_loss(watched.curve, twin.curve)
    return {
        "accuracy": _stopped(watched),
        "layers_skipped": accuracy(logits(model, test, layers=0), answers),
        "twin": _stopped(twin),
        "stopped_after": watched.epoch,
        "twin_stopped_after": twin.epoch,
        "alpha": watched.stopped.alpha,
        "loss": loss,
        "accuracy_at_loss": at_loss,
        "twin_at_loss": twin_at_loss,
        "leaders": float(anatomy.count.mean()),
        "distinct_words": float((some.counts > 0).sum(1).mean()),
        "turned_by_leaders": 1 - float(probe["leaders"]["deleted"]),
        "turned_by_random": 1 - float(probe["random words"]["deleted"]),
        "turned_by_weighty": 1 - float(probe["bag-of-words words"]["deleted"]),
        "given_by_leaders": float(probe["leaders"]["alone"]),
        "given_by_head_count": head_count(anatomy, some, logits(in_double(model), some))[
            "head_count_predicts"
        ],
    }


def compare(runs: pd.DataFrame, ours: str, other: str) -> pd.DataFrame:
    """Mean over seeds of one column less another, by dimension and route, with its 95% interval;
    whether it is decided above or below zero by Student's paired test after Holm's correction over
    the rows; and how many seeds would leave zero out of the interval. Rows in which a seed has no
    value are left out.
    """
    rows = []
    for (d, route), part in runs.groupby(["dimension", "route"], sort=False):
        difference = part[ours] - part[other]
        if difference.isna().any():
            continue
        found = statistics.over_seeds(difference)
        rows.append(
            {"dimension": d, "route": route, "difference": found.mean}
            | {"low": found.low, "high": found.high, "p": statistics.p_value(difference)}
            | {"seeds": found.seeds, "seeds_to_decide": statistics.seeds_to_decide(difference)}
        )
    names = ["dimension", "route", "difference", "low", "high", "p", "seeds", "seeds_to_decide"]
    table = pd.DataFrame(rows, columns=names)
    sides = np.where(table["difference"] > 0, "above", "below")
    return table.assign(
        decided=np.where(statistics.holm(table["p"]) < 0.05, sides, ""),
        seeds_to_decide=table["seeds_to_decide"].astype("Int64"),
    )


def evidence(compared: pd.DataFrame) -> dict[str, Any]:
    """What rules ask of a comparison: rows, how many are decided either way, and the least and the
    largest difference, this one with its interval and place.
    """
    rows = compared.sort_values("difference").to_dict("records")
    if not rows:
        nothing = dict.fromkeys(("least", "most", "low", "high", "at"))
        return {"pairs": 0, "above": 0, "below": 0, **nothing}
    top = rows[-1]
    return {
        "pairs": len(rows),
        "above": int((compared["decided"] == "above").sum()),
        "below": int((compared["decided"] == "below").sum()),
        "least": rows[0]["difference"],
        "most": top["difference"],
        "low": top["low"],
        "high": top["high"],
        "at": f"d = {top['dimension']}, {top['route']}",
    }


def _stopped(watched: Watched) -> float:
    return float(watched.curve["test"].to_numpy()[watched.curve["epoch"] == watched.epoch][0])
