"""Lesson 2: right answers pass, each typical mistake gets its own sentence, and what the lesson
says of its layers is true.
"""

from __future__ import annotations

import numpy as np
import pytest

import classroom
from classroom import winning
from softgeom.layer import SoftmaxLayer

FREEING = -(np.square(winning.SEVEN.W).sum(axis=1)) / 2


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        ("1", {"G", "F"}),
        ("2", [3.5, 3.5]),
        ("3", [0.5, 0.125, 0.375]),
        ("4", 0.6875),
        ("5", FREEING),
        ("5", [0, 0, 0, 0, 0, 3, 3]),
        ("6", 9),
    ],
)
def test_right_answers(number, answer):
    feedback = classroom.check(f"winning-{number}", answer)
    assert feedback.right is True, feedback


@pytest.mark.parametrize(
    ("number", "answer", "says"),
    [
        ("1", {"F"}, "somebody is still missing"),
        ("1", {}, "can never win"),
        ("1", "AFG", "1 class that can win"),
        ("2", winning.OWN_ROW.W[3], "There A wins, and D is"),
        ("2", [0, 0], "ties"),
        ("3", [1, -1, 1], "negative"),
        ("3", [1, 0.25, 0.75], "sum to 2"),
        ("3", [0.4, 0.3, 0.3], "(0, -0.4)"),
        ("3", [0.5, 0.1251, 0.3749], "rounding spoils"),
        ("4", 1, "weighted mean"),
        ("4", 0.5, "plain mean"),
        ("4", 0.6, "still never wins"),
        ("4", 0.8, "a smaller one would do"),
        ("5", np.zeros(7), "F, G cannot win"),
        ("5", [0, 0, 0, 0, 0, 0, 3], "With this bias F cannot win"),
        ("6", 8, "a tie is no win"),
        ("6", 7, "never wins"),
        ("6", 10, "a smaller one"),
    ],
)
def test_mistakes_are_named(number, answer, says):
    feedback = classroom.check(f"winning-{number}", answer)
    assert feedback.right is False
    assert says in feedback.text


def test_the_lesson_tells_the_truth_about_its_layers():
    assert winning.winners(winning.PRISON) == {"A", "B", "C"}
    assert winning.winners(winning.OWN_ROW) == set("ABCD")
    assert np.argmax(winning.OWN_ROW.logits(winning.OWN_ROW.W[3])) == 0
    assert winning.captor_weights() @ winning.PRISON.W[:3] == pytest.approx(winning.PRISON.W[3])


def test_the_threshold_of_the_bias_is_sharp():
    roof = winning.captor_weights() @ winning.PRISON_BIAS
    for above, wins in ((1e-6, True), (-1e-6, False)):
        layer = SoftmaxLayer(winning.PRISON.W, [*winning.PRISON_BIAS, roof + above], "ABCD")
        assert ("D" in winning.winners(layer)) == wins


def test_predictions():
    assert "You saw it" in classroom.reveal("winning-guess", False).text
    assert "Read on" in classroom.reveal("winning-guess", True).text
    assert "**10**" in classroom.reveal("winning-guess_crowd", 50).text
    assert "between 0 and 100" in classroom.reveal("winning-guess_crowd", 101).text
