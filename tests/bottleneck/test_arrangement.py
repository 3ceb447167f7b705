"""Exact arrangements: drawings counted by hand, points in every region, special positions."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom.bottleneck.counting.arrangement import (
    braid_arrangement,
    count_arrangement_regions,
    exact_layer,
    visit_regions,
)

GENERIC = [[1, 2], [3, -1], [-2, 5], [-4, -4]]


@pytest.mark.parametrize(
    ("lines", "regions"),
    [
        ([], 1),
        ([(1, 0, 0)], 2),
        ([(1, 0, 0), (1, 0, -1)], 3),  # parallel
        ([(1, 0, 0), (0, 1, 0), (1, 1, 0)], 6),  # through one point
        ([(1, 0, 0), (0, 1, 0), (1, 1, -1)], 7),  # a triangle
        ([(1, 0, 0), (0, 1, 0), (1, 1, -1), (1, 0, -5)], 10),
    ],
)
def test_lines_of_the_plane(lines, regions):
    assert count_arrangement_regions(lines) == regions
    assert len(visit_regions(lines, 2)) == regions


def test_coordinate_planes_and_a_slanted_one_in_space():
    octants = [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)]
    assert count_arrangement_regions(octants) == 8
    # all but the octant of negatives are cut
    assert count_arrangement_regions([*octants, (1, 1, 1, -1)]) == 15


@settings(max_examples=60)
@given(st.data(), st.integers(1, 3), st.integers(1, 5), st.booleans())
def test_every_region_is_visited_once(data, d, C, bias):
    """Small integers make special positions common; the two algorithms must agree there too."""
    entry = st.integers(-2, 2)
    W = data.draw(st.lists(st.lists(entry, min_size=d, max_size=d), min_size=C, max_size=C))
    b = data.draw(st.lists(entry, min_size=C, max_size=C)) if bias else None
    hyperplanes = braid_arrangement(W, b)
    if hyperplanes is None:  # two classes tie everywhere
        rows = [(*w, 0 if b is None else b[i]) for i, w in enumerate(W)]
        assert len(set(rows)) < C
        return
    points = visit_regions(hyperplanes, d)
    values = [
        [sum(a * x for a, x in zip(h, p, strict=False)) + h[-1] for h in hyperplanes]
        for p in points
    ]
    assert all(v != 0 for row in values for v in row)
    assert (
        len({tuple(v > 0 for v in row) for row in values})
        == len(points)
        == count_arrangement_regions(hyperplanes)
    )


def count(W: Any, b: Any = None) -> int:
    hyperplanes = braid_arrangement(W, b)
    assert hyperplanes is not None
    return count_arrangement_regions(hyperplanes)


def test_only_a_bias_outside_the_span_of_columns_and_ones_counts():
    assert count(GENERIC) == 12
    assert count(GENERIC, [5, 5, 5, 5]) == 12
    assert count(GENERIC, [2 * u - 3 * v + 7 for u, v in GENERIC]) == 12
    assert count(GENERIC, [3, 10, -3, -1]) == 18


def test_floats_are_taken_at_their_exact_value():
    """0.1 + 0.2 is not 0.3: two of three ties that look simultaneous are not."""
    assert exact_layer([[0.1]])[0][0][0] == Fraction(0.1) != Fraction(1, 10)
    assert count([[1], [0], [2]], [0.3, 0.3, 0.3]) == 2
    assert count([[1], [0], [2]], [0.1 + 0.2, 0.3, 0.3]) == 4


def test_equal_rows_never_tie_by_bias_whatever_the_numbers():
    assert braid_arrangement([[1, 2], [1, 2]], [0, 1]) == []
    assert braid_arrangement([[1, 2], [1, 2]], [1, 1]) is None
    assert braid_arrangement(np.array(GENERIC, dtype=np.float32)) == braid_arrangement(GENERIC)
    assert braid_arrangement([[Fraction(1, 3)], [Fraction(2, 3)]]) == [(1, 0)]


@pytest.mark.parametrize(
    ("W", "b", "message"),
    [
        ([1.0, 2.0], None, "classes x features, not of shape"),
        ([[], []], None, "classes x features, not of shape"),
        ([[1.0], [2.0]], [1.0], "one entry for each of the 2 classes"),
        ([[np.nan], [2.0]], None, "NaN or an infinity"),
        ([[1.0], [2.0]], [0.0, np.inf], "NaN or an infinity"),
    ],
)
def test_malformed_layers_get_one_sentence(W, b, message):
    with pytest.raises(ValueError, match=message):
        braid_arrangement(W, b)
