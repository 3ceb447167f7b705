"""Ranks and nats: planted layers, closed forms at both ends, two optimisers in between."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.bottleneck.counting.lowrank import (
    descend_by_bounds,
    fit_low_rank,
    log_probabilities,
    sufficient_dimension,
)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def target(rng: np.random.Generator) -> np.ndarray:
    """Six contexts, five classes, full rank; no probability too small for the alternating route."""
    return rng.dirichlet(np.full(5, 4.0), size=6)


def entropy(P: np.ndarray) -> float:
    return float(-(P * np.log(P)).sum(axis=-1).mean())


@settings(max_examples=40)
@given(st.integers(1, 4), st.booleans(), st.integers(0, 10**6))
def test_table_of_log_probabilities_has_low_rank(d, bias, seed):
    """Rank d + 1 without a bias and d + 2 with one, neither less nor more; rows sum to 1."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(12, d)), rng.normal(size=(9, d))
    b = rng.normal(size=9) if bias else None
    A = log_probabilities(X, W, b)
    np.testing.assert_allclose(np.exp(A).sum(axis=1), 1, rtol=1e-12)
    assert np.linalg.matrix_rank(A, tol=1e-10 * np.abs(A).max()) == d + 1 + bias
    assert sufficient_dimension(np.exp(A), bias) == d
    assert sufficient_dimension(np.exp(A), bias=False) == d + bias


@pytest.mark.parametrize("bias", [True, False])
def test_dimension_zero_has_a_closed_form(target, bias, rng):
    """The marginal, at the cost of the mutual information; without a bias, the uniform."""
    best = entropy(target.mean(axis=0)) if bias else np.log(5)
    fit = fit_low_rank(target, 0, bias, rng=rng)
    assert fit.cross_entropy == pytest.approx(best, abs=1e-12)
    assert fit.divergence == pytest.approx(best - entropy(target), abs=1e-12)


@pytest.mark.parametrize("bias", [True, False])
def test_sufficient_dimension_is_where_the_divergence_vanishes(bias, rng):
    """A planted layer of dimension 3 is found at 3 exactly, and stays out of reach below."""
    b = rng.normal(size=7) if bias else None
    P = np.exp(log_probabilities(rng.normal(size=(10, 3)), rng.normal(size=(7, 3)), b))
    assert sufficient_dimension(P, bias) == 3
    found = [fit_low_rank(P, d, bias, rng=rng, starts=4).divergence for d in range(5)]
    assert found[3:] == pytest.approx([0, 0], abs=1e-12)
    assert np.all(np.diff(found[:4]) < -1e-4)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("d", [1, 2])
def test_two_optimisers_agree(target, d, bias, rng):
    """Truncated Newton and alternating bounds, from their own starts, end at one divergence."""
    fit = fit_low_rank(target, d, bias, rng=rng, starts=10)
    assert fit.gradient < 1e-6
    stays = descend_by_bounds(target, fit, bias, 50).divergence
    assert stays == pytest.approx(fit.divergence, abs=1e-12)
    starts = [
        replace(fit, X=rng.normal(size=(6, d)), W=rng.normal(size=(5, d)), b=np.zeros(5))
        for _ in range(4)
    ]
    reached = min(descend_by_bounds(target, start, bias, 1500).divergence for start in starts)
    assert reached == pytest.approx(fit.divergence, abs=1e-6)


def test_more_starts_find_what_the_spectral_start_misses(rng):
    P = rng.dirichlet(np.ones(8), size=12)
    one, many = (fit_low_rank(P, 1, True, rng=rng, starts=starts).divergence for starts in (1, 8))
    assert many < one - 1e-3


@pytest.mark.parametrize(
    ("P", "dimension", "starts", "message"),
    [
        ([0.5, 0.5], 1, 1, "contexts x classes, not of shape"),
        ([[1.0, 0.0]], 1, 1, "must hold positive probabilities"),
        ([[0.5, np.nan]], 1, 1, "must hold positive probabilities"),
        ([[0.5, 0.6]], 1, 1, "must sum to one"),
        ([[0.5, 0.5]], -1, 1, "dimension >= 0 and starts >= 1"),
        ([[0.5, 0.5]], 1, 0, "dimension >= 0 and starts >= 1"),
    ],
)
def test_bad_tables_get_one_sentence(P, dimension, starts, message, rng):
    with pytest.raises(ValueError, match=message):
        fit_low_rank(P, dimension, True, rng=rng, starts=starts)
