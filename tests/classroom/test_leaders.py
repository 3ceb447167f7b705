"""Lesson 4: right answers pass, each typical mistake gets its own sentence, hypotheses that fail
are named.
"""

from __future__ import annotations

import numpy as np
import pytest

import classroom
from classroom import leaders

FAR = [[2, 0], [-2, 0]]


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        ("1", 3),
        ("1", [3.0]),
        ("2", [-2 / 3, -5 / 6]),
        ("2", [-0.667, -0.833]),
        ("3", 7),
        ("4", [*FAR, [1, 0.25], [-1, 0.25]]),
        ("5", [0.4, 0]),
        ("5", [0, -0.1]),
        ("6", {4}),
    ],
)
def test_right_answers(number, answer):
    feedback = classroom.check(f"leaders-{number}", answer)
    assert feedback.right is True, feedback


@pytest.mark.parametrize(
    ("number", "answer", "says"),
    [
        ("1", [], "never empty"),
        ("1", {7}, "others score more"),
        ("1", {5}, "not the distance"),
        ("1", {2}, "0.75; compute all eight"),
        ("1", {2, 3}, "only the largest"),
        ("2", [-0.5, -2], "own place"),
        ("2", [-0.625, -1.125], "1 + \\alpha"),
        ("2", [-0.75, -0.25], "where it stands now"),
        ("2", [9, 9], "not where it lands"),
        ("3", 6, "1.56%"),
        ("3", 8, "fewer layers"),
        ("4", [*FAR, [0, 1], [0, -1]], "4 leaders"),
        ("4", [[1, 0], [2, 0], [3, 0], [4, 0]], "1 leader: give"),
        ("4", [*FAR, [0, 0], [1, 0]], "nonzero"),
        ("4", [*FAR, [1, 0], [1, 0]], "distinct"),
        ("5", [0.4, 0.1], "leader 1"),
        ("5", [4, 1], "a leader itself"),
        ("5", [0, 0], "nonzero"),
        ("6", {1}, "never leads"),
        ("6", {3, 4}, "leads from the start"),
        ("6", [], "Somebody does"),
    ],
)
def test_mistakes_are_named(number, answer, says):
    feedback = classroom.check(f"leaders-{number}", answer)
    assert feedback.right is False
    assert says in feedback.text


def test_layers_needed_is_a_logarithm():
    for alpha in (0.1, 0.5, 1.0):
        assert leaders.layers_needed(alpha) == int(np.ceil(np.log(100) / np.log1p(alpha)))


def test_predictions():
    assert "**3** places" in classroom.reveal("leaders-guess", 5).text
    assert "**the same**" in classroom.reveal("leaders-guess_slower", False).text
