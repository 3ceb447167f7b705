"""The interior-point path against a solver that knows no barrier."""

import itertools

import numpy as np
import pytest

from softgeom.margins import constrained, scalar

PAST, C, LEVEL = np.array([-0.9, 1.0]), 1.0, 0.5
WEIGHTS = np.geomspace(1.0, 1e-7, 15)


@pytest.mark.parametrize("start", [(2.5, 2.5), (-2.5, -2.5)])
def test_path_ends_at_the_constrained_optimum(start):
    path = constrained.barrier_path(np.array(start), PAST, C, LEVEL, WEIGHTS)
    exact = constrained.constrained_optimum(path[3].tail, PAST, C, LEVEL)
    np.testing.assert_allclose(path[-1].tail, exact.tail, atol=1e-5)
    np.testing.assert_allclose(path[-1].multipliers, exact.multipliers, atol=1e-4)
    assert exact.margins.min() == pytest.approx(LEVEL, abs=1e-7)  # the constraint binds
    assert exact.multipliers.max() > 1e-2
    errors = [point.error for point in path]
    assert all(later <= earlier + 1e-12 for earlier, later in itertools.pairwise(errors))


def test_the_unconstrained_optimum_violates_the_level_and_no_start_may():
    root = scalar.preimages(0.0, PAST, C)
    assert len(root) == 1
    assert scalar.margin(root, PAST, C)[0] < LEVEL
    with pytest.raises(ValueError, match="start inside"):
        constrained.barrier_path(np.zeros(2), PAST, C, LEVEL, WEIGHTS)


def test_weight_s_squared_and_level_zero_is_the_model_itself():
    rng = np.random.default_rng(0)
    s, values = 0.6, []
    for _ in range(5):
        y = rng.uniform(-0.5, 0.5, size=2)
        sequence = np.concatenate([PAST, y])[None]
        volume = np.log(constrained.tail_margins(y, PAST, C)).sum()
        density = scalar.sequence_log_density(sequence, C, s)[0]
        values.append(constrained.tail_error(y, PAST, C) + s**2 * (density - volume))
    assert np.ptp(values) < 1e-10  # equal up to a constant
