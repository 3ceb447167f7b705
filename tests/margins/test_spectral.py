"""Margins on blocks whose distance to singularity is known."""

import numpy as np
import pytest

from softgeom.margins import (
    attention_jacobian_blocks,
    eigenvalue_margin,
    singular_value_margin,
    spectral,
    spectral_radius_margin,
)


@pytest.mark.parametrize("c", [-3.0, -1.0, 0.5, 2.0])
def test_on_the_line_they_are_functions_of_c_var(c):
    X = np.array([[-1.0], [1.0], [0.0]])  # position 3 sees -1 and 1 with equal weights: Var = 1
    block = attention_jacobian_blocks(X, np.array([[c]]), np.array([[1.0]]))[2:]
    assert spectral_radius_margin(block)[0] == pytest.approx(1 - abs(c))
    assert eigenvalue_margin(block)[0] == pytest.approx(1 - c)
    assert singular_value_margin(block)[0] == pytest.approx(abs(1 - c))


def test_rotation_exhausts_the_spectral_radius_and_harms_nothing():
    """A = 2 * quarter turn: rho = 2, det(I - A) = 5: Lemma B.4 is not necessary."""
    block = np.eye(2) - 2.0 * np.array([[0.0, -1.0], [1.0, 0.0]])
    assert np.linalg.det(block) == pytest.approx(5.0)
    assert spectral_radius_margin(block) == pytest.approx(-1.0)
    assert eigenvalue_margin(block) == np.inf
    assert singular_value_margin(block) == pytest.approx(np.sqrt(5.0))


def test_positive_spectral_radius_margin_implies_positive_determinant():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((2000, 3, 3)) * 0.6
    blocks = np.eye(3) - A
    sufficient = spectral_radius_margin(blocks) > 0
    assert 100 < sufficient.sum() < 1900
    assert (np.linalg.det(blocks[sufficient]) > 0).all()
    assert (np.linalg.det(blocks[~sufficient]) > 0).any()  # not necessary


def test_smallest_singular_value_is_the_distance_to_a_singular_matrix():
    rng = np.random.default_rng(1)
    block = np.eye(4) - rng.standard_normal((4, 4))
    U, sigma, Vt = np.linalg.svd(block)
    distance = singular_value_margin(block)
    singular = block - distance * np.outer(U[:, -1], Vt[-1])
    assert np.linalg.det(singular) == pytest.approx(0.0, abs=1e-12)
    assert distance == pytest.approx(sigma[-1])


def test_conditions_are_judged_by_the_determinant():
    eigenvalues = np.array([[0.5, 0.5], [-3.0, 0.0], [2.0, 3.0], [2.0, 0.0]])
    radius, real = spectral.judge_conditions(np.stack([np.diag(1 - pair) for pair in eigenvalues]))
    # an eigenvalue -3 exhausts the first margin and not the second
    assert (radius["holds"], real["holds"]) == (1, 2)
    assert [row["det_not_positive_although_it_holds"] for row in (radius, real)] == [0, 0]
    # diag(4, 1) and diag(-1, -2)
    assert [row["det_positive_although_it_fails"] for row in (radius, real)] == [2, 1]
