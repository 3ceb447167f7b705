"""Numbers of realisable rankings: two exact routes, logarithms, the arrangements themselves."""

import math
import time

import numpy as np
import pandas as pd
import pytest
import sympy

from softgeom.bottleneck.counting.arrangement import braid_arrangement, count_arrangement_regions
from softgeom.bottleneck.counting.regions import (
    count_regions,
    count_regions_by_recurrence,
    log10_factorial,
    log10_regions,
)


@pytest.mark.parametrize("bias", [True, False])
def test_tables_two_and_three_of_the_paper(bias):
    paths = pytest.importorskip("compendium.paths")
    table = pd.read_csv(
        paths.root() / f"data/reference/braid_regions_{'with' if bias else 'without'}_bias.csv"
    )
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
    # a line: a ranking and its reverse
    assert [count_regions(C, 1, bias=False) for C in range(2, 9)] == [2] * 7
    assert [count_regions(C, 1, bias=True) for C in range(1, 9)] == [
        1 + math.comb(C, 2) for C in range(1, 9)
    ]
    assert [count_regions(C, 2, bias=False) for C in range(3, 9)] == [
        C * (C - 1) for C in range(3, 9)
    ]
    assert count_regions(30, 29, bias=False) == math.factorial(30)
    assert count_regions(30, 28, bias=False) < math.factorial(30)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("C", "d"), [(2, 1), (4, 1), (4, 2), (5, 3), (6, 2), (6, 4), (7, 3), (9, 2)]
)
def test_random_arrangements_have_as_many_regions(C, d, bias):
    rng = np.random.default_rng(C + 10 * d)
    W = rng.integers(-(10**6), 10**6, (C, d))
    b = rng.integers(-(10**6), 10**6, C) if bias else None
    hyperplanes = braid_arrangement(W, b)
    assert hyperplanes is not None
    assert count_arrangement_regions(hyperplanes) == count_regions(C, d, bias)


@pytest.mark.parametrize("bias", [True, False])
def test_count_is_zaslavskys_sum_over_the_characteristic_polynomial(bias):
    """t (t - 1) ... (t - C + 1), which general position truncates (with a bias)."""
    t = sympy.symbols("t")
    C, d = 8, 4
    # of t^C, t^(C-1), ...
    coefficients = [abs(int(a)) for a in sympy.Poly(sympy.ff(t, C), t).all_coeffs()]
    regions, bounded = (
        sum(coefficients[: d + 1]),
        sum((-1) ** (d - k) * a for k, a in enumerate(coefficients[: d + 1])),
    )
    assert count_regions(C, d, bias) == (regions if bias else regions - bounded)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("C", "d"), [(5, 2), (300, 256), (300, 257), (900, 400), (900, 898), (900, 899), (5000, 300)]
)
def test_logarithm_agrees_with_the_integer(C, d, bias):
    assert log10_regions(C, d, bias) == pytest.approx(
        math.log10(count_regions(C, d, bias)), rel=1e-12
    )


def test_gpt2_digits_and_speed_for_the_sizes_of_real_models():
    assert math.floor(log10_regions(50257, 768, bias=True)) + 1 == 5103
    assert math.log10(count_regions(50257, 768, bias=True)) == pytest.approx(
        log10_regions(50257, 768, bias=True), rel=1e-12
    )
    assert math.floor(log10_factorial(50257)) + 1 == 214445
    begin = time.process_time()
    for C, d in [(30522, 768), (50257, 768), (128256, 4096), (256000, 16384)]:
        assert (
            0
            < log10_regions(C, d, bias=False)
            < log10_regions(C, d, bias=True)
            < log10_factorial(C)
        )
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
