"""Carathéodory: fewer points, the same mean; in fractions and against a programme."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom.proving.caratheodory import reduce_support


def cloud(n: int, D: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points around the origin, their worth, and weights of very different sizes."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)), rng.normal(loc=0.2, size=n), rng.uniform(size=n) ** 6


@settings(max_examples=60)
@given(n=st.integers(2, 60), D=st.integers(1, 12), seed=st.integers(0, 10**6))
def test_the_mean_and_the_worth_stay_with_at_most_one_point_more_than_dimensions(n, D, seed):
    A, c, weights = cloud(n, D, seed)
    few = reduce_support(A, c, weights)
    assert (few >= 0).all()
    assert np.count_nonzero(few) <= D + 1
    assert few.sum() == pytest.approx(weights.sum(), rel=1e-9)
    assert np.allclose(few @ A, weights @ A, rtol=0, atol=1e-8 * np.abs(A).max() * weights.sum())
    assert few @ c >= weights @ c - 1e-8 * weights.sum()
    best = scipy.optimize.linprog(
        -c, A_eq=np.vstack([A.T, np.ones(n)]), b_eq=np.append(weights @ A, weights.sum())
    )
    assert few @ c <= -best.fun + 1e-6 * weights.sum()


def test_worth_near_the_best_is_kept_where_handing_over_would_lose_it():
    """At the best weights plus a little of everybody, most others are dear."""
    A, c, weights = cloud(200, 10)
    equations = np.vstack([A.T, np.ones(200)])
    best = scipy.optimize.linprog(-c, A_eq=equations, b_eq=equations @ weights).x
    best *= weights.sum() / best.sum()
    blurred = 0.9 * best + 0.1 * weights
    # worth a thousandth a unit: little may be lost
    few = reduce_support(A, c - (blurred @ c) / blurred.sum() + 1e-3, blurred)
    assert few @ c >= blurred @ c
    assert np.count_nonzero(few) <= 11


def test_few_or_dependent_points_stay_and_those_without_weight_get_none():
    A, c, weights = cloud(9, 5)
    weights[:3] = 0.0
    assert reduce_support(A, c, weights) is weights
    A, c, weights = cloud(80, 5)
    weights[::2] = 0.0
    assert not reduce_support(A, c, weights)[::2].any()
    A, c, weights = cloud(40, 5)
    weights[:10] += 10.0
    A[:10] = A[0]
    assert reduce_support(A, c, weights) is weights


def test_a_point_on_an_edge_of_the_basis_leaves_the_third_corner_alone():
    A = np.array([[0.0, 0], [1, 0], [0, 1], [0.5, 0]])
    thinned = reduce_support(A, np.array([0.0, 0, 0, 1]), np.array([0.3, 0.2, 0.3, 0.2]))
    np.testing.assert_allclose(thinned, [0.1, 0, 0.3, 0.6], atol=1e-15)
