"""Equation (3) and Corollary 1 in both directions, by independent methods."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from definition import exact_logits, integer_layer
from scipy.optimize import linprog

from papers.bottleneck.counting.rankings import (
    RankingVerdict,
    decide_ranking,
    effective_shape,
    feasible_rankings,
    rank_classes,
)
from papers.bottleneck.counting.regions import count_regions
from softgeom.asking.ask import ask, ask_rankings
from softgeom.certifying.order import Order
from softgeom.layer import Ball, SoftmaxLayer

SQUARE = [[1, 1], [1, -1], [-1, 1], [-1, -1]]


def meets_region(ranking: tuple[int, ...], W: np.ndarray, b: np.ndarray | None) -> bool:
    """Corollary 1 in the output space: a point t 1 + sum_k s_k u_k, s > 0, on {W x + b}."""
    C, d = W.shape
    # u_0 is the all-ones vector
    generators = np.array([[1.0 * (c in ranking[k:]) for c in range(C)] for k in range(C)])
    system, right = np.hstack([generators.T, -W.astype(float)]), np.zeros(C) if b is None else b
    bounds = [(None, None)] + [(1e-6, None)] * (C - 1) + [(None, None)] * d
    return linprog(np.zeros(C + d), A_eq=system, b_eq=right, bounds=bounds).status == 0


def test_the_example_and_witnesses_have_their_stated_rankings():
    """Probabilities (.2, .4, .1, .3) give the permutation 3142, and class 2 is the argmax."""
    ranking = rank_classes([0.2, 0.4, 0.1, 0.3])
    assert [c + 1 for c in ranking] == [3, 1, 4, 2]
    for scores in ([1.0, 1.0], [1.0, math.nan]):
        with pytest.raises(ValueError, match="do not rank strictly"):
            rank_classes(scores)
    W, b = integer_layer(6, 3, bias=True)
    assert b is not None
    for ranking, x in feasible_rankings(W, b).items():
        assert rank_classes(exact_logits(SoftmaxLayer(W, b), x)) == ranking


@pytest.mark.parametrize(
    ("C", "d", "bias"), [(3, 1, True), (4, 2, False), (4, 2, True), (4, 3, False), (5, 2, True)]
)
def test_corollary_one_is_an_equivalence(C, d, bias):
    """All C! rankings: regions of the input space, the subspace of the output space, proofs."""
    W, b = integer_layer(C, d, bias)
    realised = feasible_rankings(W, b)
    assert len(realised) == count_regions(C, d, bias)
    for ranking in itertools.permutations(range(C)):
        verdict = decide_ranking(ranking, W, b)
        assert verdict.verify(W, b)
        assert verdict.feasible == (ranking in realised) == meets_region(ranking, W, b)
        assert (verdict.x is None) == (not verdict.feasible) == (verdict.weights is not None)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_special_positions_never_realise_more(seed, bias):
    W, b = integer_layer(4, 2, bias, seed, size=2)
    realised = feasible_rankings(W, b)
    decided = [p for p in itertools.permutations(range(4)) if decide_ranking(p, W, b).feasible]
    assert set(decided) == set(realised)
    dimension, counts = effective_shape(W, b)
    assert len(realised) <= (count_regions(4, dimension, counts) if dimension else 24)


def test_one_class_square_corners_and_equal_classes():
    assert decide_ranking((0,), [[3, 4]]).verify([[3, 4]])
    assert list(feasible_rankings([[3, 4]])) == [(0,)]
    assert len(feasible_rankings(SQUARE)) == 8
    assert len(feasible_rankings(SQUARE, [3, 7, 11, 100])) == 16
    assert effective_shape(SQUARE) == (2, False)  # so the formula says 12
    W = [[1, 0], [1, 0], [0, 1]]
    assert feasible_rankings(W) == {}
    verdict = decide_ranking((0, 1, 2), W)
    assert not verdict.feasible
    assert verdict.weights == (1, 0)
    assert decide_ranking((0, 1, 2), W, [0, 1, 0]).feasible


def test_footnote_seven_needs_columns_independent_of_the_ones_vector():
    """d = C - 1 realises every ranking iff the columns of W and the all-ones vector span R^C."""
    W = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])
    assert effective_shape(W)[0] == 3
    assert len(feasible_rankings(W)) == 24
    shifted = np.array([[u, v, 1 - u - v] for u, v in [[1, 2], [3, -1], [-2, 5], [-4, -4]]])
    assert np.linalg.matrix_rank(shifted) == 3  # but the columns add up to the ones vector
    assert effective_shape(shifted)[0] == 2
    assert len(feasible_rankings(shifted)) == count_regions(4, 2, False) < 24


def test_only_a_bias_outside_the_span_of_columns_and_ones_counts():
    W = [[1, 2], [3, -1], [-2, 5], [-4, -4]]
    within = [u + 2 * v + 3 for u, v in W]
    for bias, counts in ((None, False), ([5] * 4, False), (within, False), ([3, 10, -3, -1], True)):
        assert effective_shape(W, bias) == (2, counts)
        assert len(feasible_rankings(W, bias)) == count_regions(4, 2, counts)
    assert effective_shape([[1, 1, 7], [2, 2, 7], [5, 5, 7]]) == (1, False)


@pytest.mark.parametrize(
    ("weights", "b", "proven"),
    [
        ((1, 1), None, True),
        ((2, 2), [0, 0, -1], True),
        # the biases rise along the ranking: no contradiction, the ranking is realised
        ((1, 1), [0, 0, 1], False),
        ((-1, -1), None, False),  # a negative weight reverses an inequality
        ((1, 2), None, False),  # the steps do not cancel
        ((0, 0), None, False),
        (None, None, False),
    ],
)
def test_each_condition_of_motzkins_theorem_is_checked(weights, b, proven):
    """Rows 0, 1, 0: the steps of the ranking (0, 1, 2) are +1 and -1."""
    W = [[0], [1], [0]]
    verdict = RankingVerdict((0, 1, 2), False, weights=weights and tuple(map(Fraction, weights)))
    assert verdict.verify(W, b) == proven
    assert not replace(verdict, feasible=True).verify(W, b)
    decided = decide_ranking((0, 1, 2), W, b)
    assert decided.feasible == (b == [0, 0, 1])
    assert not replace(decided, ranking=(1, 0, 2), feasible=True).verify(W, b)


@pytest.mark.parametrize(
    ("ranking", "W", "message"),
    [
        ((0, 0, 1), [[1], [2], [3]], "permutation of the 3 classes"),
        ((0, 1), [[1], [2], [3]], "permutation of the 3 classes"),
        ((0, 1), [1, 2], "classes x features"),
    ],
)
def test_bad_input_gets_one_sentence(ranking, W, message):
    with pytest.raises(ValueError, match=message):
        decide_ranking(ranking, W)


def test_pairs_are_those_that_some_direction_of_the_plane_shows():
    """Between directions of ties nothing changes: their middles show every ranking."""
    W = np.random.default_rng(4).normal(size=(7, 2))
    edges = np.array([W[i] - W[j] for i, j in itertools.permutations(range(7), 2)])
    ties = np.sort(np.arctan2(edges[:, 0], -edges[:, 1]))
    middles = (ties + np.append(ties[1:], ties[0] + 2 * np.pi)) / 2
    Y = np.stack([np.cos(middles), np.sin(middles)], axis=1) @ W.T
    seen = {tuple(row) for row in np.argsort(-Y, axis=1)[:, :2].tolist()}
    pairs = list(itertools.permutations(range(7), 2))
    found = ask_rankings(SoftmaxLayer(W), pairs, features=Ball(1.0))
    answers = zip(pairs, found.answers, strict=True)
    assert {pair for pair, answer in answers if answer.verdict == "possible"} == seen
    assert found.verify()


def test_a_ranking_demands_more_than_the_order_of_its_classes():
    layer = SoftmaxLayer(
        [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], tokens=["e", "w", "n", "s"]
    )
    assert ask_rankings(layer, [["e", "w"]])[0].verdict == "impossible"
    assert ask(layer, [Order([[0], [1]])])[0].verdict == "possible"
    assert ask_rankings(layer, [["e", "n"]])[0].verdict == "possible"
    for ranking, message in (([], "no class is named"), ([0, 1, 2, 0], "duplicate: 0")):
        with pytest.raises(ValueError, match=f"a ranking: .*{message}"):
            ask_rankings(SoftmaxLayer(np.eye(3)), [ranking])
