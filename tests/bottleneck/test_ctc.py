"""Texts of CTC by enumeration, and the search for a text with a class that wins no frame."""

import numpy as np
import pytest

from papers.bottleneck.ctc import Decoder, climb, softmax
from softgeom.asking import ask_texts
from softgeom.layer import Box, SoftmaxLayer


def test_the_texts_of_two_frames_by_hand():
    decoder = Decoder(3, 2)
    P = np.array([[[0.45, 0.30, 0.25]] * 2])
    found = dict(zip(decoder.texts, decoder.probabilities(P)[0], strict=True))
    wanted = {(): 0.2025, (1,): 0.36, (2,): 0.2875, (1, 2): 0.075, (2, 1): 0.075}
    assert found == pytest.approx(wanted)
    assert decoder.holds(1).tolist() == [1 in text for text in decoder.texts]


def test_the_gradient_of_a_text_is_what_differences_say():
    rng, decoder = np.random.default_rng(0), Decoder(4, 3)
    Y, place = rng.normal(size=(1, 3, 4)), decoder.texts.index((1, 2))

    def value(Y):
        return np.log(decoder.probabilities(softmax(Y))[0, place])

    found = decoder.marginals(softmax(Y), np.array([place])) - softmax(Y)
    for index in np.ndindex(Y.shape):
        step = np.zeros_like(Y)
        step[index] = 1e-5
        slope = (value(Y + step) - value(Y - step)) / 2e-5
        assert found[index] == pytest.approx(slope, abs=1e-8)


def test_the_search_finds_texts_with_a_class_that_misses_the_condition_and_none_that_meets_it():
    start = np.random.default_rng(0).uniform(-3, 3, (40, 3, 1))
    three_a_side = np.array([[0.2, 0, -1, -0.8, -0.6, 0.6, 0.8, 1]]).T
    inside = SoftmaxLayer(three_a_side, [0, -0.3, 0, 0, 0, 0, 0, 0])
    between = SoftmaxLayer([[0.0], [0.0], [1.0], [-1.0]], [0.2, -0.2, -0.3, -0.3])
    ratios = {}
    for layer in (inside, between):
        (verdict,) = ask_texts(layer, [1], features=Box(3.0)).experts
        found = climb(layer, Decoder(layer.classes, 3), 1, start, 8, 3.0)
        ratios[verdict.verdict] = found.max()
    assert ratios["impossible"] < 0 < ratios["possible"]
