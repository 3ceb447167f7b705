"""Texts of CTC against a list of all alignments, and pictures that climb for one text."""

from itertools import groupby, product

import numpy as np
import pytest
import torch

from papers.bottleneck.ctc import best_text, climb, read, with_each
from softgeom.asking import ask_texts
from softgeom.layer import Box, SoftmaxLayer


def softmax(Y):
    return np.exp(Y - np.logaddexp.reduce(Y, axis=1, keepdims=True))


def every_text(P):
    """Probability of each text of a picture P (T, C), class 0 the blank, by all C^T alignments."""
    found = {}
    for alignment in product(range(P.shape[1]), repeat=len(P)):
        text = tuple(k for k, _ in groupby(alignment) if k)
        found[text] = found.get(text, 0.0) + np.prod(P[range(len(P)), alignment])
    return found


def test_the_texts_of_two_frames_by_hand():
    P = np.array([[0.45, 0.30, 0.25]] * 2)
    wanted = {(): 0.2025, (1,): 0.36, (2,): 0.2875, (1, 2): 0.075, (2, 1): 0.075}
    assert every_text(P) == pytest.approx(wanted)


@pytest.mark.parametrize("seed", range(8))
def test_sums_frame_by_frame_are_what_all_alignments_say(seed):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(4, 0.7), size=rng.integers(1, 6))
    Y, wanted = torch.tensor(np.log(P))[None], every_text(P)
    for text, probability in wanted.items():
        assert read(Y, text)[0, -1].exp() == pytest.approx(probability)
    for before, after in product([(), (1,), (2, 1)], [(), (1,), (3,)]):
        others = [k for k in (1, 2, 3) if k not in (*before[-1:], *after[:1])]
        found = with_each(Y, before, after)[0, others].exp().numpy()
        assert found == pytest.approx([wanted.get((*before, k, *after), 0) for k in others])


@pytest.mark.parametrize("seed", range(20))
def test_the_best_text_is_that_of_all_alignments(seed):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(4, 0.7), size=rng.integers(1, 6))
    wanted = every_text(P)
    for without in ([], [2]):
        some = {text: p for text, p in wanted.items() if not {*text} & {*without}}
        found, text = best_text(np.log(P), without)
        assert text == max(some, key=some.get)
        assert np.exp(found) == pytest.approx(some[text])
    with pytest.raises(RuntimeError, match="1 beginnings of texts do not decide"):
        best_text(np.log(np.full((3, 4), 0.25)), most=1)


def test_the_search_finds_texts_with_a_class_that_misses_the_condition_and_none_that_meets_it():
    start = np.random.default_rng(0).uniform(-3, 3, (40, 3, 1))
    three_a_side = np.array([[0.2, 0, -1, -0.8, -0.6, 0.6, 0.8, 1]]).T
    inside = SoftmaxLayer(three_a_side, [0, -0.3, 0, 0, 0, 0, 0, 0])
    between = SoftmaxLayer([[0.0], [0.0], [1.0], [-1.0]], [0.2, -0.2, -0.3, -0.3])
    for layer, verdict in ((inside, "impossible"), (between, "possible")):
        assert ask_texts(layer, [1], features=Box(3.0)).counts[verdict] == 1
    for before, after in product([(), (2,), (7,)], repeat=2):
        assert climb(inside, (before, 1, after), start, 20, 3.0)[0].max() < 0
    ratio, X = climb(between, ((), 1, ()), start, 20, 3.0)
    found = [every_text(softmax(x @ between.W.T + between.bias)) for x in X[ratio > 0]]
    assert (1,) in [max(texts, key=texts.get) for texts in found]
