"""Lesson 5: right answers pass, each flaw of a proof gets its own sentence, and what the lesson
calls a proof is one for the library too.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import classroom
from classroom import reading, trusting
from classroom.exercise import ReadingError
from softgeom.bottleneck import Box, SoftmaxLayer, Unbounded, scan

WEIGHTS = ["22/45", "2/9", "13/45"]


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        ("1", WEIGHTS),
        ("1", [Fraction(22, 45), Fraction(10, 45), "13 / 45"]),
        ("2", {"P", "S"}),
        ("3", "8/15"),
        ("3", [Fraction(8, 15)]),
        ("4", 25),
    ],
)
def test_right_answers(number, answer):
    feedback = classroom.check(f"trusting-{number}", answer)
    assert feedback.right is True, feedback


@pytest.mark.parametrize(
    ("number", "answer", "says"),
    [
        ("1", ["1/2", "1/2", "1/4"], "sum to 5/4"),
        ("1", ["3/2", "-1/4", "-1/4"], "negative"),
        ("1", ["1/2", "1/4", "1/4"], "misses D's by (0, -1/4)"),
        ("1", [22 / 45, 10 / 45, 13 / 45], "is stored as"),
        ("2", {"P"}, "There is another"),
        ("2", {"P", "Q", "S"}, "Q is no proof"),
        ("2", {"R"}, "negative"),
        ("3", "1/2", "plain mean"),
        ("3", 0.533, "close"),
        ("3", 1, "prove nothing"),
        ("3", 0, "larger by 8/15"),
        ("4", 50, "collects both"),
        ("4", 26, "more than the gap"),
        ("4", 10, "larger boxes too"),
    ],
)
def test_mistakes_are_named(number, answer, says):
    feedback = classroom.check(f"trusting-{number}", answer)
    assert feedback.right is False
    assert says in feedback.text


def test_the_library_agrees_that_d_never_wins():
    assert (
        scan(trusting.LAYER, [3], features=Unbounded()).table["verdict"].iloc[0] == "unargmaxable"
    )


def test_the_largest_bias_is_where_the_library_s_verdict_turns():
    biases = [float(trusting.BIASES[name]) for name in "ABC"]
    for change, wins in ((-1e-6, False), (1e-6, True)):
        layer = SoftmaxLayer(trusting.LAYER.W, [*biases, float(trusting.largest_bias()) + change])
        assert (
            scan(layer, [3], features=Unbounded()).table["verdict"].iloc[0] == "argmaxable"
        ) == wins


def test_the_printed_weights_prove_it_on_the_largest_box_and_on_no_larger():
    """On a corner of the box the misses add up: there D's score meets the mean of the others' at L,
    and exceeds it beyond.
    """
    u, v = trusting.residual(trusting.printed_weights())
    for L, proven in ((trusting.largest_box(), True), (trusting.largest_box() + 1, False)):
        ahead = max(float(u) * x + float(v) * y for x in (-L, L) for y in (-L, L)) - float(
            trusting.GAP
        )
        assert (ahead <= 1e-12) == proven
    layer = SoftmaxLayer(trusting.LAYER.W, [0.5, 0.5, 0.5, 0.0])
    assert scan(layer, [3], features=Box(25.0)).table["verdict"].iloc[0] == "unargmaxable"


@given(st.fractions(0, 1, max_denominator=97), st.fractions(0, 1, max_denominator=97))
def test_flaw_is_none_exactly_for_the_one_proof_of_three_captors(a, b):
    weights = {"A": a, "B": b, "C": 1 - a - b}
    assert (trusting.flaw(weights) is None) == (weights == trusting.exact_weights())


def test_every_proof_accepted_bounds_d_at_random_features():
    X = np.random.default_rng(0).normal(size=(200, 2)) * 100
    scores = {name: X @ np.array(row, dtype=float) for name, row in trusting.ROWS.items()}
    for weights in trusting.certificates().values():
        if trusting.flaw(weights) is None:
            assert (scores["D"] <= np.max([scores[name] for name in weights], axis=0) + 1e-9).all()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("1/3", "yours are 1"),
        (["1/3", "1/3", "a third"], "is none"),
        (["1/0", "1/3", "1/3"], "divides by zero"),
        ([True, 0, 0], "a truth value"),
        ([float("nan"), 0, 0], "is none"),
        (["1" * 80, 0, 0], "too long"),
        ([10**9, 0, 0], "none beyond a million"),
    ],
)
def test_what_is_no_fraction_gets_a_sentence(answer, says):
    with pytest.raises(ReadingError, match=says):
        reading.fractions(3, "the weights")(answer)
