import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import spearmanr

from papers.margins.intervals import Interval, draw_subsamples, median_interval
from papers.margins.support import (
    READINGS,
    ROUNDING,
    barrier_shares,
    cumulative_shares,
    effective_support_size,
    rank_correlation_by_position,
    support_tokens,
    top_share,
)

scores = hnp.arrays(
    float,
    hnp.array_shapes(min_dims=1, max_dims=2, min_side=1, max_side=12),
    elements=st.floats(-9, 9),
)


@settings(max_examples=80)
@given(beta=scores, reading=st.sampled_from(READINGS))
def test_shares_are_a_distribution_or_undefined(beta, reading):
    shares = barrier_shares(beta, reading)
    defined = np.isfinite(shares).all(-1)
    beta = np.where(np.abs(beta) < ROUNDING, 0.0, beta)
    pressed = {"positive": beta > 0, "absolute": beta != 0, "softmax": np.isfinite(beta)}[reading]
    assert np.array_equal(defined, pressed.any(-1))
    assert np.allclose(shares[defined].sum(-1), 1)
    assert (shares[defined] >= 0).all()


@settings(max_examples=80)
@given(beta=scores, k=st.integers(1, 15))
def test_concentration_stays_within_its_bounds(beta, k):
    shares = barrier_shares(beta, "softmax")
    T = shares.shape[-1]
    size, top = effective_support_size(shares), top_share(shares, k)
    assert (size >= 1 - 1e-9).all()
    assert (size <= T + 1e-9).all()
    assert (top >= min(k, T) / T - 1e-9).all()  # the k largest hold at least their even part
    assert (np.diff(cumulative_shares(shares)) >= -1e-12).all()
    assert np.allclose(cumulative_shares(shares)[..., -1], 1)


def test_exact_distributions_and_readings_by_hand():
    equal = np.full(8, 1 / 8)
    assert effective_support_size(equal) == pytest.approx(8)
    assert top_share(equal, 5) == pytest.approx(5 / 8)
    alone = np.eye(8)[3]
    assert effective_support_size(alone) == pytest.approx(1)
    assert top_share(alone, 1) == pytest.approx(1)
    uneven = np.array([0.5, 0.25, 0.125, 0.125])
    assert effective_support_size(uneven) == pytest.approx(2**1.75)
    assert cumulative_shares(uneven[::-1]) == pytest.approx([0.5, 0.75, 0.875, 1])
    beta = np.log([2.0, 1.0, 0.5])
    assert barrier_shares(beta, "positive") == pytest.approx([1, 0, 0])
    assert barrier_shares(beta, "softmax") == pytest.approx(np.array([4, 2, 1]) / 7)
    assert barrier_shares(beta, "absolute") == pytest.approx([0.5, 0, 0.5])


def test_no_pressure_is_a_result_and_shares_ignore_a_common_shift():
    beta = np.array([[-1.0, -2.0], [1.0, -2.0]])
    shares = barrier_shares(beta, "positive")
    assert np.isnan(shares[0]).all()
    assert shares[1] == pytest.approx([1, 0])
    assert effective_support_size(shares) == pytest.approx([np.nan, 1], nan_ok=True)
    assert np.isnan(top_share(shares)[0])
    assert np.isnan(barrier_shares([1e-15, -3.0], "positive")).all()
    assert barrier_shares([1e-15, -3.0], "absolute") == pytest.approx([0, 1])
    beta = np.array([0.0, -1.0, -2.5])
    assert barrier_shares(beta + 5000, "softmax") == pytest.approx(barrier_shares(beta, "softmax"))


def test_support_tokens_are_the_largest_scores_earlier_first():
    assert support_tokens([1.0, 3.0, 3.0, 2.0], 3).tolist() == [1, 2, 3]
    assert support_tokens([[0.0, 1.0], [5.0, 1.0]]).tolist() == [[1], [0]]
    # Many ties: an unstable sort would shuffle them.
    assert support_tokens(np.tile([1.0, 2.0], 200), 5).tolist() == [1, 3, 5, 7, 9]


def test_rank_correlation_against_scipy():
    rng = np.random.default_rng(3)
    x = rng.integers(0, 6, (40, 5)).astype(float)  # with ties
    y = x + rng.normal(size=x.shape)
    x[:, 4] = 2.0
    found = rank_correlation_by_position(x, y)
    assert found[:4] == pytest.approx([spearmanr(x[:, t], y[:, t]).statistic for t in range(4)])
    assert np.isnan(found[4])


def test_the_interval_of_a_known_sample():
    found = median_interval(np.arange(1001))
    assert found == pytest.approx((500, 25, 975))
    assert median_interval([1.0, np.nan, 3.0]).median == 2
    assert np.isnan(median_interval([np.nan])).all()


def test_intervals_overlap_when_they_share_a_point():
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
