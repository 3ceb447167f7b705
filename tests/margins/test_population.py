"""Random sequences on the line: margins one by one, scaling, density."""

import numpy as np
import pytest

from softgeom.margins import population, scalar

SEQUENCES = np.random.default_rng(0).standard_normal((60, 5))


def test_exclusion_agrees_with_margins_position_by_position():
    by_hand = [
        any(scalar.margin(row[i], row[:i], 1.3) <= 0 for i in range(1, 5)) for row in SEQUENCES
    ]
    assert population.excluded(SEQUENCES, 1.3).tolist() == by_hand
    assert 0 < sum(by_hand) < len(by_hand)
    last = [bool(scalar.margin(row[4], row[:4], 1.3) <= 0) for row in SEQUENCES]
    assert population.excluded(SEQUENCES, 1.3, "last position").tolist() == last


def test_scale_and_coupling_act_together_and_negative_ones_exclude_nothing():
    scaled, coupled = population.excluded(1.5 * SEQUENCES, 0.8), 0.8 * 1.5**2
    assert np.array_equal(scaled, population.excluded(SEQUENCES, coupled))
    assert not population.excluded(10 * SEQUENCES, -5.0).any()
    assert population.margins(10 * SEQUENCES, -5.0).min() >= 1.0


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
    with pytest.raises(ValueError, match="3 sequences are inside"):
        population.density_association(SEQUENCES[:3], -1.0, 1.0)


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
