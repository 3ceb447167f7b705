"""The training of the authors of 004 as their published code does it, and one of ours for the same
reviews; both watched epoch by epoch.

Theirs: normal embeddings of variance 1, the decoder from PyTorch's uniform start, one step size
alpha drawn from U(0, 1) and trained, softmax attention at temperature 0.001 in eight layers, Adam
at 1e-3, batches of 64, gradients shortened to norm 5, the best on test of 101 epochs reported.
`attention="hard"` trains through the hard dynamics instead, with the argmax held fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from compendium import paths, statistics
from compendium.cache import Cache
from papers.hardmax.faithfulness import dissect
from papers.hardmax.reviews import Bags
from papers.hardmax.sentiment import Classifier, Recipe, accuracy, logits, random_start
from papers.hardmax.training import Trained, fit
from softgeom import parallel

HELD_OUT = 0.1  # share of the training reviews that decides when to stop
_CURVE = ["epoch", "loss", "held_out", "test", "alpha", "training_loss"]


@dataclass(frozen=True)
class Split:
    """Rows of the reviews by use."""

    train: np.ndarray
    held_out: np.ndarray
    test: np.ndarray

    @staticmethod
    def pooled(reviews: int, rng: np.random.Generator) -> Split:
        """A random 70% of all reviews to train on, as the authors do; a tenth of it is held out."""
        order = rng.permutation(reviews)
        training = int(0.7 * reviews)
        return Split._of(order[:training], order[training:])

    @staticmethod
    def standard(reviews: int, training: int, rng: np.random.Generator) -> Split:
        """The first `training` reviews against the rest; a random tenth of them is held out."""
        return Split._of(rng.permutation(training), np.arange(training, reviews))

    @staticmethod
    def _of(training: np.ndarray, test: np.ndarray) -> Split:
        held = int(HELD_OUT * len(training))
        return Split(np.sort(training[held:]), np.sort(training[:held]), np.sort(test))


@dataclass(frozen=True)
class Watched:
    """A training with its history; `stopped` is of the epoch best on the held-out reviews."""

    stopped: Trained
    # one row an epoch, columns `_CURVE`: losses, accuracies under the hard dynamics, alpha
    curve: pd.DataFrame

    @property
    def eligible(self) -> pd.DataFrame:
        """The epochs to choose from: all, or those that have reached a fixed alpha."""
        return self.curve[[_arrived(alpha, self.stopped.recipe) for alpha in self.curve["alpha"]]]

    @property
    def epoch(self) -> int:
        """The epoch that was best on the held-out reviews."""
        choice = self.eligible
        return int(choice["epoch"].to_numpy()[choice["held_out"].to_numpy().argmax()])


def authors_recipe(d: int, epochs: int, attention: str, seed: int) -> Recipe:
    """Their recipe at dimension d."""
    alpha = float(np.random.default_rng(seed).random())
    return Recipe(
        dimension=d, alpha=alpha, train_alpha=True, plain_alpha=True, attention=attention,
        temperature=1e-3, scale=1.0,
        decoder_start="uniform", epochs=epochs, batch=64, learning_rate=1e-3, falling=False,
        decoder_rate=1.0, clip=5.0, pool=1, seed=seed,
    )  # fmt: skip


def our_recipe(d: int, epochs: int, alpha: float, seed: int) -> Recipe:
    """Ours: a fixed alpha approached from below, words left out at random, a falling rate."""
    return Recipe(
        dimension=d, alpha=alpha, anneal_from=0.01, epochs=epochs, batch=128, learning_rate=0.01,
        word_dropout=0.3, seed=seed
    )  # fmt: skip


def plain_recipe(d: int, epochs: int, alpha: float, seed: int) -> Recipe:
    """For comparisons of step sizes, 0 being no attention: the same steps and rate for all."""
    common = Recipe(
        dimension=d, epochs=epochs, batch=128, learning_rate=0.003, falling=False, seed=seed
    )
    return replace(common, alpha=alpha, anneal_from=0.01) if alpha else replace(common, layers=0)


def watch(
    recipe: Recipe, bags: Bags, labels: np.ndarray, split: Split, size: int, losses: int = 0
) -> Watched:
    """Train from a random start over `size` words; after each epoch read the labels of the held-out
    and of the test reviews once each, and the cross-entropy of `losses` training reviews, spread
    evenly, under the hard dynamics.
    """
    rows: list[dict[str, float]] = []
    best: dict[str, Any] = {"held_out": -1.0}
    train, held, test = (bags[part] for part in (split.train, split.held_out, split.test))
    goals = labels[split.train]
    some = np.linspace(0, len(train) - 1, min(losses, len(train))).astype(int)
    asked, answers = train[some], goals[some]

    def look(epoch: int, model: Classifier, loss: float) -> None:
        row = {"epoch": epoch + 1, "loss": loss, "alpha": model.alpha.item()}
        row["held_out"] = accuracy(logits(model, held), labels[split.held_out])
        row["test"] = accuracy(logits(model, test), labels[split.test])
        seen = cross_entropy(logits(model, asked), answers) if losses else np.nan
        rows.append(row | {"training_loss": seen})
        if row["held_out"] > best["held_out"] and _arrived(row["alpha"], recipe):
            E, w = model.embedding.detach().numpy().copy(), model.w.detach().numpy().copy()
            best.update(row, model=Trained(recipe, E, w, model.v.item(), model.alpha.item(), []))

    fit(Classifier(random_start(size, recipe), recipe), train, goals, after_epoch=look)
    return Watched(best["model"], pd.DataFrame(rows)[_CURVE])


def watch_all(jobs: Sequence[tuple[Any, ...]]) -> list[Watched]:
    """`watch` for argument tuples, on all cores; what is kept is read."""
    code = ("papers/hardmax", "papers/arrays.py", "compendium/models/authors_recipe.py")
    cache = Cache(paths.processed_dir() / "hardmax", code)
    return parallel.run_blocks(_watch_one, [(cache, *job) for job in jobs], description="training")


def judge(
    watched: Watched, bags: Bags, labels: np.ndarray, split: Split, sample: int
) -> dict[str, float]:
    """Both accuracies, with what attention has to do with them; reads test labels once more."""
    model, test = watched.stopped.model(), bags[split.test]
    stopped = watched.curve[watched.curve["epoch"] == watched.epoch].iloc[0]
    some = dissect(model, test[np.linspace(0, len(test) - 1, min(sample, len(test))).astype(int)])
    return {
        "dimension": watched.stopped.recipe.dimension,
        "seed": watched.stopped.recipe.seed,
        "epochs": len(watched.curve),
        "best_of_epochs": float(watched.eligible["test"].max()),
        "stopped": float(stopped["test"]),
        "stopped_after": watched.epoch,
        "alpha": float(stopped["alpha"]),
        "without_attention": accuracy(logits(model, test, layers=0), labels[split.test]),
        "leaders": float(some.count.mean()),
        "leaders_spread": float(some.count.std()),
        "fewest": float(some.count.min()),
        "most": float(some.count.max()),
        "leaders_at_start": float(some.at_start.sum() / max(some.leader.sum(), 1)),
        "influence_of_leaders": float((some.influence * some.leader).sum(1).mean()),
    }


def at_loss(curve: pd.DataFrame, loss: float) -> float:
    """Test accuracy where the training loss first falls to a value, linear in between, or NaN."""
    losses, tests = (curve[column].to_numpy(dtype=float) for column in ("training_loss", "test"))
    reached = np.flatnonzero(losses <= loss)
    if not len(reached) or (reached[0] == 0 and losses[0] < loss):
        return float("nan")
    k = int(reached[0])
    if losses[k] == loss:
        return float(tests[k])
    share = (losses[k - 1] - loss) / (losses[k - 1] - losses[k])
    return float(tests[k - 1] + share * (tests[k] - tests[k - 1]))


def at_equal_loss(ours: pd.DataFrame, other: pd.DataFrame) -> tuple[float, float, float]:
    """The lowest training loss that both curves reach, and the test accuracy of either at it."""
    loss = float(max(ours["training_loss"].min(), other["training_loss"].min()))
    return loss, at_loss(ours, loss), at_loss(other, loss)


def gains_at_equal_loss(curves: pd.DataFrame) -> pd.DataFrame:
    """Test accuracy with attention minus without, at the lowest training loss that both of a pair
    reach, from curves as `Watched.curve` with `dimension`, `repeats`, `step_size` (0: no attention)
    and `seed`: one row for each of the first two and positive step size. `loss` is the mean of the
    losses compared at, `gain` has `low` and `high` (95%, t over seeds), NaN where a pair of some
    seed has no such loss: one of them had passed it before its first epoch ended.
    """
    rows: list[dict[str, Any]] = []
    for (d, repeats), pair in curves.groupby(["dimension", "repeats"], sort=False):
        flat = pair[pair["step_size"] == 0]
        for alpha, part in pair[pair["step_size"] != 0].groupby("step_size", sort=False):
            step: Any = alpha  # a number, which the stubs of pandas do not know
            met = [
                at_equal_loss(one[one["alpha"] >= 0.999 * step], flat[flat["seed"] == seed])
                for seed, one in part.groupby("seed")
            ]
            losses, with_attention, without = np.array(met).T
            difference = with_attention - without
            gain, low, high = np.nan, np.nan, np.nan
            if np.isfinite(difference).all():
                found = statistics.over_seeds(difference)
                gain, low, high = found.mean, found.low, found.high
            rows.append({
                "dimension": d, "repeats": repeats, "step_size": alpha, "loss": losses.mean(),
                "least_loss": part["training_loss"].min(),
                "least_loss_without": flat["training_loss"].min(),
                "gain": gain, "low": low, "high": high,
                "accuracy": with_attention.mean(), "accuracy_without": without.mean(),
            })  # fmt: skip
    return pd.DataFrame(rows)


def cross_entropy(scores: np.ndarray, goals: np.ndarray) -> float:
    """Mean cross-entropy of logits (N,) against labels (N,)."""
    return float((np.logaddexp(0, scores) - scores * goals).mean())


def _arrived(alpha: float, recipe: Recipe) -> bool:
    return recipe.train_alpha or abs(alpha - recipe.alpha) <= 1e-3 * recipe.alpha


def _watch_one(cache: Cache, recipe: Recipe, *arguments: Any) -> Watched:
    label = f"watched-d{recipe.dimension}-{recipe.attention}"
    return cache.keep(watch, recipe, *arguments, label=label)
