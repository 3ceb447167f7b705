"""What notebook 43 asks of the models that notebook 42 handed over: their leaders, counted and
judged, and two reviews on their way through the layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from compendium.models.classifiers import handed_model
from softgeom import parallel
from softgeom.hardmax import leading_words
from softgeom.hardmax.faithfulness import Anatomy, dissect, probe_explanation
from softgeom.hardmax.reviews import Bags
from softgeom.hardmax.sentiment import Classifier, logits


@dataclass(frozen=True)
class Opened:
    """A model on the examined reviews: what happens inside it, and its logits."""

    name: str
    seed: int
    model: Classifier
    anatomy: Anatomy
    logits: np.ndarray

    @property
    def key(self) -> dict[str, Any]:
        """The first columns of its row in every table."""
        return {"model": self.name, "seed": self.seed}


def open_models(kept: pd.DataFrame, bags: Bags) -> list[Opened]:
    """The models of notebook 42's table `kept_models`, dissected on some reviews."""
    rows = kept[["model", "seed", "model_file"]].to_numpy()
    models = [(str(name), int(seed), handed_model(str(file)).model()) for name, seed, file in rows]
    anatomies = parallel.run_blocks(dissect, [(model, bags) for _, _, model in models])
    return [
        Opened(name, seed, model, anatomy, logits(model, bags))
        for (name, seed, model), anatomy in zip(models, anatomies, strict=True)
    ]


def follow_review(
    opened: Opened,
    bags: Bags,
    labels: np.ndarray,
    vocabulary: np.ndarray,
    label: int,
    layers: Sequence[int],
) -> dict[str, Any]:
    """The most confident correct review of a label, of 30 to 60 words where there is one: its
    tokens at some layers and at the end (-1), leaders, words.
    """
    length, score, model = (bags.counts > 0).sum(1), opened.logits, opened.model
    good = (labels == label) & ((score > 0) == (label == 1)) & (length >= 30) & (length <= 60)
    good = good if good.any() else labels == label
    r = int(np.flatnonzero(good)[np.abs(score[good]).argmax()])
    n = int(length[r])
    words, counts = (torch.from_numpy(part[r : r + 1, :n]) for part in (bags.words, bags.counts))
    with torch.no_grad():
        states = [z[0].numpy() for z in model.states(model.embedding[words.long()], counts)]
    return {
        "states": {k: states[k] for k in layers} | {-1: states[-1]},
        "leader": opened.anatomy.leader[r, :n],
        "counts": counts[0].numpy(),
        "words": vocabulary[bags.words[r, :n]],
        "label": label,
        "logit": score[r],
    }


def count_leaders(models: Sequence[Opened], bags: Bags) -> pd.DataFrame:
    """One row a model: leaders per review, since when they lead, their influence, and what repeated
    words change.
    """

    def row(opened: Opened) -> dict[str, Any]:
        a, repeated = (
            opened.anatomy,
            leading_words.compare_with_repeats(opened.model, bags, opened.anatomy),
        )
        return {
            **opened.key,
            "mean": a.count.mean(),
            "spread": a.count.std(),
            "largest": int(a.count.max()),
            "share_at_layer_0": a.at_start.sum() / a.leader.sum(),
            "influence_of_leaders": (a.influence * a.leader).sum(1).mean(),
            "words_per_review": (bags.counts > 0).sum(1).mean(),
            "reviews_that_repeat": repeated.repeating,
            "leaders_repeated": repeated.lost,
            "merging_error": repeated.error,
        }

    return pd.DataFrame(map(row, models))


def list_leaders(
    models: Sequence[Opened],
    bags: Bags,
    labels: np.ndarray,
    vocabulary: np.ndarray,
    valence: np.ndarray,
    top: int,
) -> pd.DataFrame:
    """The most frequent leaders of confident, correct reviews of every model, with the side of the
    line on which they stand and their valence.
    """

    def rows() -> Iterator[dict[str, Any]]:
        for opened in models:
            found = leading_words.frequent_leaders(opened.anatomy, bags, opened.logits, labels, top)
            for rank, leader in enumerate(found, start=1):
                w = int(leader["word"])
                yield {
                    **opened.key,
                    "rank": rank,
                    "word": vocabulary[w],
                    "share_of_reviews": leader["share_of_reviews"],
                    "side": "positive" if leader["height"] > 0 else "negative",
                    "valence": valence[w],
                }

    return pd.DataFrame(rows())


def judge_models(
    models: Sequence[Opened],
    bags: Bags,
    labels: np.ndarray,
    vocabulary: np.ndarray,
    valence: np.ndarray,
    named: Sequence[str],
) -> pd.DataFrame:
    """One row a model: its leaders judged by the lexicon, the heights of some named words, and what
    words without valence tell of the label.
    """

    def height(model: Classifier, word: str) -> float:
        at = np.flatnonzero(vocabulary == word)
        return float(leading_words.heights_of(model, at)[0]) if len(at) else np.nan

    return pd.DataFrame(
        {
            **opened.key,
            **leading_words.judge_leaders(opened.anatomy, bags, valence),
            **{word: height(opened.model, word) for word in named},
            "context_area": leading_words.context_area(
                opened.anatomy, bags, labels, np.isnan(valence)
            ),
        }
        for opened in models
    )


def probe_models(
    models: Sequence[Opened], bags: Bags, polarity: np.ndarray, seed: int
) -> pd.DataFrame:
    """`softgeom.hardmax.faithfulness.probe_explanation` of every model: four rows each."""
    probes = parallel.run_blocks(
        probe_explanation, [(o.model, bags, o.anatomy, polarity, seed) for o in models]
    )
    return pd.DataFrame(
        {**o.key, **row} for o, probe in zip(models, probes, strict=True) for row in probe
    )


def count_heads(models: Sequence[Opened], bags: Bags) -> pd.DataFrame:
    """One row a model: where tokens end by decision, and how often the head count alone gives
    it.
    """
    return pd.DataFrame(
        {**o.key, **leading_words.head_count(o.anatomy, bags, o.logits)} for o in models
    )
