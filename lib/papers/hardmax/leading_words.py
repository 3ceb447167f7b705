"""Which words lead, how far from the decision line they stand, and what a lexicon that people made
says of them.

Source 004, "Training and results": the leaders farthest from the decision hyperplane convey
sentiment, the most frequent ones are mostly related to it. A model of the same labels would agree
with itself; so words are judged by valences that people gave. `valence` (W,) holds a number for
each word of the vocabulary, NaN where the lexicon does not list it. N reviews of at most n distinct
words, `Anatomy` from `faithfulness.dissect`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import mannwhitneyu

from papers.extras import naming_the_extra
from papers.hardmax.dynamics import trajectory
from papers.hardmax.faithfulness import Anatomy, dissect
from papers.hardmax.reviews import Bags
from papers.hardmax.sentiment import Classifier

with naming_the_extra():
    import torch

FARTHEST = 0.1  # share of the leaders that count as farthest from the line


def judge_leaders(anatomy: Anatomy, bags: Bags, valence: np.ndarray) -> dict[str, float]:
    """Shares of leader occurrences that the lexicon lists (all, the farthest tenth, the rest),
    beside that of all words; and of signs that agree.

    `agree_far` is the share of the listed ones among the farthest that stand on the side of their
    valence.
    """
    words, heights = bags.words[anatomy.leader], anatomy.height[anatomy.leader]
    listed, everyone = ~np.isnan(valence[words]), bags.words[bags.counts > 0]
    far = np.abs(heights) >= np.quantile(np.abs(heights), 1 - FARTHEST)
    agrees = np.sign(heights) == np.sign(valence[words])
    judged = far & listed
    return {
        "leaders": len(words),
        "listed": float(listed.mean()),
        "listed_far": float(listed[far].mean()),
        "listed_rest": float(listed[~far].mean()) if (~far).any() else float("nan"),
        "listed_all_words": float((~np.isnan(valence[everyone])).mean()),
        "agree_far": float(agrees[judged].mean()) if judged.any() else 0.0,
        "agree": float(agrees[listed].mean()) if listed.any() else 0.0,
    }


def judge_named(
    model: Classifier, bags: Bags, valence: np.ndarray, vocabulary: np.ndarray, named: Sequence[str]
) -> dict[str, float]:
    """`judge_leaders`, and the height of named words over the decision line; NaN if unknown."""
    heights = {word: heights_of(model, np.flatnonzero(vocabulary == word)) for word in named}
    judged = judge_leaders(dissect(model, bags), bags, valence)
    del judged["leaders"]
    return judged | {
        word: float(found[0]) if len(found) else float("nan") for word, found in heights.items()
    }


def frequent_leaders(
    anatomy: Anatomy, bags: Bags, logits: np.ndarray, labels: np.ndarray, top: int
) -> list[dict[str, float]]:
    """The `top` most frequent leaders of confident, correct reviews: word number, share of these
    reviews, mean height over the decision line.

    Confident: the half of the correctly classified reviews with the largest |logit|.
    """
    right = (logits > 0) == (labels == 1)
    if not right.any():
        raise ValueError(
            "No review is classified correctly: there are no confident ones to look into."
        )
    sure = right & (np.abs(logits) >= np.median(np.abs(logits[right])))
    led = anatomy.leader & sure[:, None]
    frequency = np.bincount(bags.words[led])
    height = np.bincount(bags.words[led], anatomy.height[led]) / np.maximum(frequency, 1)
    order = np.argsort(-frequency, kind="stable")[:top]
    return [
        {"word": int(w), "share_of_reviews": frequency[w] / sure.sum(), "height": float(height[w])}
        for w in order
        if frequency[w] > 0
    ]


def head_count(anatomy: Anatomy, bags: Bags, logits: np.ndarray) -> dict[str, float]:
    """Shares of tokens that end on the positive side, by decision, and how often that share alone,
    cut at its median, gives the decision (cut at its own).

    NaN stands for the share of a decision that no review gets.
    """
    positive = (bags.counts * (anatomy.end > 0)).sum(1) / bags.counts.sum(1)
    same = (positive > np.median(positive)) == (logits > np.median(logits))
    sides = {"positive": positive[logits > 0], "negative": positive[logits <= 0]}
    shares = {
        f"share_positive_side_if_{name}": part.mean() if len(part) else np.nan
        for name, part in sides.items()
    }
    return {**shares, "head_count_predicts": same.mean()}


def context_area(anatomy: Anatomy, bags: Bags, labels: np.ndarray, neutral: np.ndarray) -> float:
    """How well the places where neutral words end tell the reviews' labels: area under the ROC
    curve, 0.5 for chance.

    A review's score is the mean, over its neutral words (marked by `neutral` (W,)), of the
    difference between a word's end height and its own mean over the reviews. Without attention
    every difference is 0.
    """
    there = (bags.counts > 0) & neutral[bags.words]
    words, ends = bags.words[there], anatomy.end[there]
    total, number = (np.bincount(words, of, minlength=len(neutral)) for of in (ends, None))
    mean = total / np.maximum(number, 1)
    moved = np.where(there, anatomy.end - mean[bags.words], 0.0)
    score = (moved * bags.counts).sum(1) / np.maximum((there * bags.counts).sum(1), 1)
    positive = labels == 1
    if positive.all() or not positive.any():
        raise ValueError("Reviews of one label only have no ROC curve.")
    above = mannwhitneyu(score[positive], score[~positive]).statistic
    return float(above / (positive.sum() * (~positive).sum()))


@dataclass(frozen=True)
class Repetition:
    """Reviews with repeated words under the theorem's definition: distinct tokens."""

    repeating: float  # share of reviews that repeat a word
    # share of the leaders, words merged, that are repeated: C_i = {i} cannot hold for a token that
    # has an equal
    lost: float
    # largest relative difference between the dynamics of merged tokens with counts and that of
    # repeated tokens
    error: float


def compare_with_repeats(
    model: Classifier, bags: Bags, anatomy: Anatomy, reviews: int = 20
) -> Repetition:
    """What merging repeated words changes, on the first `reviews` that repeat: leaders by name."""
    repeats = bags.counts > 1
    embedding, alpha = model.embedding.detach().double().numpy(), model.alpha.item()
    rule = np.eye(embedding.shape[1]), alpha, model.recipe.layers
    worst = 0.0
    for r in np.flatnonzero(repeats.any(1))[:reviews]:
        n = int((bags.counts[r] > 0).sum())
        counts = bags.counts[r, :n].astype(float)
        Z, copies = embedding[bags.words[r, :n]], np.repeat(np.arange(n), counts.astype(int))
        merged = trajectory(Z, *rule, counts=counts, check=False)
        spelt_out = trajectory(Z[copies], *rule, check=False)
        worst = max(worst, float(np.abs(merged[:, copies] - spelt_out).max() / np.abs(Z).max()))
    return Repetition(float(repeats.any(1).mean()), float(repeats[anatomy.leader].mean()), worst)


def heights_of(model: Classifier, words: np.ndarray) -> np.ndarray:
    """Heights <w, z> + v of words' own embeddings over the decision line."""
    with torch.no_grad():
        return (model.embedding[torch.from_numpy(words)] @ model.w + model.v).numpy()
