import math

import numpy as np
import pytest
from scipy import stats

from compendium.statistics import holm, over_seeds, p_value, paired, seeds_to_decide


def test_an_interval_of_seeds_by_hand():
    # s = 1, n = 3: the 97.5% point of t with two degrees of freedom is sqrt(2) * 0.95 / sqrt(1 -
    # 0.95^2) in closed form
    half = math.sqrt(2) * 0.95 / math.sqrt(1 - 0.95**2) / math.sqrt(3)
    found = over_seeds([1.0, 2.0, 3.0])
    assert (found.mean, found.seeds) == (2.0, 3)
    np.testing.assert_allclose([found.low, found.high], [2 - half, 2 + half], rtol=1e-12)
    assert str(found) == "2 [-0.4841, 4.484] over 3 seeds"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: over_seeds([]), "one number a seed"),
        (lambda: over_seeds([[1.0]]), "shape"),
        (lambda: over_seeds([1.0, math.nan]), "NaN or infinite"),
        (lambda: p_value([math.inf]), "NaN or infinite"),
        (lambda: paired([1, 2], [1, 2, 3]), "not 2 and 3"),
    ],
)
def test_what_is_no_value_a_seed_or_has_no_partner_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_holm_by_hand_and_whatever_the_order():
    # .01 * 4, .02 * 3, then .03 * 2 which is none below the one before, and .5
    found = holm([0.03, 0.01, 0.5, 0.02])
    np.testing.assert_allclose(found, [0.06, 0.04, 0.5, 0.06])
    assert holm([0.9, 0.8]).max() == 1


def test_p_is_below_a_level_exactly_when_the_interval_leaves_out_zero():
    rng = np.random.default_rng(0)
    draws = rng.normal(0.6, 1, (400, 5))
    sure = [not interval.low <= 0 <= interval.high for interval in map(over_seeds, draws)]
    assert sure == [p_value(draw) < 0.05 for draw in draws]
    assert 0 < sum(sure) < 400
    assert (p_value([2.0]), p_value([0.0, 0.0]), p_value([1.0, 1.0])) == (1, 1, 0)
    some = [0.0, 1.0, 2.0, 1.5]  # one pair alone does not differ
    assert p_value(some) == pytest.approx(stats.ttest_1samp(some, 0).pvalue)


def test_so_many_seeds_decide_and_one_fewer_does_not():
    differences = np.array([1.0, 2.0, -0.5, 0.3])
    n = seeds_to_decide(differences)
    mean, deviation = differences.mean(), differences.std(ddof=1)

    def low(seeds):
        return mean - stats.t.ppf(0.975, seeds - 1) * deviation / math.sqrt(seeds)

    assert low(n) > 0 >= low(n // 2)  # 20 and 10: the fewest are 12
    assert seeds_to_decide([1.0, 1.1]) == 2
    assert seeds_to_decide([1.0]) is None
    assert seeds_to_decide([1.0, -1.0]) is None
