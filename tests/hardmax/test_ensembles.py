"""The ensembles have the symmetries that they claim, and what is counted on them can go wrong."""

from dataclasses import replace

import numpy as np
import pytest

from softgeom.hardmax import ensembles
from softgeom.hardmax.ensembles import Trial


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(("d", "signs"), [(2, 1), (3, 2), (5, 2)])
def test_symmetric_sets_are_their_own_mirror_images(rng, d, signs):
    for Z, A, _ in ensembles.symmetric_sets(rng, d, signs, batches=3, sets=2):
        for axis in range(signs):
            mirror = np.eye(d)
            mirror[axis, axis] = -1
            for tokens in Z:
                images = {tuple(np.round(z, 12) + 0.0) for z in tokens @ mirror}
                assert images == {tuple(np.round(z, 12) + 0.0) for z in tokens}
                assert len(images) == len(tokens)
            np.testing.assert_array_equal(mirror @ A @ mirror, A)
        assert np.linalg.eigvalsh(A)[0] > 0


def test_summary_counts_each_failure_under_its_statement(rng):
    trials = ensembles.try_theorem(ensembles.random_sets(rng, 2, batches=2, sets=4, largest=12))
    good = ensembles.summarise(trials)
    assert good["theorem_holds"] == good["inputs"] == 8
    assert (
        good["inside"]
        == good["shared"]
        == good["moved"]
        == good["leaderless"]
        == good["unequal"]
        == 0
    )
    check = trials[0].check
    moved = replace(check, leader_drift=0.1)
    everybody = replace(check, leaders=np.ones_like(check.leaders))
    bad = ensembles.summarise([Trial(moved, False), Trial(everybody, False), Trial(moved, True)])
    assert (bad["moved"], bad["shared"], bad["unequal"], bad["shaken"]) == (1, 1, 1, 1)
    assert bad["theorem_holds"] == 0


def test_the_step_equals_its_equations_and_approaches(rng):
    error, shortfall = ensembles.compare_steps(rng, batches=5)
    assert error < 1e-12
    assert shortfall < 1e-11
    distance = ensembles.approach(rng, 1.0, sets=3, tokens=10, layers=20)
    assert distance.shape == (21, 3)
    assert (distance[0] == 1).all()
    assert distance[-1].max() < 1e-2


@pytest.mark.parametrize("alpha", [0.1, 1.0, 3.0])
def test_followers_keep_the_pace(rng, alpha):
    assert ensembles.pace_of_followers(rng, alpha) < 1e-6


def test_kinds_of_matrices_are_what_they_are_called(rng):
    kinds = ensembles.other_matrices(rng)
    assert np.linalg.matrix_rank(kinds["rank 1, semidefinite"]) == 1
    np.testing.assert_allclose(kinds["skew"], -kinds["skew"].T)
    assert np.linalg.eigvalsh(kinds["negative definite"]).max() < 0
    stopped, places, led = ensembles.run_outside(
        rng, kinds["negative definite"], tokens=6, layers=50
    )
    assert isinstance(stopped, bool)
    assert 1 <= places <= 6
    assert 0 <= led <= 6
