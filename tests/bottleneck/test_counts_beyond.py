"""Counts as polynomials and as shares, the output space, and layers in special position, each by a
second route.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from softgeom.bottleneck import count_regions
from softgeom.bottleneck.counting.fraction import dimension_for_half, log10_fraction
from softgeom.bottleneck.counting.output_space import meets_region
from softgeom.bottleneck.counting.polynomials import CLASSES, closed_form, summed_recurrence
from softgeom.bottleneck.counting.positions import SPECIAL_LAYERS, WITH_ONES, random_layer
from softgeom.bottleneck.counting.price import costs_by_rank, mutual_information
from softgeom.bottleneck.counting.rankings import effective_shape, feasible_rankings


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_both_polynomials_are_the_count(d, bias):
    polynomial = closed_form(d, bias)
    assert polynomial - summed_recurrence(d, bias) == 0
    for classes in (d + 2, d + 5, 40):
        assert polynomial.subs(CLASSES, classes) == count_regions(classes, d, bias)


def test_the_share_is_the_chance_of_many_cycles():
    """Counted over all permutations of seven elements."""

    def cycles(permutation):
        left, found = set(range(len(permutation))), 0
        while left:
            i = left.pop()
            found += 1
            while (i := permutation[i]) in left:
                left.remove(i)
        return found

    C = 7
    counts = [cycles(p) for p in itertools.permutations(range(C))]
    for d in range(1, C):
        share = sum(m >= C - d for m in counts) / math.factorial(C)
        assert 10 ** log10_fraction(C, d) == pytest.approx(share, rel=1e-12)


@pytest.mark.parametrize("classes", range(1, 41))
def test_half_is_reached_at_the_dimension_and_not_below(classes):
    d = dimension_for_half(classes)
    assert log10_fraction(classes, d) >= math.log10(0.5)
    assert d == 1 or log10_fraction(classes, d - 1) < math.log10(0.5)


@pytest.mark.parametrize(("d", "bias"), [(1, True), (2, False), (2, True), (3, False)])
def test_the_output_space_agrees_with_the_regions_of_the_features(d, bias):
    W, b = random_layer(np.random.default_rng(d), 4, d, bias, size=100)
    realised = feasible_rankings(W, b)
    for ranking in itertools.permutations(range(4)):
        assert meets_region(ranking, W, b) == (ranking in realised)


def test_special_layers_never_realise_more_than_the_formula():
    for W, b in SPECIAL_LAYERS.values():
        dimension, counts = effective_shape(W, b)
        realised = len(feasible_rankings(W, b))
        assert realised <= (count_regions(4, dimension, counts) if dimension else 0)
        assert realised <= count_regions(4, 2, b is not None)
    assert effective_shape(WITH_ONES)[0] == 2


def test_costs_fall_from_the_mutual_information_to_zero():
    rng = np.random.default_rng(5)
    P = rng.dirichlet(np.full(4, 2.0), size=6)
    costs = costs_by_rank(P, rng, starts=3)
    assert mutual_information(P) == pytest.approx(
        -(P.mean(axis=0) * np.log(P.mean(axis=0))).sum() + (P * np.log(P)).sum() / len(P)
    )
    with_bias = costs[costs.bias].set_index("dimension").divergence
    assert with_bias[0] == pytest.approx(mutual_information(P), abs=1e-9)
    assert with_bias[4] < 1e-9
    assert (np.diff(with_bias[:4]) < 0).all()
    assert costs.second_route.max() < 1e-8
