"""A guess is answered: right, or the thought that probably led to it, which is recomputed here
where it is a number.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import classroom
from classroom import leaders, rankings, tearing, winning
from softgeom.hardmax.dynamics import attention, trajectory

RIGHT = {
    "rankings-guess": 12,
    "rankings-guess_bias": 18,
    "rankings-guess_digits": 5103,
    "winning-guess": False,
    "winning-guess_crowd": 10,
    "tearing-guess": 1.0,
    "tearing-guess_mass": "more",
    "leaders-guess": 3,
    "leaders-guess_slower": True,
    "winning-guess_real": 202,
    "tearing-guess_real": "none",
    "leaders-guess_real": 93,
    "trusting-guess": False,
    "trusting-guess_captors": 121,
    "asking-guess": 2,
    "asking-guess_pairs": 6,
    "asking-guess_real": 100,
}


@pytest.mark.parametrize(("name", "guess"), RIGHT.items())
def test_a_right_guess_is_told_so(name, guess):
    assert "You saw it" in classroom.reveal(name, guess).text


def test_every_prediction_is_asked_here():
    assert set(RIGHT) == {
        f"{lesson}-{key}"
        for lesson, module in classroom.LESSONS.items()
        for key in module.PREDICTIONS
    }


@pytest.mark.parametrize(
    ("name", "guess", "says"),
    [
        ("rankings-guess", 24, "chosen freely"),
        ("rankings-guess", math.comb(4, 2), "cross each of them twice"),
        ("rankings-guess", 4, "number of winners"),
        ("rankings-guess", 8, "belongs to a *pair*"),
        ("rankings-guess", 2**6, "whoever beats A"),
        ("rankings-guess", 18, "With a bias"),
        ("rankings-guess", 11, "Too few"),
        ("rankings-guess", 13, "Too many"),
        ("rankings-guess_bias", 12, "without a bias"),
        ("rankings-guess_bias", 24, "a third feature"),
        ("rankings-guess_bias", 1 + 6 + 15, "always meet in one point"),
        ("rankings-guess_bias", 17, "Too few"),
        ("rankings-guess_digits", 214445, "nearly all orders"),
        ("rankings-guess_digits", 768, "not by ten"),
        ("rankings-guess_digits", 9, "two features"),
        ("rankings-guess_digits", 107222, "square root"),
        ("rankings-guess_digits", 9999, "Too many"),
        ("winning-guess", True, "lies *farthest*"),
        ("winning-guess_crowd", 100, "circle"),
        ("winning-guess_crowd", 1, "turn $x$ round"),
        ("winning-guess_crowd", 3, "a triangle"),
        ("winning-guess_crowd", 50, "even chance"),
        ("winning-guess_crowd", 30, "rubber band"),
        ("tearing-guess", -1, "never below one"),
        ("tearing-guess", 0, "slope is one everywhere"),
        ("tearing-guess", 1 / 2**2, "whole distance"),
        ("tearing-guess", 1 / np.var([-1, 1], ddof=1), "one less than the number"),
        ("tearing-guess", 2, "reach the distance"),
        ("tearing-guess", 4, "*easier*"),
        ("tearing-guess", 0.7, "Too small"),
        ("tearing-guess", 9, "Too large"),
        ("tearing-guess_mass", "equal", "only where it is one-to-one"),
        ("tearing-guess_mass", "less", "slope vanishes"),
        ("leaders-guess", 8, "a place for each"),
        ("leaders-guess", 1, "averages"),
        ("leaders-guess", 2, "Two camps"),
        ("leaders-guess", 6, "nearest neighbour"),
        ("leaders-guess", 5, "Too many"),
        ("leaders-guess_slower", False, "take the lead"),
        ("leaders-guess_real", 40, "whoever leads decides"),
        ("leaders-guess_real", 80, "Too few"),
        ("leaders-guess_real", 100, "Too many"),
        ("winning-guess_real", 0, "among copies at most one"),
        ("winning-guess_real", 6000, "nearly every row is a corner"),
        ("winning-guess_real", 20, "Too few"),
        ("winning-guess_real", 900, "Too many"),
        ("tearing-guess_real", "some", "nothing holds the coupling positive"),
        ("trusting-guess", True, "for *every* feature"),
        ("trusting-guess_captors", 120, "one too few"),
        ("trusting-guess_captors", 3, "enough in the plane"),
        ("trusting-guess_captors", 6624, "thinned out"),
        ("trusting-guess_captors", 40, "simplex"),
        ("asking-guess", 0, "a dead class stays dead"),
        ("asking-guess", 4, "one may stand in for another"),
        ("asking-guess", 1, "Find the triangles"),
        ("asking-guess_pairs", 15, "whoever lies between them"),
        ("asking-guess_pairs", 3, "each document has two of them"),
        ("asking-guess_pairs", 0, "halfway both are ahead"),
        ("asking-guess_pairs", 9, "Too many"),
        ("asking-guess_real", 3, "surround nobody"),
        ("asking-guess_real", 50, "captors all around it"),
    ],
)
def test_the_thought_behind_a_wrong_guess_is_named(name, guess, says):
    text = classroom.reveal(name, guess).text
    assert says in text
    assert "You saw it" not in text


def test_what_the_answers_say_is_true():
    """Followers in the fourth lesson's figure never change whom they look at; 24 orders take three
    features; the digits' rule of thumb.
    """
    for alpha in (leaders.ALPHA, leaders.ALPHA / 8):
        start, *later = trajectory(leaders.START, np.eye(2), alpha, 100, check=False)
        looked = attention(start, np.eye(2))
        assert all(np.array_equal(attention(state, np.eye(2)), looked) for state in later[:20])
    assert rankings.count_regions(4, 3, bias=False) == math.factorial(4)
    classes, features = rankings.GPT2
    about = features * math.log10(classes**2 / 2) - math.lgamma(features + 1) / math.log(10)
    assert about == pytest.approx(rankings.digits(classes, features), rel=0.01)
    x = np.linspace(-3, 3, 61)
    assert max(tearing.attention_moments(x, tearing.PAIR, 1.0).variance) == pytest.approx(1.0)
    assert len(winning.winners(winning.CROWD)) == pytest.approx(
        2 * math.sqrt(2 * math.pi * math.log(100)), abs=2
    )
