"""Counts of rankings: exact routes, logarithms, Stirling numbers, arrangements by hand."""

import math
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from definition import integer_layer
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.bottleneck.counting.arrangement import (
    braid_arrangement,
    count_arrangement_regions,
    exact_layer,
    visit_regions,
)
from papers.bottleneck.counting.regions import (
    count_regions,
    count_regions_by_recurrence,
    log10_factorial,
    log10_regions,
    log_stirling_tail,
    stirling_polynomial_sum,
)


@pytest.mark.parametrize("bias", [True, False])
def test_tables_two_and_three_of_the_paper(bias):
    paths = pytest.importorskip("compendium.paths")
    name = f"braid_regions_{'with' if bias else 'without'}_bias.csv"
    table = pd.read_csv(paths.root() / "data/reference" / name)
    assert len(table) == 90
    for row in table.itertuples():
        assert count_regions(row.classes, row.dimension, bias) == row.regions
        assert count_regions_by_recurrence(row.classes, row.dimension, bias) == row.regions


@pytest.mark.parametrize("bias", [True, False])
def test_closed_form_and_recurrence_agree_beyond_the_tables(bias):
    for C in range(1, 31):
        for d in range(1, 33):
            assert count_regions(C, d, bias) == count_regions_by_recurrence(C, d, bias)
    assert count_regions(700, 90, bias) == count_regions_by_recurrence(700, 90, bias)


def test_hand_computed_cases():
    assert count_regions(np.int64(4), np.int32(2), np.bool_(True)) == 18
    assert [count_regions(1, d, bias) for d in (1, 5) for bias in (True, False)] == [1] * 4
    assert count_regions(30, 29, bias=False) == math.factorial(30)
    assert count_regions(30, 28, bias=False) < math.factorial(30)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("C", "d"), [(2, 1), (4, 1), (4, 2), (5, 3), (6, 2), (6, 4), (7, 3), (9, 2)]
)
def test_random_arrangements_have_as_many_regions(C, d, bias):
    W, b = integer_layer(C, d, bias, seed=C + 10 * d, size=10**6)
    assert count(W, b) == count_regions(C, d, bias)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("C", "d"), [(5, 2), (300, 256), (300, 257), (900, 400), (900, 898), (900, 899), (50257, 768)]
)
def test_logarithm_agrees_with_the_integer(C, d, bias):
    exact = math.log10(count_regions(C, d, bias))
    assert log10_regions(C, d, bias) == pytest.approx(exact, rel=1e-12)


def test_gpt2_digits_and_speed_for_the_sizes_of_real_models():
    assert math.floor(log10_regions(50257, 768, bias=True)) + 1 == 5103
    assert math.floor(log10_factorial(50257)) + 1 == 214445
    begin = time.process_time()
    for C, d in [(30522, 768), (50257, 768), (128256, 4096), (256000, 16384)]:
        few, many = (log10_regions(C, d, bias) for bias in (False, True))
        assert 0 < few < many < log10_factorial(C)
    assert time.process_time() - begin < 2


@pytest.mark.parametrize("count", [count_regions, count_regions_by_recurrence, log10_regions])
@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        ((0, 2, True), ValueError, "classes must be a positive integer, not 0"),
        ((4, -1, True), ValueError, "dimension must be a positive integer, not -1"),
        ((4.0, 2, True), TypeError, "classes must be a positive integer, not 4.0"),
        ((4, "2", False), TypeError, "dimension must be a positive integer, not '2'"),
        ((4, 2, np.zeros(4)), TypeError, "give True or False, not ndarray"),
    ],
)
def test_bad_sizes_get_one_sentence(count, sizes, error, message):
    with pytest.raises(error, match=message):
        count(*sizes)


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize(
    ("n", "k"), [(30, 3), (30, 12), (30, 28), (400, 300), (600, 590), (600, 598), (3000, 40)]
)
def test_logarithm_of_the_tail_agrees_with_the_integers(n, k, step):
    """The saddle point lies outside, near and inside the unit circle in turn."""
    exact = math.log(stirling_polynomial_sum(n, range(k, -1, -step)))
    assert log_stirling_tail(n, n - k, step) == pytest.approx(exact, rel=1e-12)
    assert stirling_polynomial_sum(k, range(2 * k)) == math.factorial(k)
    assert stirling_polynomial_sum(n, []) == stirling_polynomial_sum(n, [n, n + 1]) == 0
    assert log_stirling_tail(n, n) == 0.0


OCTANTS = [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)]
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
        (OCTANTS, 8),
        ([*OCTANTS, (1, 1, 1, -1)], 15),  # all but the octant of negatives are cut
    ],
)
def test_lines_of_the_plane_and_planes_of_space(lines, regions):
    assert count_arrangement_regions(lines) == regions
    assert len(visit_regions(lines, len(lines[0]) - 1 if lines else 2)) == regions


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
    normals = np.array(hyperplanes, dtype=object).reshape(-1, d + 1)
    values = np.array([[*p, 1] for p in points]) @ normals.T
    assert (values != 0).all()
    signs = set(map(tuple, values > 0))
    assert len(signs) == len(points) == count_arrangement_regions(hyperplanes)


def count(W: Any, b: Any = None) -> int:
    hyperplanes = braid_arrangement(W, b)
    assert hyperplanes is not None
    return count_arrangement_regions(hyperplanes)


def test_floats_are_taken_at_their_exact_value():
    """0.1 + 0.2 is not 0.3: two of three ties that look simultaneous are not."""
    assert exact_layer([[0.1]])[0][0][0] == Fraction(0.1) != Fraction(1, 10)
    assert count([[1], [0], [2]], [0.3, 0.3, 0.3]) == 2
    assert count([[1], [0], [2]], [0.1 + 0.2, 0.3, 0.3]) == 4


def test_equal_rows_tie_only_with_equal_biases():
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
