"""Kolmogorov consistency by enumeration, its failure; latent embeddings by quadrature."""

import numpy as np
import pytest
import sympy

from softgeom.margins import process, scalar

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


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="at least 1"):
        process.token_law(THREE, 0)
    with pytest.raises(ValueError, match="one of causal"):
        process.token_law(THREE, 2, "sideways")
    with pytest.raises(ValueError, match="lengths 2 and 3"):
        process.latent_token_law(4, 1.0, 1.0, 1.0)
