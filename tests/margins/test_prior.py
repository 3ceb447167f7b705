"""The generative model: density by change of variables, draws by its equation."""

import numpy as np
import pytest
from scipy.stats import kstest, norm

from softgeom.margins import log_density, prior, residual_map, sample_sequence, scalar

ONE = np.array([[1.0]])


def test_samples_solve_their_equation():
    rng = np.random.default_rng(0)
    W_Q, W_K = rng.standard_normal((2, 2, 3))
    X = sample_sequence(np.random.default_rng(5), 8, W_Q, W_K, s=0.7)
    noise = 0.7 * np.random.default_rng(5).standard_normal((8, 3))
    np.testing.assert_allclose(residual_map(X, W_Q, W_K), noise, atol=1e-9)


def test_negative_coupling_samples_follow_the_density():
    """x_3 after (-1, 1): the distribution is Phi(e(x)/s), as e is monotone for c < 0."""
    past, c, s = np.array([[-1.0], [1.0]]), -1.5, 0.8
    noise = s * np.random.default_rng(1).standard_normal((400, 1))
    draws = [prior.draw_token(e, past, c * ONE, ONE)[0] for e in noise]
    law = kstest(draws, lambda x: norm.cdf(scalar.residual(x, past[:, 0], c), scale=s))
    assert law.pvalue > 1e-3


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


def test_values_enter_the_equation_and_noise_must_be_positive():
    rng = np.random.default_rng(4)
    W_Q, W_K = 0.5 * rng.standard_normal((2, 2, 3))
    W_V = rng.standard_normal((3, 3))
    X = sample_sequence(rng, 6, W_Q, W_K, W_V, s=0.5)
    past, x = X[:-1], X[-1]
    a = np.exp((past @ W_K.T) @ (W_Q @ x))
    residual = prior.token_residual(x, past, W_Q, W_K, W_V)
    np.testing.assert_allclose(residual, x - W_V @ (a @ past / a.sum()), atol=1e-12)
    with pytest.raises(ValueError, match="must be positive"):
        log_density(np.zeros((2, 1)), ONE, ONE, s=0.0)
    with pytest.raises(ValueError, match="must be positive"):
        sample_sequence(np.random.default_rng(0), 2, ONE, ONE, s=-1.0)
