"""Stirling numbers of the first kind against permutations, identities and exact integers."""

import itertools
import math

import numpy as np
import pytest

from softgeom.bottleneck.counting.stirling import (
    associated_stirling,
    log_stirling_tail,
    stirling_polynomial_sum,
)


def unsigned_stirling(n: int, m: int) -> int:
    return stirling_polynomial_sum(n, [n - m]) if 1 <= m <= n else 0


def cycles(permutation: tuple[int, ...]) -> list[int]:
    """Lengths of the cycles of a permutation of 0 ... n - 1."""
    lengths, seen = [], set()
    for start in range(len(permutation)):
        length, element = 0, start
        while element not in seen:
            seen.add(element)
            element = permutation[element]
            length += 1
        if length:
            lengths.append(length)
    return lengths


@pytest.mark.parametrize("n", range(1, 8))
def test_both_kinds_of_numbers_count_permutations_by_their_cycles(n):
    found = [cycles(p) for p in itertools.permutations(range(n))]
    rows = list(associated_stirling(n))
    for m in range(n + 2):
        assert unsigned_stirling(n, m) == sum(len(c) == m for c in found)
        if 1 <= m <= n // 2:
            assert rows[n - m][m] == sum(len(c) == m and min(c) > 1 for c in found)


@pytest.mark.parametrize("n", [13, 60])
def test_numbers_are_the_coefficients_of_the_rising_factorial(n):
    coefficients = [1]  # of x (x + 1) ... (x + n - 1), lowest first
    for i in range(n):
        coefficients = [
            i * a + b for a, b in zip([*coefficients, 0], [0, *coefficients], strict=True)
        ]
    assert [unsigned_stirling(n, m) for m in range(n + 1)] == coefficients
    assert stirling_polynomial_sum(n, range(2 * n)) == math.factorial(n)


def test_sums_over_no_orders_and_one_term():
    assert stirling_polynomial_sum(5, []) == 0
    assert stirling_polynomial_sum(5, [5, 6]) == 0
    assert log_stirling_tail(7, 7) == 0.0


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize(
    ("n", "k"), [(30, 3), (30, 12), (30, 28), (400, 300), (600, 590), (600, 598), (3000, 40)]
)
def test_logarithm_of_the_tail_agrees_with_the_integers(n, k, step):
    """The saddle point lies outside, near and inside the unit circle in turn."""
    exact = math.log(stirling_polynomial_sum(n, range(k, -1, -step)))
    assert log_stirling_tail(n, n - k, step) == pytest.approx(exact, rel=1e-12)


def test_tail_is_the_chance_of_many_cycles():
    """The cycles of a random permutation are coins of success 1 / i (Feller's coupling)."""
    n, m = 40, 6
    distribution = np.array([1.0])
    for i in range(1, n + 1):
        distribution = np.convolve(distribution, [1 - 1 / i, 1 / i])
    assert math.exp(log_stirling_tail(n, m) - math.lgamma(n + 1)) == pytest.approx(
        distribution[m:].sum(), rel=1e-12
    )
