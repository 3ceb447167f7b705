"""What notebook 42 asks of the sentiment classifiers: accuracy with and without attention, the way
left to the limit, the surrogate, the authors' split.

A *named* model is a pair (name of its recipe, trained model); a recipe that is run with several
seeds names several models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from compendium.models.classifiers import TestReviews, hand_over, train_all
from compendium.models.hardmax_published import Published
from softgeom import parallel
from softgeom.hardmax.faithfulness import compare_with_limit, measure
from softgeom.hardmax.reviews import Bags
from softgeom.hardmax.sentiment import Recipe, accuracy, in_softmax, logits
from softgeom.hardmax.training import Trained

Named = tuple[str, Trained]
TEMPERATURES = (0.001, 0.01, 0.1)  # the authors', and two that are warmer
_OF_ATTENTION = [
    "without_attention", "alpha", "leaders", "leader_share", "leaders_at_start", "clusters",
    "distance_to_limit", "same_decision_in_limit",
]  # fmt: skip
_DEPTH = ["model", "published", "alpha", "clusters", "distance_to_limit", "same_decision_in_limit"]


@dataclass(frozen=True)
class Target:
    """What a family of models learns: bags, what each should say (labels or a teacher's
    probabilities), and how many passes.
    """

    name: str
    bags: Bags
    goals: np.ndarray
    epochs: int


def train_recipes(
    targets: Sequence[Target],
    recipes: Mapping[str, tuple[Recipe, int]],
    size: int,
    seed: int,
    **pace: Any,
) -> list[Named]:
    """Every recipe with its number of seeds, on the target with which its name begins.

    A polarity start is taken from the weights of a model without layers (K = 0) on the same target.
    `pace` holds what all recipes share: batch, learning rate, word dropout.
    """
    plan = []
    for target in targets:
        settled = {"epochs": target.epochs, **pace}
        (flat,) = train_all(
            [(Recipe(layers=0, seed=seed, **settled), target.bags, target.goals, size)]
        )
        polarity = flat.embedding @ flat.w + flat.v
        for name, (recipe, seeds) in recipes.items():
            for s in range(seed, seed + seeds if name.startswith(target.name) else seed):
                job = (
                    replace(recipe, seed=s, **settled),
                    target.bags,
                    target.goals,
                    size,
                    polarity,
                )
                plan.append((name, job))
    models = train_all([job for _, job in plan])
    return [(name, model) for (name, _), model in zip(plan, models, strict=True)]


def measure_all(
    models: Sequence[Named], bags: Bags, labels: np.ndarray, sample: int
) -> pd.DataFrame:
    """One row a model: recipe, seed, layers, training loss, and
    `softgeom.hardmax.faithfulness.measure` on the test reviews.
    """
    measured = parallel.run_blocks(measure, [(model, bags, labels, sample) for _, model in models])
    return pd.DataFrame(
        {
            "model": name,
            "seed": t.recipe.seed,
            "layers": t.recipe.layers,
            "final_loss": t.curve[-1][1],
            **m,
        }
        for (name, t), m in zip(models, measured, strict=True)
    )


def accuracy_table(models: pd.DataFrame, others: Mapping[str, float]) -> pd.DataFrame:
    """One row a recipe of `measure_all`: mean and spread of the accuracy over seeds, means of what
    attention does; then other accuracies to compare.
    """
    groups = models.groupby("model", sort=False)
    accuracies = groups["accuracy"]
    table = pd.DataFrame(
        {"models": groups.size(), "accuracy": accuracies.mean(), "spread": accuracies.std()}
    )
    table = table.join(groups[_OF_ATTENTION].mean())
    # no layers, so no leaders to speak of
    table.loc[table.index.str.contains("K = 0"), _OF_ATTENTION[1:]] = np.nan
    for name, value in others.items():
        table.loc[name, "accuracy"] = value
    return table.rename_axis("model").reset_index()


def depth_table(
    models: pd.DataFrame, published: Published | None, bags: Bags, sample: int
) -> pd.DataFrame:
    """How far eight layers are from the limit: every model of `measure_all` with layers, and the
    authors' own on a sample of the reviews.
    """
    rows = [models[models["layers"] > 0].assign(published=False)]
    if published:
        part = bags[np.linspace(0, len(bags) - 1, sample).astype(int)]
        end = compare_with_limit(published.model.model(), part)
        row = (
            "published by the authors",
            True,
            published.model.alpha,
            end.clusters,
            end.distance,
            end.same_decision,
        )
        rows.append(pd.DataFrame([row], columns=_DEPTH))
    return pd.concat([part[_DEPTH] for part in rows], ignore_index=True)


def surrogate_flips(models: Sequence[Named], names: Sequence[str], bags: Bags) -> pd.DataFrame:
    """Share of hard decisions that softmax attention reverses, for the first model of each name and
    each temperature.
    """
    rows = []
    for name in names:
        model = first_of(models, name).model()
        hard = logits(model, bags) > 0
        for T in TEMPERATURES:
            soft = logits(in_softmax(model, T), bags, hard=False) > 0
            rows.append({"model": name, "temperature": T, "flipped": float((hard != soft).mean())})
    return pd.DataFrame(rows)


def train_through_both(
    bags: Bags, labels: np.ndarray, held: tuple[Bags, np.ndarray], size: int, **pace: Any
) -> pd.DataFrame:
    """The same reviews, start, batches and steps through the hard dynamics and through the
    surrogate (T = 0.001), judged hard on held-out reviews.
    """
    recipes = [Recipe(anneal_from=0.01, attention=kind, **pace) for kind in ("hard", "softmax")]
    return pd.DataFrame(
        {
            "trained_through": twin.recipe.attention,
            "reviews": len(bags),
            "loss": twin.curve[-1][1],
            "hard_accuracy": accuracy(logits(twin.model(), held[0]), held[1]),
        }
        for twin in train_all([(recipe, bags, labels, size) for recipe in recipes])
    )


def pooled_split(
    bags: Bags, labels: np.ndarray, paper: pd.Series, size: int, **pace: Any
) -> pd.DataFrame:
    """The authors' split on reviews that are already shuffled: the first 70% train models of their
    dimensions with alpha free from 1, the rest judges.

    `paper` holds the authors' accuracies by dimension.
    """
    cut = int(0.7 * len(bags))
    rest = slice(cut, None)
    recipes = [Recipe(dimension=d, alpha=1.0, train_alpha=True, **pace) for d in (2, 4, 8, 16)]
    return pd.DataFrame(
        {
            "embedding_dimension": t.recipe.dimension,
            "accuracy": accuracy(logits(t.model(), bags[rest]), labels[rest]),
            "alpha": t.alpha,
            "training_reviews": cut,
            "paper": paper[t.recipe.dimension],
        }
        for t in train_all([(recipe, bags[:cut], labels[:cut], size) for recipe in recipes])
    )


def hand_over_models(
    models: Sequence[Named], names: Sequence[str], test: TestReviews, prefix: str, reviews: int
) -> pd.DataFrame:
    """Keep the models of these names, and the test reviews, for notebook 43: a row a model with the
    names under which they are kept.
    """
    bags_file = hand_over(f"{prefix}-test", test)
    return pd.DataFrame(
        {
            "model": name,
            "seed": t.recipe.seed,
            "model_file": hand_over(
                f"{prefix}-{name.replace(', ', '-').replace(' ', '-')}-{t.recipe.seed}", t
            ),
            "bags_file": bags_file,
            "training_reviews": reviews,
        }
        for name, t in models
        if name in names
    )


def first_of(models: Sequence[Named], name: str) -> Trained:
    """The model of a recipe's first seed."""
    return next(t for other, t in models if other == name)


def surrogate_evidence(published: Published | None) -> dict[str, float | None]:
    """Largest difference of the authors' losses through surrogate and hard dynamics, and both at
    the end; None where nothing is published.

    The hard loss was evaluated every tenth epoch, and is 0 elsewhere.
    """
    if published is None:
        return {"difference": None, "soft": None, "hard": None}
    history = published.histories.query("history == '2_HM' and train_loss_hm > 0")
    soft, hard = history[["train_loss", "train_loss_hm"]].iloc[-1]
    difference = float((history["train_loss"] - history["train_loss_hm"]).abs().max())
    return {"difference": difference, "soft": soft, "hard": hard}
