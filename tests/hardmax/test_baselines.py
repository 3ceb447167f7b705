"""Bag of words and full-text teacher on texts whose answer is known."""

from __future__ import annotations

import numpy as np
from softgeom.hardmax.baselines import COLUMNS, _pairs, _tf_idf, fit_bag_of_words, fit_teacher
from softgeom.hardmax.reviews import Bags, tokenise


def test_baselines_learn_planted_words(planted):
    model = fit_bag_of_words(planted["bags"], planted["labels"], len(planted["vocabulary"]))
    assert ((model.logits(planted["test_bags"]) > 0) == (planted["test_labels"] == 1)).mean() > 0.85
    strongest = planted["vocabulary"][np.argsort(-np.abs(model.weights))[: len(planted["planted"])]]
    assert set(strongest) == planted["planted"]


def test_the_teacher_sees_pairs_of_words():
    lexicon = {}
    texts = ["not good", "good", "not bad", "bad"] * 20  # no single word tells the label
    labels = np.array([0, 1, 1, 0] * 20)
    tokens = tokenise(texts, lexicon)
    teacher = fit_teacher(tokens, labels, len(lexicon))
    assert ((teacher.probabilities(tokens) > 0.5) == labels).all()


def test_the_bag_of_words_reads_a_mean(planted):
    model = fit_bag_of_words(planted["bags"], planted["labels"], len(planted["vocabulary"]))
    bags = planted["test_bags"][:20]
    weights = bags.counts / bags.counts.sum(1)[:, None]
    np.testing.assert_allclose(model.logits(bags), (weights * model.weights[bags.words]).sum(1) + model.bias, rtol=1e-5)
    np.testing.assert_allclose(model.logits(Bags(bags.words, 3 * bags.counts)), model.logits(bags), rtol=1e-5)


def test_rows_of_the_teacher_have_length_one():
    tokens = tokenise(["good film good plot", "film", "bad bad bad"], lexicon := {})
    X = _tf_idf(_pairs(tokens, len(lexicon)), np.linspace(1, 2, COLUMNS))
    np.testing.assert_allclose(np.sqrt(X.multiply(X).sum(1)), 1.0, rtol=1e-6)
