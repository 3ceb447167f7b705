"""Bag of words and full-text teacher on texts whose answer is known."""

import numpy as np
import pytest

from softgeom.hardmax.baselines import HASH_BITS, _phrases, _weighted, fit_bag_of_words, fit_teacher
from softgeom.hardmax.reviews import Bags, tokenise


def test_the_bag_of_words_learns_planted_words_and_reads_a_mean(planted):
    model = fit_bag_of_words(planted["bags"], planted["labels"], len(planted["vocabulary"]))
    assert ((model.logits(planted["test_bags"]) > 0) == (planted["test_labels"] == 1)).mean() > 0.85
    strongest = planted["vocabulary"][np.argsort(-np.abs(model.weights))[: len(planted["planted"])]]
    assert set(strongest) == planted["planted"]
    model = fit_bag_of_words(planted["bags"], planted["labels"], len(planted["vocabulary"]))
    bags = planted["test_bags"][:20]
    weights = bags.counts / bags.counts.sum(1)[:, None]
    np.testing.assert_allclose(
        model.logits(bags), (weights * model.weights[bags.words]).sum(1) + model.bias, rtol=1e-5
    )
    np.testing.assert_allclose(
        model.logits(Bags(bags.words, 3 * bags.counts)), model.logits(bags), rtol=1e-5
    )


@pytest.mark.parametrize("between", ["", "very "])
def test_the_teacher_sees_runs_of_two_and_three_words(between):
    lexicon = {}
    texts = [
        f"not {between}good",
        f"so {between}good",
        f"not {between}bad",
        f"so {between}bad",
    ] * 20  # no single word tells
    labels = np.array([0, 1, 1, 0] * 20)
    tokens = tokenise(texts, lexicon)
    teacher = fit_teacher(tokens, labels, len(lexicon))
    assert ((teacher.probabilities(tokens) > 0.5) == labels).all()


def test_phrases_stay_within_reviews_and_rows_have_length_one():
    there = _phrases(
        tokenise(["aa bb cc", "dd", "aa aa", "cc dd aa bb"], lexicon := {}), len(lexicon)
    )
    np.testing.assert_array_equal(there.sum(1), [6, 1, 2, 9])  # distinct words, pairs and triples
    assert there[[0]].multiply(there[[3]]).sum() == 4  # aa, bb, cc and "aa bb"
    tokens = tokenise(["good film good plot", "film", "bad bad bad"], lexicon := {})
    X = _weighted(_phrases(tokens, len(lexicon)), np.linspace(1, 2, 1 << HASH_BITS))
    np.testing.assert_allclose(np.sqrt(X.multiply(X).sum(1)), 1.0, rtol=1e-6)


def test_the_teacher_finds_the_optimum(planted):
    """There the gradient of penalty and loss vanishes: no teacher that depends on luck."""
    lexicon = {}
    tokens = tokenise(planted["texts"], lexicon)
    teacher = fit_teacher(tokens, planted["labels"], len(lexicon))
    X = _weighted(_phrases(tokens, len(lexicon)), teacher.ratios)
    gradient = (
        30.0 * (X.T @ (teacher.probabilities(tokens) - planted["labels"])) + teacher.model.coef_[0]
    )
    at_zero = 30.0 * (X.T @ (0.5 - planted["labels"]))
    assert np.linalg.norm(gradient) < 0.02 * np.linalg.norm(at_zero)
