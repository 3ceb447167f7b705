import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from papers.margins.intervals import Interval, draw_subsamples
from papers.margins.support import (
    READINGS,
    ROUNDING,
    barrier_shares,
    cumulative_shares,
    effective_support_size,
)

scores = hnp.arrays(
    float,
    hnp.array_shapes(min_dims=1, max_dims=2, min_side=1, max_side=12),
    elements=st.floats(-9, 9),
)


@settings(max_examples=80)
@given(beta=scores, reading=st.sampled_from(READINGS), k=st.integers(1, 15))
def test_shares_are_a_distribution_or_undefined_and_concentration_has_its_bounds(beta, reading, k):
    shares = barrier_shares(beta, reading)
    defined = np.isfinite(shares).all(-1)
    beta = np.where(np.abs(beta) < ROUNDING, 0.0, beta)
    pressed = {"positive": beta > 0, "absolute": beta != 0, "softmax": np.isfinite(beta)}[reading]
    assert np.array_equal(defined, pressed.any(-1))
    T, shares = shares.shape[-1], shares[defined]
    assert np.allclose(shares.sum(-1), 1)
    assert (shares >= 0).all()
    size, rising = effective_support_size(shares), cumulative_shares(shares)
    assert ((size >= 1 - 1e-9) & (size <= T + 1e-9)).all()
    top = rising[..., min(k, T) - 1]
    assert (top >= min(k, T) / T - 1e-9).all()  # the k largest hold at least their even part
    assert (np.diff(rising) >= -1e-12).all()
    assert np.allclose(rising[..., -1], 1)


@pytest.mark.parametrize(
    ("shares", "k", "top", "size"),
    [
        (np.full(8, 1 / 8), 5, 5 / 8, 8),
        (np.eye(8)[3], 1, 1, 1),
        (np.array([0.125, 0.5, 0.125, 0.25]), 2, 0.75, 2**1.75),
        (np.array([np.nan, np.nan]), 1, np.nan, np.nan),  # no pressure is a result
    ],
)
def test_concentration_by_hand(shares, k, top, size):
    assert cumulative_shares(shares)[k - 1] == pytest.approx(top, nan_ok=True)
    assert effective_support_size(shares) == pytest.approx(size, nan_ok=True)


@pytest.mark.parametrize(
    ("beta", "reading", "shares"),
    [
        (np.log([2.0, 1.0, 0.5]), "positive", [1, 0, 0]),
        (np.log([2.0, 1.0, 0.5]), "softmax", np.array([4, 2, 1]) / 7),
        (5000 + np.log([2.0, 1.0, 0.5]), "softmax", np.array([4, 2, 1]) / 7),
        (np.log([2.0, 1.0, 0.5]), "absolute", [0.5, 0, 0.5]),
        ([[-1.0, -2.0], [1.0, -2.0]], "positive", [[np.nan, np.nan], [1, 0]]),
        ([1e-15, -3.0], "positive", [np.nan, np.nan]),  # rounding is no pressure
        ([1e-15, -3.0], "absolute", [0, 1]),
    ],
)
def test_readings_by_hand(beta, reading, shares):
    assert barrier_shares(beta, reading) == pytest.approx(np.array(shares), nan_ok=True)


def test_intervals_overlap_where_they_share_a_point():
    other = Interval(3, 2, 4)
    for high, shared in ((1.9, False), (2, True), (9, True)):
        interval = Interval(1, 0, high)
        assert interval.overlaps(other) == other.overlaps(interval) == shared


def test_subsamples_have_no_repeats_and_are_seeded():
    draws = draw_subsamples(20, 50, 16, seed=4)
    assert draws.shape == (50, 16)
    assert all(len(set(draw)) == 16 for draw in draws)
    assert np.array_equal(draws, draw_subsamples(20, 50, 16, seed=4))
    assert not np.array_equal(draws, draw_subsamples(20, 50, 16, seed=5))
