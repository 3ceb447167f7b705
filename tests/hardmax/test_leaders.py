"""The clustering theorem: known limits, random ensembles, and checks that must fail."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from papers.hardmax import (
    Limit,
    check_theorem,
    clusters,
    ensembles,
    leader_history,
    leaders,
    limit,
    trajectory,
)
from papers.hardmax.cases import constructed_cases
from papers.hardmax.ensembles import Trial
from papers.hardmax.leaders import _faces, _judge, distance_to_hull

CASES = {case.name: case for case in constructed_cases()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_constructed_cases_end_where_they_must(case):
    check = check_theorem(case.tokens, np.eye(2), 1.0)
    assert check.holds
    assert tuple(np.flatnonzero(check.leaders)) == case.leaders
    assert case.name != "emerging leader" or check.first_layer[3] == 1
    np.testing.assert_allclose(check.limit.points, case.ends, atol=1e-10)


@given(seed=st.integers(0, 10**6), d=st.sampled_from([2, 3, 5]))
@settings(max_examples=25)
def test_theorem_on_random_inputs(seed, d):
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(d, d))
    Z, A = rng.normal(size=(rng.integers(2, 30), d)), M @ M.T + 0.1 * np.eye(d)
    check = check_theorem(Z, A, 10 ** rng.uniform(-0.5, 0.7))
    assert check.holds or check.gap < 1e-9  # the tolerance of ties may only matter at a near-tie


def test_a_face_cluster_under_another_metric():
    # A stretches the plane so that the foot of the origin on the face between tokens 0 and 1 is not
    # its midpoint: a token started at the foot is pulled along the face to one side.
    A = np.array([[1.0, 0.4], [0.4, 1.0]])
    check = check_theorem(np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 0.0], [0.3, -0.12]]), A, 1.0)
    assert check.holds
    # In coordinates where A is the identity the square case reappears.
    root = np.linalg.cholesky(A)
    skew = check_theorem(CASES["clusters without a leader"].tokens @ np.linalg.inv(root), A, 1.0)
    assert skew.holds
    assert (~skew.is_vertex).sum() == 4


SQUARE = [[1, 1], [-1, 1], [-1, -1], [1, -1]]


@pytest.mark.parametrize(
    ("points", "leading", "extreme", "a_vertex_each"),
    [
        (SQUARE, [0, 1, 2, 3], True, True),
        ([*SQUARE, [0.2, 0.1]], [0, 1, 2, 3, 4], False, False),
        ([*SQUARE, [1, 0]], [0, 1, 2, 3, 4], False, False),  # on an edge
        ([*SQUARE, [1, 0]], [0, 1, 2, 3], True, True),
        (SQUARE, [0, 1, 2], True, False),
        ([[1, 2]], [0], True, True),
    ],
)
def test_leaders_inside_and_corners_without_one_are_found_out(
    points, leading, extreme, a_vertex_each
):
    """Tokens that have stood still from the start, some of them called leaders."""
    points = np.array(points, dtype=float)
    first = np.where(np.isin(np.arange(len(points)), leading), 0, -1)
    check = _judge(Limit(points, 1, 0.0, True), first, points, 1.0, np.eye(2))
    assert check.leaders_are_extreme == extreme
    assert check.polytope_has_a_vertex_per_leader == a_vertex_each
    assert check.holds == (extreme and a_vertex_each)


def test_equal_tokens_have_no_leader_and_the_face_check_can_fail():
    check = check_theorem(np.tile([[1.0, 2.0]], (3, 1)), np.eye(2), 1.0)
    assert not check.leaders.any()
    assert not check.holds
    # the last lies on a face but is no projection of the origin
    sites = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 0.0], [1.0, 0.5]])
    vertex = np.array([True, True, True, False])
    outside, projection = _faces(sites, vertex, np.eye(2))
    assert outside < 1e-9
    assert projection > 0.1
    sites[3] = [2.0, 0.0]
    assert _faces(sites, vertex, np.eye(2))[0] > 0.1


@pytest.mark.parametrize("seed", range(4))
def test_extreme_sites_are_hull_vertices_and_leaders_stand_still(seed):
    Z = np.random.default_rng(seed).normal(size=(40, 3))
    check = check_theorem(Z, np.eye(3), 1.0)
    assert set(ConvexHull(check.sites).vertices) == set(np.flatnonzero(check.extremeness > 1e-6))
    states = trajectory(Z, np.eye(3), 1.0, 15)
    history = leader_history(states, np.eye(3))
    assert (history[1:] >= history[:-1]).all()
    for token in np.flatnonzero(history[-1]):
        since = history[:, token].argmax()
        assert (states[since:, token] == states[since, token]).all()


def test_repeated_words_lead_in_each_set_of_a_batch_and_padding_does_not():
    Z = np.array([[1.0, 0.0], [-1.0, 0.2], [5.0, 5.0]])
    led = leaders(Z, np.eye(2), counts=np.array([3.0, 1.0, 0.0]))
    np.testing.assert_array_equal(led, [True, True, False])
    np.testing.assert_array_equal(leaders(Z[[0, 0, 1]], np.eye(2)), [False, False, True])
    Z = np.random.default_rng(0).normal(size=(6, 9, 3))
    together, ends = leaders(Z, np.eye(3)), limit(Z, np.eye(3), 1.0).points
    for r in range(6):
        np.testing.assert_array_equal(together[r], leaders(Z[r], np.eye(3)))
    np.testing.assert_allclose(ends[2], limit(Z[2], np.eye(3), 1.0).points, atol=1e-10)


def test_clusters_are_linked_by_distance():
    Z = np.array([[0.0, 1.0], [1.0, 0.0], [1e-10, 1.0], [1.0, 0.5]])
    np.testing.assert_array_equal(clusters(Z), [0, 1, 0, 2])
    away = distance_to_hull(np.array([2.0, 0.5]), np.array([[0.0, 0.0], [1.0, 0.0]]))
    assert away == pytest.approx(np.hypot(1, 0.5), rel=1e-4)


def test_summary_counts_each_failure_under_its_statement():
    rng = np.random.default_rng(0)
    trials = ensembles.try_theorem(ensembles.random_sets(rng, 2, batches=2, sets=4, largest=12))
    good = ensembles.summarise(trials)
    assert good["theorem_holds"] == good["inputs"] == 8
    assert {good[f] for f in ("inside", "shared", "moved", "leaderless", "unequal")} == {0}
    check = trials[0].check
    moved = replace(check, leader_drift=0.1)
    everybody = replace(check, leaders=np.ones_like(check.leaders))
    bad = ensembles.summarise([Trial(moved, False), Trial(everybody, False), Trial(moved, True)])
    assert (bad["moved"], bad["shared"], bad["unequal"], bad["shaken"]) == (1, 1, 1, 1)
    assert bad["theorem_holds"] == 0


@pytest.mark.parametrize("alpha", [0.1, 1.0, 3.0])
def test_the_step_equals_its_equations_and_followers_keep_the_pace(alpha):
    rng = np.random.default_rng(0)
    assert ensembles.pace_of_followers(rng, alpha) < 1e-6
    error, shortfall = ensembles.compare_steps(rng, batches=5)
    assert error < 1e-12
    assert shortfall < 1e-11
    distance = ensembles.approach(rng, alpha, sets=3, tokens=10, layers=20)
    assert distance.shape == (21, 3)
    assert (distance[0] == 1).all()
    assert distance[-1].max() < max(1e-2, 2 * (1 + alpha) ** -20)


def test_kinds_of_matrices_are_what_they_are_called():
    rng = np.random.default_rng(0)
    kinds = ensembles.other_matrices(rng)
    assert np.linalg.matrix_rank(kinds["rank 1, semidefinite"]) == 1
    np.testing.assert_allclose(kinds["skew"], -kinds["skew"].T)
    negative = kinds["negative definite"]
    assert np.linalg.eigvalsh(negative).max() < 0
    stopped, places, led = ensembles.run_outside(rng, negative, tokens=6, layers=50)
    assert stopped in (True, False)
    assert 1 <= places <= 6
    assert 0 <= led <= 6
