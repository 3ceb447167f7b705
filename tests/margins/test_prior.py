"""The generative model: density by change of variables, draws by its equation."""

import numpy as np
import pytest
import sympy

from papers.margins import log_density, prior, process, residual_map, sample_sequence, scalar

ONE = np.array([[1.0]])


def test_samples_solve_their_equation():
    rng = np.random.default_rng(0)
    W_Q, W_K = 0.5 * rng.standard_normal((2, 2, 3))
    noise = 0.7 * np.random.default_rng(5).standard_normal((8, 3))
    for W_V in (None, rng.standard_normal((3, 3))):
        X = sample_sequence(np.random.default_rng(5), 8, W_Q, W_K, W_V, s=0.7)
        np.testing.assert_allclose(residual_map(X, W_Q, W_K, W_V), noise, atol=1e-9)


def test_log_density_integrates_to_one_where_the_map_is_bijective():
    """Two tokens after a fixed first, negative coupling: a Riemann sum over both."""
    rng = np.random.default_rng(3)
    W = rng.standard_normal((2, 2))
    past = np.array([[0.4, -0.3], [-0.8, 0.9]])
    grid = np.linspace(-6, 6, 61)
    base, cell = log_density(past, W, -W, s=1.0), (grid[1] - grid[0]) ** 2
    points = [np.vstack([past, [u, v]]) for u in grid for v in grid]
    densities = [np.exp(log_density(X, W, -W, s=1.0) - base) for X in points]
    assert sum(densities) * cell == pytest.approx(1.0, abs=1e-3)


def test_three_solutions_are_found_where_the_line_folds():
    past = np.array([[-1.0], [1.0]])
    starts = np.linspace(-2, 2, 9)[:, None]
    found = prior.find_solutions(np.zeros(1), past, 2.0 * ONE, ONE, starts=starts)
    wanted = scalar.preimages(0.0, past[:, 0], 2.0)
    np.testing.assert_allclose(np.sort(found[:, 0]), wanted, atol=1e-8)


R = sympy.Rational
EXACT = process.TokenModel((R(0), R(1)), (R(0), R(1, 2)), R(1, 2), sympy.exp)
THREE = process.TokenModel((-0.7, 0.2, 1.1), (0.3, -0.5, 0.9), 1.4)


def test_causal_laws_are_consistent_exactly():
    laws = {T: process.token_law(EXACT, T) for T in (1, 2, 3)}
    for T in (1, 2):
        gaps = process.consistency_gaps(laws[T], laws[T + 1])
        assert [sympy.simplify(gap) for gap in gaps.values()] == [0] * 2**T


@pytest.mark.parametrize("mode", ["anticausal", "bidirectional"])
def test_reading_the_future_breaks_consistency(mode):
    laws = {T: process.token_law(THREE, T, mode) for T in (1, 2, 3)}
    for T in (1, 2):
        assert sum(laws[T].values()) == pytest.approx(1.0, abs=1e-12)
        gaps = process.consistency_gaps(laws[T], laws[T + 1])
        assert max(abs(gap) for gap in gaps.values()) > 1e-3
        assert sum(gaps.values()) == pytest.approx(0.0, abs=1e-12)  # both are laws: the gaps cancel


def test_cylinders_do_not_depend_on_the_length_they_are_computed_at():
    laws = {T: process.token_law(THREE, T) for T in (1, 2, 3, 4)}
    for T in (3, 4):
        found = process.cylinder_probability({2: laws[T]}, {2: 1})
        assert found == pytest.approx(process.cylinder_probability(laws, {2: 1}), abs=1e-12)
    wanted = sum(laws[3][0, w, 2] for w in range(3))
    found = process.cylinder_probability(laws, {1: 0, 3: 2})
    assert found == pytest.approx(wanted, abs=1e-15)


def test_conditional_is_the_softmax_by_hand():
    a = np.exp(1.4 * 1.1 * np.array([0.2, 1.1]))
    h = 1.1 + (a @ [0.2, 1.1]) / a.sum()
    p = np.exp(h * np.array(THREE.outputs))
    np.testing.assert_allclose(THREE.conditional((1, 2), 2), p / p.sum(), atol=1e-14)


def test_latent_law_of_length_two_by_simulation():
    rng = np.random.default_rng(0)
    e = 0.9 * rng.standard_normal((2, 200_000))
    x = np.stack([e[0], e[0] + e[1]])  # mu_2 = x_1
    ones = rng.random(x.shape) < 1 / (1 + np.exp(-1.5 * x))
    wanted = np.histogram2d(*ones, bins=2)[0] / e.shape[1]
    np.testing.assert_allclose(process.latent_token_law(2, 1.0, 0.9, 1.5), wanted, atol=5e-3)


@pytest.mark.parametrize(("c", "one_sheet"), [(-1.0, False), (0.0, False), (2.0, True)])
def test_integrating_the_third_token_out_gives_back_the_law_of_two(c, one_sheet):
    two = process.latent_token_law(2, c, 1.0, 1.0)
    three = process.latent_token_law(3, c, 1.0, 1.0, one_sheet=one_sheet, cells=300)
    np.testing.assert_allclose(three.sum(axis=-1), two, atol=1e-12)
    assert two.sum() == pytest.approx(1.0, abs=1e-10)


def test_positive_coupling_makes_too_much_mass_by_the_number_of_preimages():
    """The total of the length-3 law is the mean of the mass over pasts, here drawn at random."""
    c, s = 2.0, 1.0
    total = process.latent_token_law(3, c, s, 1.0, cells=400).sum()
    finer = process.latent_token_law(3, c, s, 1.0, nodes=100, cells=600).sum()
    assert total == pytest.approx(finer, abs=1e-3)
    e = np.random.default_rng(0).standard_normal((2, 150))
    masses = np.array([scalar.mass(np.array([u, u + v]), c, s) for u, v in e.T])
    assert total > 1.01
    assert abs(masses.mean() - total) < 4 * masses.std() / np.sqrt(len(masses))
