"""Intervals of shares against published examples and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from compendium.proportions import difference, resampled, wilson


def test_wilson_is_the_score_interval():
    for k, n in ((0, 20), (3, 20), (20, 20), (81, 263)):
        low, high = wilson(k, n)
        expected = stats.binomtest(k, n).proportion_ci(method="wilson")
        assert (low, high) == (
            pytest.approx(expected.low, abs=1e-12),
            pytest.approx(expected.high, abs=1e-12),
        )


def test_newcombe_on_his_own_example():
    """Newcombe (1998), Table II, method 10: 56/70 against 48/80 gives 0.0524 to 0.3339."""
    gap, low, high = difference((56, 48), (70, 80))
    assert gap == pytest.approx(0.2)
    assert (low, high) == (pytest.approx(0.0524, abs=5e-5), pytest.approx(0.3339, abs=5e-5))


def test_resampling_characters():
    rng = np.random.default_rng(0)
    values = rng.random(200) < 0.3
    mean, low, high = resampled(values, rng)
    assert low < mean < high
    assert high - low == pytest.approx(2 * 1.96 * values.std() / np.sqrt(200), rel=0.1)
    assert resampled(np.zeros(50), rng) == (0.0, *map(float, wilson(0, 50)))
