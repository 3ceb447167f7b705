"""Sentiment classifiers of the hardmax chapter: trained, kept, handed from notebook 42 to 43; and
the one that the authors of 004 published.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from compendium import paths
from compendium.cache import Cache
from compendium.corpora import checksums
from compendium.run import with_maker
from papers.hardmax.reviews import Bags
from papers.hardmax.sentiment import Recipe
from papers.hardmax.training import Trained, train
from softgeom import parallel
from softgeom.source import Source, announce, sha256_of

_MAKER = "42_sentiment"
_PUBLISHED = "models/hardmax_published"
_ARRAYS = ("embedding", "alpha", "decoder_weight", "decoder_bias", "layers", "temperature")


@dataclass(frozen=True)
class TestReviews:
    """The reviews on which handed models are examined, as the models read them."""

    bags: Bags
    labels: np.ndarray  # (N,) 0 or 1
    vocabulary: np.ndarray  # (W,) words
    polarity: np.ndarray  # (W,) weight of each word in the bag-of-words baseline


def train_all(jobs: Sequence[tuple[Any, ...]]) -> list[Trained]:
    """Models for argument lists of `hardmax.training.train`, read where they are kept already."""
    cache = _cache()  # the folder of this process: workers have no notebook's working directory
    return parallel.run_blocks(_train_one, [(cache, *job) for job in jobs], description="training")


def hand_over(name: str, thing: Trained | TestReviews) -> str:
    """Keep a model, or the reviews, under a name for notebook 43; returns the name."""
    _cache().keep(_as_it_is, thing, label=name)
    return name


def handed(name: str, profile: str) -> Any:
    """The model, or the `TestReviews`, that notebook 42 handed over under this name. Where there is
    none, or the code that made it has changed, that notebook runs first.
    """
    return with_maker(lambda: _cache().recall(name, _MAKER), _MAKER, profile)


def _train_one(cache: Cache, recipe: Recipe, *arguments: Any) -> Trained:
    bags, targets, size, polarity, held_out = (*arguments, None, None)[:5]
    polarity = polarity if recipe.start == "polarity" else None  # other starts do not look at it
    arguments = (recipe, bags, targets, size, polarity, held_out)
    return cache.keep(train, *arguments, label="classifier")


def _as_it_is(thing: Any) -> Any:
    return thing


def _cache() -> Cache:
    return Cache(paths.processed_dir() / "hardmax", ("papers/hardmax", "papers/arrays.py"))


@dataclass(frozen=True)
class Published:
    """The authors' classifier, and their histories of losses and accuracies (`_hm`: hard)."""

    model: Trained
    histories: pd.DataFrame
    source: Source


def load_published() -> Published | None:
    """What the authors of 004 published of their experiment (CC0): the trained classifier at d = 2
    and the training histories at four dimensions; None where the data folder does not hold them.
    Their vocabulary is not published, so single words and accuracy cannot be studied. ValueError
    when a file lacks an array or a shape does not fit: a damaged file is not an absent one.
    """
    detail = f"{_PUBLISHED}/published_d2.npz"
    model, histories = map(paths.find_data, (detail, f"{_PUBLISHED}/published_histories.csv"))
    if model is None or histories is None:
        return None
    with np.load(checksums.check(model), allow_pickle=False) as file:
        if missing := [name for name in _ARRAYS if name not in file.files]:
            known = ", ".join(file.files)
            raise ValueError(f"{model.name} lacks {', '.join(missing)}; it holds {known}")
        E, alpha, w, v, layers, temperature = (file[name] for name in _ARRAYS)
    E, w = E.astype(np.float32), w.astype(np.float32).ravel()
    if E.ndim != 2 or w.shape != E.shape[1:]:
        told = f"an embedding of shape {E.shape} and a decoder of shape {w.shape} do not fit"
        raise ValueError(f"{model.name}: {told}")
    recipe = Recipe(
        dimension=len(w), layers=layers.item(), alpha=alpha.item(), train_alpha=True,
        attention="softmax", temperature=temperature.item(),
    )  # fmt: skip
    title, digest = "the classifier published by the authors of 004", sha256_of(model.read_bytes())
    source = announce(Source(title, "local", detail, "", digest))
    trained = Trained(recipe, E, w, v.item(), alpha.item(), [])
    return Published(trained, pd.read_csv(checksums.check(histories)), source)
