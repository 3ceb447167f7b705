"""The authors' recipe of 004 by dimension and by two routes, through its softmax surrogate and
through hard attention throughout, each run beside a twin without attention: the mean of its
embeddings, with the seed, split, start, batches and optimiser of its own.

What attention does is the difference from the twin, and what leaders explain, that from as many
random words; both are judged over seeds, of which each has a split of its own. Beside each stands a
null: the twin from another start, and the random words drawn once more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from compendium import statistics
from compendium.corpora.published_bags import PublishedBags
from compendium.models.authors_recipe import Split, Watched, at_equal_loss, authors_recipe
from papers.hardmax.faithfulness import Anatomy, choose, dissect, in_double, kept_decisions
from papers.hardmax.leading_words import head_count
from papers.hardmax.reviews import Bags
from papers.hardmax.sentiment import Classifier, accuracy, logits

MEAN, AGAIN, ROUTES = "mean of embeddings", "mean, another start", ("hard", "softmax")
OTHER_START = 1000  # added to the seed of a run's start and batches; the split stays


def plan(
    data: PublishedBags, epochs: Mapping[int, int], seeds: Sequence[int], losses: int
) -> dict[tuple[int, int, str], tuple[Any, ...]]:
    """Arguments of `authors_recipe.watch` by dimension, seed and route, the twin first, and once
    more from another start; ``epochs`` by dimension. One that is cut short has whole dimensions,
    and of these whole seeds.
    """
    jobs: dict[tuple[int, int, str], tuple[Any, ...]] = {}
    for d, most in epochs.items():
        for seed in seeds:
            split = Split.pooled(len(data.bags), np.random.default_rng(seed))
            told = (data.bags, data.labels, split, len(data.vocabulary), losses)
            hard = authors_recipe(d, most, "hard", seed)
            twin = replace(hard, layers=0, train_alpha=False)
            jobs[d, seed, MEAN] = (twin, *told)
            jobs[d, seed, AGAIN] = (replace(twin, seed=seed + OTHER_START), *told)
            jobs |= {(d, seed, route): (replace(hard, attention=route), *told) for route in ROUTES}
    return jobs


def examine(
    watched: Watched,
    twin: Watched,
    again: Watched,
    bags: Bags,
    labels: np.ndarray,
    split: Split,
    sample: int,
) -> dict[str, float]:
    """One run beside its twin, and the twin beside its other start, all of the epoch that held-out
    reviews choose: test accuracies with layers, without them, and of the twin, how far the twins
    are apart, and the same at the lowest training loss that both sides reach (NaN where there is
    none). On ``sample`` test reviews, whose labels are not read, shares of decisions. Turned: by
    deleting the leaders, as many random words, or those to which the twin gives most weight. Given:
    by the leaders left alone, by the random words, and by the head count of all tokens on either
    side, each cut at its own median as the decisions are. Apart is another draw of random words.
    """
    model, test, answers = watched.stopped.model(), bags[split.test], labels[split.test]
    some = test[np.linspace(0, len(test) - 1, min(sample, len(test))).astype(int)]
    anatomy, weights = dissect(model, some), twin.stopped.embedding @ twin.stopped.w
    turned, given = _decisions(model, some, anatomy, weights, watched.stopped.recipe.seed)
    loss, at_loss, twin_at_loss = at_equal_loss(watched.curve, twin.curve)
    _, again_at_loss, first_at_loss = at_equal_loss(again.curve, twin.curve)
    return {
        "accuracy": _stopped(watched),
        "layers_skipped": accuracy(logits(model, test, layers=0), answers),
        "twin": _stopped(twin),
        "twin_apart": _stopped(again) - _stopped(twin),
        "stopped_after": watched.epoch,
        "twin_stopped_after": twin.epoch,
        "alpha": watched.stopped.alpha,
        "loss": loss,
        "accuracy_at_loss": at_loss,
        "twin_at_loss": twin_at_loss,
        "twin_apart_at_loss": again_at_loss - first_at_loss,
        "leaders": float(anatomy.count.mean()),
        "distinct_words": float((some.counts > 0).sum(1).mean()),
        **{f"turned_by_{name}": share for name, share in turned.items() if name != "again"},
        "turned_apart": turned["again"] - turned["random"],
        "given_by_leaders": given["leaders"],
        "given_by_random": given["random"],
        "given_by_head_count": given["head_count"],
        "given_apart": given["again"] - given["random"],
    }


def _decisions(
    model: Classifier, bags: Bags, anatomy: Anatomy, weights: np.ndarray, seed: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Shares of decisions that turn when words go, and that these words alone or the head count
    give; words that are chosen are as many as the leaders of their review.
    """
    double, rng = in_double(model), np.random.default_rng(seed)
    chance = (rng.random(bags.counts.shape) for _ in range(2))
    scores = (*chance, np.abs(weights)[bags.words] * bags.counts)
    marked = {"leaders": anatomy.leader}
    for name, score in zip(("random", "again", "weighty"), scores, strict=True):
        marked[name] = choose(score, anatomy.count, bags.counts)
    before = logits(double, bags)
    above, turned, given = before > np.median(before), dict[str, float](), dict[str, float]()
    for name, words in marked.items():
        turned[name] = 1 - kept_decisions(model, before, bags.without(words))
        alone = logits(double, bags.without(~words))
        given[name] = float(((alone > np.median(alone)) == above).mean())
    given["head_count"] = head_count(anatomy, bags, before)["head_count_predicts"]
    return turned, given


def compare(runs: pd.DataFrame, ours: str, other: str, null: str) -> pd.DataFrame:
    """Mean over seeds of one column less another, by dimension and route, with its 95% interval;
    the deviation over seeds of the column `null`, what two runs or draws of the control differ by;
    whether the difference is decided above or below zero by Student's paired test after Holm's
    correction over the rows; and how many seeds would leave zero out of the interval. Rows in which
    a seed has no value are left out.
    """
    rows = []
    for (d, route), part in runs.groupby(["dimension", "route"], sort=False):
        difference = part[ours] - part[other]
        if difference.isna().any():
            continue
        found = statistics.over_seeds(difference)
        row = (d, route, found.mean, found.low, found.high, part[null].std())
        enough = statistics.seeds_to_decide(difference)
        rows.append((*row, statistics.p_value(difference), found.seeds, enough))
    names = "dimension route difference low high null_deviation p seeds seeds_to_decide"
    table = pd.DataFrame(rows, columns=names.split()).astype({"seeds_to_decide": "Int64"})
    sides = np.where(table["difference"] > 0, "above", "below")
    return table.assign(decided=np.where(statistics.holm(table["p"]) < 0.05, sides, ""))


def evidence(compared: pd.DataFrame) -> dict[str, Any]:
    """What rules ask of a comparison: rows, how many are decided either way, the least and the
    largest difference, this one with its interval and place, and the largest deviation of the null.
    """
    rows = compared.sort_values("difference").to_dict("records")
    if not rows:
        nothing = dict.fromkeys(("least", "most", "low", "high", "at", "null_deviation"))
        return {"pairs": 0, "above": 0, "below": 0, **nothing}
    top, null = rows[-1], float(compared["null_deviation"].max())  # NaN where none is known
    return {
        "pairs": len(rows),
        "above": int((compared["decided"] == "above").sum()),
        "below": int((compared["decided"] == "below").sum()),
        "least": rows[0]["difference"],
        "most": top["difference"],
        "low": top["low"],
        "high": top["high"],
        "at": f"d = {top['dimension']}, {top['route']}",
        "null_deviation": None if np.isnan(null) else null,
    }


def _stopped(watched: Watched) -> float:
    return float(watched.curve["test"].to_numpy()[watched.curve["epoch"] == watched.epoch][0])
