import numpy as np
import pytest

from softgeom.margins.intervals import Interval, draw_subsamples, median_interval


def test_the_interval_of_a_known_sample():
    found = median_interval(np.arange(1001))
    assert found == pytest.approx((500, 25, 975))
    assert median_interval([1.0, np.nan, 3.0]).median == 2
    assert np.isnan(median_interval([np.nan])).all()


def test_intervals_overlap_when_they_share_a_point():
    assert Interval(1, 0, 2).overlaps(Interval(3, 2, 4))
    assert not Interval(1, 0, 1.9).overlaps(Interval(3, 2, 4))
    assert not Interval(3, 2, 4).overlaps(Interval(1, 0, 1.9))
    assert Interval(1, 0, 9).overlaps(Interval(3, 2, 4))
    assert Interval(3, 2, 4).overlaps(Interval(1, 0, 9))


def test_subsamples_have_no_repeats_and_are_seeded():
    draws = draw_subsamples(20, 50, 16, seed=4)
    assert draws.shape == (50, 16)
    assert all(len(set(draw)) == 16 for draw in draws)
    assert np.array_equal(draws, draw_subsamples(20, 50, 16, seed=4))
    assert not np.array_equal(draws, draw_subsamples(20, 50, 16, seed=5))
    with pytest.raises(ValueError, match="a subsample of 16 windows"):
        draw_subsamples(15, 1, 16, seed=0)
