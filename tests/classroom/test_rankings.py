"""Lesson 1: right answers pass, each typical mistake gets its own sentence, none of which contains
the answer.
"""

from __future__ import annotations

import numpy as np
import pytest

import classroom
from classroom import rankings

SQUARE = [[1, 1], [-1, 1], [-1, -1], [1, -1]]


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        ("1", "CDBA"),
        ("2", 10),
        ("3", 20),
        ("4", SQUARE),
        ("5", rankings.BIAS),
        ("5", [0, 0.1, 1.3, -2.4]),
        ("6", 4.0),
    ],
)
def test_right_answers(number, answer):
    feedback = classroom.check(f"rankings-{number}", answer)
    assert feedback.right is True, feedback
    assert repr(feedback).startswith("Right.")


@pytest.mark.parametrize(
    ("number", "answer", "says"),
    [
        ("1", "ABDC", "wrong direction"),
        ("1", "CDAB", "B does not have the largest logit"),
        ("1", "DCBA", "winner is right"),
        ("2", 20, "twice"),
        ("2", 5, "pair"),
        ("2", 9, "too few"),
        ("2", 25, "too many"),
        ("3", 120, "all orders"),
        ("3", 10, "cross each line"),
        ("3", 12, "too few"),
        ("3", 25, "too many"),
        ("4", rankings.LAYER.W, "fall together"),
        ("4", [[1, 1], [2, 2], [3, 3], [4, 4]], "Too many tie lines"),
        ("4", [[1, 1], [1, 1], [3, 3], [4, 5]], "equal"),
        ("5", [2, 2, 2, 2], "as without a bias"),
        ("5", rankings.LAYER.W @ [3, -1], "as without a bias"),
        ("6", 5, "fewer features suffice"),
        ("6", 2, "With 2 features"),
        ("6", 1, "With 1 feature a"),
    ],
)
def test_mistakes_are_named(number, answer, says):
    feedback = classroom.check(f"rankings-{number}", answer)
    assert feedback.right is False
    assert says in feedback.text
    assert feedback._repr_markdown_().startswith("> **Not yet.**")


def test_the_shown_layers_are_in_general_position():
    assert rankings.realised(rankings.LAYER.W) == 12
    assert rankings.realised(rankings.LAYER.W, rankings.BIAS) == 18
    assert rankings.realised(rankings.FIVE.W) == 20
    assert rankings.realised(np.ones((3, 2))) == 0


def test_predictions_are_compared_and_never_judged():
    assert classroom.reveal("rankings-guess", 24).right is None
    assert "You predicted 24" in classroom.reveal("rankings-guess", 24).text
    assert "**18**" in classroom.reveal("rankings-guess_bias", 3).text
