"""Sentiment classifiers of the hardmax chapter: trained, kept, handed from notebook 42 to 43."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compendium import paths
from compendium.cache import Cache
from papers.hardmax.reviews import Bags
from papers.hardmax.sentiment import Recipe
from papers.hardmax.training import Trained, train
from softgeom import parallel

_MAKER = "42_sentiment"
_CODE = ("papers/hardmax", "compendium/models/classifiers.py")


@dataclass(frozen=True)
class TestReviews:
    """The reviews on which handed models are examined, as the models read them."""

    bags: Bags
    labels: np.ndarray  # (N,) 0 or 1
    vocabulary: np.ndarray  # (W,) words
    polarity: np.ndarray  # (W,) weight of each word in the bag-of-words baseline


def train_all(jobs: Sequence[tuple[Any, ...]]) -> list[Trained]:
    """Models for argument lists of `hardmax.training.train`, read where they are kept already."""
    jobs = [(paths.processed_dir(), *job) for job in jobs]
    return parallel.run_blocks(_train_one, jobs, description="training")


def hand_over(name: str, thing: Trained | TestReviews) -> str:
    """Keep a model, or the reviews, under a name for notebook 43; returns the name."""
    kind = _models if isinstance(thing, Trained) else _reviews
    kind(paths.processed_dir()).keep(_as_it_is, thing, label=name)
    return name


def handed_model(name: str) -> Trained:
    """A model that notebook 42 handed over."""
    return _models(paths.processed_dir()).recall(name, _MAKER)


def handed_reviews(name: str) -> TestReviews:
    """The reviews that notebook 42 handed over."""
    return _reviews(paths.processed_dir()).recall(name, _MAKER)


def _train_one(processed: Path, recipe: Recipe, *arguments: Any) -> Trained:
    bags, targets, size, polarity, held_out = (*arguments, None, None)[:5]
    polarity = polarity if recipe.start == "polarity" else None  # other starts do not look at it
    return _models(processed).keep(
        train, recipe, bags, targets, size, polarity, held_out, label="classifier"
    )


def _as_it_is(thing: Any) -> Any:
    return thing


def _models(processed: Path) -> Cache[Trained]:
    return Cache(processed / "hardmax", write_model, read_model, _CODE)


def _reviews(processed: Path) -> Cache[TestReviews]:
    return Cache(processed / "hardmax", _write_reviews, _read_reviews, _CODE)


def write_model(folder: Path, model: Trained) -> None:
    """Arrays as NumPy's, the recipe as JSON: nothing that executes."""
    arrays = {name: getattr(model, name) for name in ("embedding", "w", "v", "alpha")}
    curve = np.array(model.curve).reshape(-1, 3)
    np.savez(folder / "model.npz", allow_pickle=False, curve=curve, **arrays)
    (folder / "recipe.json").write_text(
        json.dumps(asdict(model.recipe), indent=1) + "\n", encoding="utf-8"
    )


def read_model(folder: Path) -> Trained:
    """What `write_model` wrote."""
    recipe = Recipe(**json.loads((folder / "recipe.json").read_text(encoding="utf-8")))
    with np.load(folder / "model.npz", allow_pickle=False) as f:
        curve = [(int(epoch), float(loss), float(score)) for epoch, loss, score in f["curve"]]
        return Trained(recipe, f["embedding"], f["w"], float(f["v"]), float(f["alpha"]), curve)


def _write_reviews(folder: Path, test: TestReviews) -> None:
    bags = {"words": test.bags.words, "counts": test.bags.counts}
    known = {"labels": test.labels, "vocabulary": test.vocabulary, "polarity": test.polarity}
    np.savez(folder / "reviews.npz", allow_pickle=False, **known, **bags)


def _read_reviews(folder: Path) -> TestReviews:
    with np.load(folder / "reviews.npz", allow_pickle=False) as f:
        return TestReviews(
            Bags(f["words"], f["counts"]), f["labels"], f["vocabulary"], f["polarity"]
        )
