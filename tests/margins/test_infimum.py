"""Limits and bounds of the penalty: each theorem, and its hypothesis dropped."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.margins import infimum


def draw(seed, T=7, d=3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((T, d)), rng.standard_normal((d, d)), rng


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_along_a_ray_the_scores_stay_within_the_saturation_bound(seed):
    X, M, _ = draw(seed)
    for c in (1.0, 30.0, 1e3, 1e5):
        beta, bound = infimum.barrier_scores(X, c * M), infimum.saturation_bound(X, M, c)
        assert (np.abs(beta) <= bound + 1e-9).all()


def test_the_bound_is_finite_except_at_ties():
    X, M, _ = draw(0)
    assert np.isfinite(infimum.saturation_bound(X, M, 1e5)).all()
    assert np.abs(infimum.barrier_scores(X, 1e5 * M)).max() < 1e-12
    assert np.abs(infimum.barrier_scores(X, M)).max() > 0.1
    # both past tokens have the logit 2 c under M = I
    X = np.array([[1.0, 1.0], [1.0, -1.0], [2.0, 0.0]])
    assert infimum.saturation_bound(X, np.eye(2), 1e3)[2] == np.inf
    assert infimum.barrier_scores(X, -1e3 * np.eye(2))[2] == pytest.approx(-np.log(1 + 1e3))


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(2, 6), st.floats(0.1, 1e6))
def test_orthogonal_couplings_have_the_closed_form_and_no_other_score_is_positive(seed, i, c):
    X, _, _ = draw(seed)
    v, variance = infimum.unseen_direction(X, i)
    assert abs(v @ X[i]) < 1e-12
    beta = infimum.barrier_scores(X, -c * np.outer(v, v))
    assert beta[i] == pytest.approx(-np.log1p(c * variance), rel=1e-6, abs=1e-9)
    assert beta.max() < 1e-9


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 3), st.floats(0.01, 1e4))
def test_no_score_falls_below_the_bound_for_its_norm_and_rank(seed, rank, norm):
    X, _, rng = draw(seed)
    M = rng.standard_normal((3, rank)) @ rng.standard_normal((rank, 3))
    scores = infimum.barrier_scores(X, norm * M / np.linalg.norm(M, 2))
    assert scores.min() >= rank / 3 * infimum.lower_bound(X, norm) - 1e-9


def test_two_tokens_seen_alike_attain_the_bound():
    X = np.array([[-1.5], [1.5], [0.0]])
    scores = infimum.barrier_scores(X, np.array([[-4.0]]))
    assert scores[2] == pytest.approx(infimum.lower_bound(X, 4.0), abs=1e-12)


def test_the_repaired_penalty_has_a_minimum_that_no_ray_undercuts():
    X, rng = np.random.default_rng(3).standard_normal((6, 3)), np.random.default_rng(4)
    found = infimum.descend_repaired(X, 0.3 * rng.standard_normal((3, 3)), 0.05)
    M = found.x.reshape(3, 3)
    assert found.fun == pytest.approx(infimum.barrier_scores(X, M).mean() + 0.025 * np.sum(M**2))
    assert np.linalg.norm(found.jac) < 1e-3
    for step in 1e-2 * rng.standard_normal((50, 3, 3)):
        assert infimum.repaired(X, M + step, 0.05) >= found.fun - 1e-6
    v, _ = infimum.unseen_direction(X, 5)
    assert infimum.repaired(X, -1e3 * np.outer(v, v), 0.05) > found.fun
