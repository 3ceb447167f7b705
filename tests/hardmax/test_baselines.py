"""Bag of words and full-text teacher on texts whose answer is known."""

from __future__ import annotations

import numpy as np
from softgeom.hardmax.baselines import fit_bag_of_words, fit_teacher
from softgeom.hardmax.reviews import tokenise


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
