"""Lesson 5: each flaw of a proof has its sentence, and a proof is one for the library."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classroom import reading, trusting
from classroom.reading import ReadingError
from softgeom.bottleneck import Box, SoftmaxLayer, Unbounded, scan


def test_the_library_agrees_that_d_never_wins_up_to_the_largest_bias():
    assert scan(trusting.LAYER, [3], features=Unbounded()).counts["unargmaxable"] == 1
    biases = [float(trusting.BIASES[name]) for name in "ABC"]
    for change, wins in ((-1e-6, False), (1e-6, True)):
        layer = SoftmaxLayer(trusting.LAYER.W, [*biases, float(trusting.largest_bias()) + change])
        assert scan(layer, [3], features=Unbounded()).counts["argmaxable"] == wins


def test_the_printed_weights_prove_it_on_the_largest_box_and_on_no_larger():
    """On a corner of the box the misses add up."""
    u, v = trusting.residual(trusting.printed_weights())
    for L, proven in ((trusting.largest_box(), True), (trusting.largest_box() + 1, False)):
        most = max(float(u) * x + float(v) * y for x in (-L, L) for y in (-L, L))
        assert (most - float(trusting.GAP) <= 1e-12) == proven
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
