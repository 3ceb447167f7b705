"""The scalar case: Proposition 1, folds, and the mass of the conditional density by quadrature."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from softgeom.margins import attention_jacobian_blocks, log_density, scalar

PAST = np.array([-1.0, 1.0])


@pytest.mark.parametrize("c", [-2.0, 0.0, 0.7, 3.0])
def test_margin_is_the_derivative_of_the_residual(c):
    past = np.array([0.3, -1.2, 2.0])
    x = np.linspace(-3, 3, 7)
    h = 1e-5
    slope = (scalar.residual(x + h, past, c) - scalar.residual(x - h, past, c)) / (2 * h)
    np.testing.assert_allclose(scalar.margin(x, past, c), slope, atol=1e-8)


def test_scalar_formulas_are_the_vector_ones_in_one_dimension():
    sequence = np.random.default_rng(0).standard_normal(6)
    c = 1.3
    one = np.array([[1.0]])
    blocks = attention_jacobian_blocks(sequence[:, None], c * one, one)[:, 0, 0]
    moments = scalar.sequence_moments(sequence[None], c)
    np.testing.assert_allclose(1 - c * moments.variance[0], blocks, atol=1e-12)
    np.testing.assert_allclose(scalar.margin(sequence[5], sequence[:5], c), blocks[5], atol=1e-12)
    density = log_density(sequence[:, None], c * one, one, s=0.8)
    assert scalar.sequence_log_density(sequence[None], c, 0.8) == pytest.approx(density, abs=1e-10)


@pytest.mark.parametrize(
    ("past", "c", "s"),
    [(PAST, -1.0, 1.0), (PAST, 2.0, 1.0), ((-2.0, 2.0, 0.3), 1.0, 1.0), (PAST, 2.0, 0.2)],
)
def test_mass_is_the_integral_of_the_density(past, c, s):
    past = np.array(past)
    kinks = [*scalar.critical_points(past, c), *past]
    told = {"args": (past, c, s), "points": kinks, "limit": 400}
    wanted, _ = quad(scalar.conditional_density, -14, 14, **told)
    assert scalar.mass(past, c, s) == pytest.approx(wanted, abs=1e-7)
    assert scalar.oriented_mass(past, c, s) == pytest.approx(1.0, abs=1e-14)


def test_masses_of_the_source_notes():
    assert scalar.mass(PAST, -2.0, 1.0) == 1.0
    assert scalar.mass(PAST, 2.0, 1.0) == pytest.approx(1.42, abs=5e-3)
    assert scalar.mass(np.array([-2.0, 2.0, 0.3]), 1.0, 1.0) == pytest.approx(2.10, abs=5e-3)


def test_mass_is_the_mean_number_of_preimages():
    rng = np.random.default_rng(2)
    counts = np.array([len(scalar.preimages(e, PAST, 2.0)) for e in rng.standard_normal(400)])
    assert set(counts) == {1, 3}  # odd, as the degree of e is one
    assert abs(counts.mean() - scalar.mass(PAST, 2.0, 1.0)) < 4 * counts.std() / 400**0.5


@settings(max_examples=40, deadline=None, derandomize=True)
@given(c=st.floats(0.1, 5.0), gap=st.floats(0.1, 6.0), shift=st.floats(-3.0, 3.0))
def test_two_tokens_fold_the_line_beyond_two_over_root_c(c, gap, shift):
    ratio = gap * np.sqrt(c) / 2
    assume(abs(ratio - 1) > 1e-3)
    past = np.array([shift, shift + gap])
    folds = scalar.critical_points(past, c)
    assert len(folds) == (2 if ratio > 1 else 0)
    np.testing.assert_allclose(scalar.margin(folds, past, c), 0.0, atol=1e-8)


def test_fold_far_from_the_origin_is_found():
    """A crowd at -1 outweighs one token at 1 until exp(2 c x) passes its size."""
    past = np.append(np.full(2000, -1.0), 1.0)
    folds = scalar.critical_points(past, 2.0)
    assert len(folds) == 2
    assert 0.5 * folds.sum() == pytest.approx(np.log(2000) / 4, abs=1e-6)


def test_preimages_solve_the_equation():
    for e in (-0.3, 0.0, 0.2, 4.0):
        roots = scalar.preimages(e, PAST, 2.0)
        np.testing.assert_allclose(scalar.residual(roots, PAST, 2.0), e, atol=1e-10)
    assert [len(scalar.preimages(e, PAST, 2.0)) for e in (0.0, 4.0)] == [3, 1]
