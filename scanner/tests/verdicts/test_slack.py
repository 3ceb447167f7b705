"""Certificates with room: never where exact arithmetic denies it, as often as one at a time."""

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from definition import exact, gamma, right_side
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom.certifying import slack
from softgeom.certifying.hull import Care, certify_unargmaxable
from softgeom.certifying.slack import certify_each_unargmaxable, slack_bounds
from softgeom.certifying.verdict import BlockingClasses
from softgeom.features import Ball, Box, Ellipsoid, Unbounded
from softgeom.layer import SoftmaxLayer

EXACT = Care(1.0, 0.0)  # the bound itself


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.sampled_from([np.float16, np.float32, np.float64]),
    st.sampled_from([1e-12, 1e-6, 1.0, 1e6]),
    st.sampled_from([0.0, np.inf]),
)
def test_a_bound_is_above_the_right_side_in_fractions(seed, d, dtype, size, dense):
    """Of random weights on near ties, where the sign hangs on the last bits."""
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore"):
        W = (rng.integers(-3, 4, (8, d)) * size).astype(dtype)
    W = np.where(np.isfinite(W), W, 1).astype(dtype)
    b = (rng.integers(-3, 4, 8) * rng.choice([0.0, 1e-9, 1.0], 8)).astype(dtype)
    layer, high = SoftmaxLayer(W, b), float(rng.choice([0.5, 100.0]))
    blocking = []
    for t in range(8):
        rivals = np.delete(np.arange(8), t)[: rng.integers(1, 8)]
        sizes = rng.choice([1e-9, 0.3, 1.0, 1e9], len(rivals))
        blocking.append(BlockingClasses(rivals, sizes * rng.random(len(rivals))))
    with mock.patch.object(slack, "DENSE", dense):
        bounds = slack_bounds(layer, Box(high), range(8), blocking)
    for t, bound in enumerate(bounds):
        v, c = right_side(layer, t, blocking[t].rivals, blocking[t].weights)
        right = (Fraction(high) * sum(map(abs, v)) + c) / sum(exact(blocking[t].weights))
        assert bound == np.inf or right <= Fraction(float(bound)) < 0


@pytest.mark.parametrize("features", [Box(100.0), Box(3.0, low=-0.5), Ball(20.0)])
def test_it_finds_the_room_that_one_at_a_time_finds(features):
    rng = np.random.default_rng(0)
    outer = rng.normal(size=(60, 5))
    weights = rng.dirichlet(np.ones(20), 30)
    W = np.concatenate([outer, weights @ outer[:20]]).astype(np.float64)
    layer = SoftmaxLayer(W, np.append(np.zeros(60), rng.choice([-0.3, 0.2], 30)))
    blocking = [BlockingClasses(np.arange(20), row * 2.0**40) for row in weights]
    given = (layer, features, range(60, 90), blocking)
    pairs = enumerate(blocking, 60)
    alone = [certify_unargmaxable(layer, features, t, c.rivals, c.weights) for t, c in pairs]
    expected, found = np.array(alone), slack_bounds(*given)
    low = expected < 0
    assert low.any()
    assert not low.all()
    np.testing.assert_allclose(found[low], expected[low], rtol=1e-6)
    assert not (found[~low] <= 0).any()
    np.testing.assert_array_equal(certify_each_unargmaxable(*given) <= 0, expected <= 0)


def test_what_is_no_proof_and_what_has_no_room_is_left_open():
    layer = SoftmaxLayer([[0.0], [1.0], [-1.0]], [-1.0, 0.0, 0.0])
    two = np.array([1, 2])
    half = np.array([Fraction(1, 2)] * 2, dtype=object)
    bad = [
        BlockingClasses(np.array(rivals, np.intp), np.array(weights))
        for rivals, weights in (
            (two, [-1.0, 2.0]), (two, [np.nan, 1.0]), (two, [np.inf, 1.0]), (two, [0.0, 0.0]),
            (range(3), np.ones(3)), ([1, 3], np.ones(2)), ([-1, 1], np.ones(2)), ([], []),
            (two, half),
        )
    ]  # fmt: skip
    assert (slack_bounds(layer, Box(5.0), [0] * len(bad), bad) == np.inf).all()
    good = BlockingClasses(two, np.ones(2))
    assert slack_bounds(layer, Box(5.0), [0], [good])[0] == pytest.approx(-1.0)
    assert certify_each_unargmaxable(
        layer, Box(5.0), [0, 0], [good, bad[-1]]
    ).tolist() == pytest.approx([-1.0, 0.0], abs=1.1)
    assert slack_bounds(layer, Unbounded(), [0], [good])[0] == np.inf
    assert slack_bounds(layer, Box(1e60), [0], [good])[0] == np.inf
    assert slack_bounds(layer, Box(5.0), [], []).shape == (0,)


# ---- Each term of the bound against the roundings that it has to cover: layers of small integers
# make none, so that the distance to the exact value is all bound.


def given_away(W, b, k: int, d: int, high: float) -> Fraction:
    """How far the bound for class 0 against k rivals, times k, is above the right side."""
    layer = SoftmaxLayer(np.array(W, float), np.array(b, float))
    blocking = BlockingClasses(np.arange(1, k + 1), np.ones(k))
    bound = slack_bounds(layer, Box(high), [0], [blocking], EXACT)[0]
    v = k * layer.W[0] - layer.W[1 : k + 1].sum(axis=0)
    c = k * layer.bias[0] - layer.bias[1 : k + 1].sum()
    return Fraction(float(bound)) * k - Fraction(float(high * np.abs(v).sum() + c))


@pytest.mark.parametrize("dense", [0.0, np.inf])
def test_rows_and_biases_that_cancel_are_covered(dense, monkeypatch):
    """k products, their sum, the own one and a difference: k + 2 roundings of all sizes."""
    monkeypatch.setattr(slack, "DENSE", dense)
    for k in (1, 30):
        row, bias = 2.0**20 * np.ones((k + 1, 1)), np.append(-1.0, np.zeros(k))
        size = 2 * k * 2**20  # of the own row k times, and of the rivals' once
        assert given_away(row, bias, k, 1, 1.0) >= gamma(k + 2) * size
        flat, level = np.zeros((k + 1, 1)), 2.0**20 * np.ones(k + 1) - (np.arange(k + 1) == 0)
        assert given_away(flat, level, k, 1, 1.0) >= gamma(k + 2) * (size - k)


@pytest.mark.parametrize("reach", [0.0, 8.0])
def test_the_sum_of_the_right_side_is_covered(reach, monkeypatch):
    """d products, the constant, its error: d + 3 roundings, of reach and constant; whatever the
    bounds on those have to spare.
    """
    d = 200
    real = slack.gamma
    monkeypatch.setattr(slack, "gamma", lambda n: real(n) if n > d else 0.0)
    W = np.zeros((2, d))
    W[0] = reach / d / 0.5
    away = given_away(W, [-16.0, 0.0], 1, d, 0.5)
    assert gamma(d + 3) * Fraction(reach + 16) <= away <= gamma(d + 40) * Fraction(reach + 16) * 2


def test_what_vanishes_is_covered_and_harms_nothing():
    """The only feature that counts has no rows: three operations on it, and three on the biases,
    may each have lost a number below the normal range. The gain of 0 hides the rows' own rounding.
    """
    tiny = np.finfo(float).tiny
    layer, features = SoftmaxLayer([[1.0, 0.0]] * 2, [-1e-305, 0.0]), Ellipsoid([0.0, 1.0])
    blocking = BlockingClasses(np.array([1]), np.ones(1))
    bound = slack_bounds(layer, features, [0], [blocking], EXACT)[0]
    assert 3 * (1 + features.radius) * tiny < bound + 1e-305 < 200 * tiny
    layer, two = SoftmaxLayer([[0.0], [0.0], [-1.0]], [-1.0, 0.0, 0.0]), np.array([1, 2])
    alone, both = (
        slack_bounds(layer, Box(2.0), [0], [BlockingClasses(two, np.array([1.0, other]))])[0]
        for other in (5e-324, 2.0**-60)
    )
    assert alone == pytest.approx(both) == pytest.approx(-1.0)


def test_each_coordinate_carries_its_own_rounding():
    """Small integers, which make none: the bound is as far from the exact one as theory demands of
    the second coordinate. The first is 0 everywhere.
    """
    layer = SoftmaxLayer([[0.0, 3.0], [0.0, 7.0], [0.0, -5.0]], [-(2.0**-20), 0.0, 0.0])
    blocking, unit = BlockingClasses(np.array([1, 2]), np.array([1.0, 0.5])), Fraction(1, 2**53)
    bound = slack_bounds(layer, Box(100.0), [0], [blocking], EXACT)[0]
    size = Fraction(3, 2) * 3 + 7 + Fraction(5, 2)
    assert Fraction(float(bound)) * 3 / 2 >= Fraction(-3, 2**21) + 100 * 6 * unit * size


@pytest.mark.parametrize(
    ("rows", "biases"),
    [
        ([0.0, 1.0, -1.0], [-(2.0**60), 0.0, 0.0]),
        ([0.0, 1.0, -1.0], [0.0, 2.0**60, 2.0**60]),
        ([0.0, 2.0**-60, -(2.0**-60)], [-(2.0**-60), 0.0, 0.0]),
    ],
)
def test_sizes_at_the_ends_of_float64_are_left_to_one_class_at_a_time(rows, biases):
    layer = SoftmaxLayer(np.array(rows)[:, None], biases)
    blocking = [BlockingClasses(np.array([1, 2]), np.ones(2))]
    assert slack_bounds(layer, Box(1.0), [0], blocking)[0] == np.inf
    assert certify_each_unargmaxable(layer, Box(1.0), [0], blocking)[0] < 0
