"""Lesson 3: right answers pass, each typical mistake gets its own sentence, and the roots found
agree with the closed forms.
"""

from __future__ import annotations

import numpy as np
import pytest

import classroom
from classroom import tearing
from softgeom.margins.scalar import critical_points


@pytest.mark.parametrize(
    ("number", "answer"),
    [("1", 8 / 3), ("1", 2.67), ("2", 0.5), ("3", 3), ("4", [-1, -3]), ("5", 1), ("6", 4)],
)
def test_right_answers(number, answer):
    feedback = classroom.check(f"tearing-{number}", answer)
    assert feedback.right is True, feedback


@pytest.mark.parametrize(
    ("number", "answer", "says"),
    [
        ("1", 4, "one less than the number"),
        ("1", 1, "That is the mean"),
        ("1", 11 / 3, "mean square"),
        ("1", 1.633, "standard deviation"),
        ("1", 7, "Begin with the weights"),
        ("2", 0, "positive"),
        ("2", 0.25, "may lie farther apart"),
        ("2", 1, "already folded"),
        ("3", 2, "odd number"),
        ("3", 5, "how often"),
        ("4", [0, 0], "not negative"),
        ("4", [1e6, -1e6], "not negative"),
        ("5", 2, "smaller"),
        ("5", 0, "no negative eigenvalue"),
        ("6", 1, "no covariance"),
        ("6", 5, "another has a smaller one"),
    ],
)
def test_mistakes_are_named(number, answer, says):
    feedback = classroom.check(f"tearing-{number}", answer)
    assert feedback.right is False
    assert says in feedback.text


def test_the_fold_of_two_tokens_has_its_closed_form():
    assert tearing.first_folding_coupling(tearing.PAIR) == pytest.approx(
        4 / np.ptp(tearing.PAIR) ** 2
    )
    for c in (0.5, tearing.STRONG):
        widest = tearing.largest_distance(c)
        assert widest == pytest.approx(2 / np.sqrt(c))
        assert len(critical_points(np.array([0, 0.99 * widest]), c)) == 0
        assert len(critical_points(np.array([0, 1.01 * widest]), c)) > 0


def test_the_figure_needs_a_search_and_the_support_token_stands_out():
    start = np.vstack([tearing.PAST, [-0.5, 1.75]])  # where the lesson's explorer puts x
    assert tearing.determinants(start, tearing.PLANE_COUPLING).min() > 0.4
    assert tearing.determinants(np.vstack([tearing.PAST, [0, 0]]), tearing.PLANE_COUPLING)[-1] > 0
    values = np.sort(tearing.determinants(tearing.SEQUENCE, tearing.SEQUENCE_COUPLING))
    assert 0 < values[0] < 0.7 * values[1]


def test_predictions():
    assert "**1**" in classroom.reveal("tearing-guess", 2).text
    assert "**1.420**" in classroom.reveal("tearing-guess_mass", "Less").text
    assert "'less', 'equal', 'more'" in classroom.reveal("tearing-guess_mass", 1).text
