"""The scalar case: Proposition 1, folds, and the mass of the conditional density by quadrature."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from papers.margins import attention_jacobian_blocks, constrained, log_density, population, scalar

PAST = np.array([-1.0, 1.0])


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


@pytest.mark.parametrize(
    ("past", "c", "mass"), [(PAST, -2.0, 1.0), (PAST, 2.0, 1.42), ((-2.0, 2.0, 0.3), 1.0, 2.10)]
)
def test_masses_of_the_source_notes(past, c, mass):
    assert scalar.mass(np.array(past), c, 1.0) == pytest.approx(mass, abs=5e-3)


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


START, C, LEVEL = np.array([-0.9, 1.0]), 1.0, 0.5
WEIGHTS = np.geomspace(1.0, 1e-7, 15)


@pytest.mark.parametrize("start", [(2.5, 2.5), (-2.5, -2.5)])
def test_path_ends_at_the_constrained_optimum(start):
    path = constrained.barrier_path(np.array(start), START, C, LEVEL, WEIGHTS)
    exact = constrained.constrained_optimum(path[3].tail, START, C, LEVEL)
    np.testing.assert_allclose(path[-1].tail, exact.tail, atol=1e-5)
    np.testing.assert_allclose(path[-1].multipliers, exact.multipliers, atol=1e-4)
    assert exact.margins.min() == pytest.approx(LEVEL, abs=1e-7)  # the constraint binds
    assert exact.multipliers.max() > 1e-2
    errors = [point.error for point in path]
    assert all(later <= earlier + 1e-12 for earlier, later in itertools.pairwise(errors))


def test_weight_s_squared_and_level_zero_is_the_model_itself():
    rng = np.random.default_rng(0)
    s, values = 0.6, []
    for _ in range(5):
        y = rng.uniform(-0.5, 0.5, size=2)
        sequence = np.concatenate([START, y])[None]
        volume = np.log(constrained.tail_margins(y, START, C)).sum()
        density = scalar.sequence_log_density(sequence, C, s)[0]
        values.append(constrained.tail_error(y, START, C) + s**2 * (density - volume))
    assert np.ptp(values) < 1e-10  # equal up to a constant


SEQUENCES = np.random.default_rng(0).standard_normal((60, 5))


def test_exclusion_agrees_with_margins_position_by_position():
    by_hand = [
        any(scalar.margin(row[i], row[:i], 1.3) <= 0 for i in range(1, 5)) for row in SEQUENCES
    ]
    assert population.excluded(SEQUENCES, 1.3).tolist() == by_hand
    assert 0 < sum(by_hand) < len(by_hand)
    last = [bool(scalar.margin(row[4], row[:4], 1.3) <= 0) for row in SEQUENCES]
    assert population.excluded(SEQUENCES, 1.3, "last position").tolist() == last


def test_the_smallest_margin_dominates_inside_the_boundary_alone():
    inside = ~population.excluded(SEQUENCES, 1.0)
    assert population.dominance(SEQUENCES, 1.0)[inside].all()
    # the third token is far beyond, the fourth closer to the boundary
    sequence = np.array([[-2.0, 2.0, 0.0, 1.05]])
    margins = population.margins(sequence, 1.0)[0]
    assert margins[2] < margins[3] < 1.0
    assert not population.dominance(sequence, 1.0)[0]


def test_association_has_the_sign_of_a_constructed_population():
    spread = np.linspace(0.05, 0.9, 40)
    # variance grows with the spread, and the density falls
    sequences = np.stack([-spread, spread, 0 * spread], axis=1)
    found = population.density_association(sequences, 1.0, 1.0)
    assert found.correlation == pytest.approx(-1.0)
    assert found.sequences == 40
    found = population.density_association(SEQUENCES, 1.0, 1.0)
    assert found.low < found.correlation < found.high


def test_a_scale_excludes_the_share_that_was_asked_for():
    sequences = np.random.default_rng(2).standard_normal((3000, 5))
    for reading in population.READINGS:
        scale = population.scale_excluding(0.2, sequences, reading)
        (share,) = population.excluded_shares(sequences, [scale], reading)
        assert share == pytest.approx(0.2, abs=0.01)
    counted = population.summarise(scale * sequences, 1.0)
    left = scale * sequences[~population.excluded(scale * sequences, 1.0)]
    assert counted["excluded"] == len(sequences) - len(left)
    assert counted["largest_variance"] < 1 <= 1 - counted["smallest_factor"]
    assert population.summarise(left, 1.0)["excluded"] == 0
