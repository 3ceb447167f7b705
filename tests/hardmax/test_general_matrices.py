"""Semidefinite matrices: collapse, Frank and Wolfe, cells, the flow, waiting times."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.hardmax import general_matrices as general

KINDS = [("minus identity", 2), ("negative definite", 3), ("rank 1", 2), ("rank 2", 3)]
TRIANGLE = np.array([[1.0, 0.0], [-0.5, 3**0.5 / 2], [-0.5, -(3**0.5) / 2]])
PLANE = np.eye(2)


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(KINDS), shift=st.sampled_from([0.0, 5.0]))
@settings(max_examples=25)
def test_negative_semidefinite_matrices_collapse_the_tokens_inside_their_hull(seed, kind, shift):
    name, d = kind
    rng = np.random.default_rng(seed)
    A, Z = general.negative_matrix(rng, name, d), rng.normal(size=(8, d)) + shift
    run = general.collapse(Z, A, [0.5] * 70)
    assert run.diameter[-1] < 1e-9
    assert run.outside < 1e-6
    assert run.excess > -1e-6 * abs(run.energy[0])
    assert (np.diff(run.energy) <= 1e-12 * abs(run.energy[0])).all() or d > 1


def test_two_tokens_meet_as_worked_out_by_hand():
    # 3 and -1 look to each other; at (2, 0) the token at 0 looks to the mean of both, which all tie
    # for it; then both look to the left one. The least energy of the hull is 0, at the origin.
    run = general.collapse(np.array([[3.0, 0.0], [-1.0, 0.0]]), -PLANE, [0.25, 0.25, 0.25])
    np.testing.assert_allclose(run.diameter, np.array([4, 2, 1.25, 0.9375]) / 4)
    np.testing.assert_allclose(run.point, [0.71875, 0.0])
    assert run.excess == pytest.approx(0.5 * run.point[0] ** 2)
    segment = np.array([[1.0, 4.0], [1.0, 7.0]])
    assert general.least_energy(segment, -PLANE) == pytest.approx(8.5, rel=2e-6)
    with pytest.raises(ValueError, match="not negative semidefinite"):
        general.least_energy(segment, np.diag([-1.0, 0.5]))


def test_the_energy_falls_like_one_over_t_and_faster_with_larger_shares():
    Z = np.random.default_rng(2).normal(size=(12, 2))
    slow, fast = (
        general.collapse(Z, -PLANE, [c / (t + c + 1) for t in range(900)]).rate(30, 150)
        for c in (1, 2)
    )
    assert -1.25 < slow < -0.85
    assert fast < -1.5


@given(seed=st.integers(0, 10**6), d=st.sampled_from([1, 2, 4]))
@settings(max_examples=25)
def test_frank_and_wolfes_bound(seed, d):
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(d, d))
    V = rng.normal(size=(6, d)) + rng.normal(size=d)
    found = general.frank_wolfe_excess(rng.dirichlet(np.full(6, 0.2), 9) @ V, V, -M @ M.T, 60)
    assert found.max() <= 1 + 1e-6
    assert found.min() > -1e-3


@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(2, 2), (3, 3), (3, 2), (5, 5)]),
    low=st.floats(0.05, 0.9),
)
@settings(max_examples=30)
def test_paths_in_cells_are_straight_and_their_length_follows_from_the_shares(seed, shape, low):
    rng = np.random.default_rng(seed)
    A, V = general.standing_vertices(rng, shape[0], 6, shape[1])
    trip = general.travel(rng.dirichlet(np.ones(6), 15) @ V, V, A, rng.uniform(low, 0.95, 30))
    assert trip.changes == 0
    assert trip.bend < 1e-9
    assert trip.factor < 1e-5


def test_vertices_that_look_elsewhere_are_refused():
    V = np.array([[1.0, 0.0], [3.0, 0.5], [-1.0, 0.0]])
    np.testing.assert_array_equal(general.stand_still(V, PLANE), [False, True, True])
    with pytest.raises(ValueError, match="looks to another"):
        general.travel(V, V, PLANE, [0.5])


def test_flow_first_departure_and_collapse_have_their_known_times():
    """First order in the share; a geometric waiting time; colder layers wait longer."""
    rng = np.random.default_rng(0)
    X = rng.dirichlet(np.ones(3), 20) @ TRIANGLE
    gaps = [general.ode_gap(X, TRIANGLE, PLANE, g, 2.0) for g in (0.1, 0.05, 0.025)]
    np.testing.assert_allclose(np.divide(gaps[:-1], gaps[1:]), 2, rtol=0.05)
    x = np.exp(-1.5 * 3)  # 1.5: how far each vertex leads
    found = general.exit_times(rng, TRIANGLE, PLANE, 0.6, 1 / 3, 2000, 10_000)
    assert found.mean() == pytest.approx(1 / (1 - (1 + 2 * x) ** -3), rel=0.08)
    assert general.exit_times(rng, TRIANGLE, PLANE, 0.6, 1 / 40, 5, 50).min() == 50
    temperatures = (10, 1 / 3, 1 / 4, 1 / 5)
    times = [general.collapse_time(TRIANGLE, PLANE, 0.5, T, 5000) for T in temperatures]
    assert times[0] <= 2
    assert np.log(times[3] / times[2]) > np.log(times[2] / times[1]) > 0.8
    assert general.collapse_time(TRIANGLE, PLANE, 0.5, 0.01, 30) == 30
