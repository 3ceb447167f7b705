"""Ordered top k against the plane's directions, and the bound d + 1 among themselves."""

import itertools

import numpy as np
import pytest

from softgeom.bottleneck.asking.ask import ask, ask_rankings
from softgeom.bottleneck.certifying.order import Order
from softgeom.layer import Ball, SoftmaxLayer, Unbounded


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


def test_among_themselves_up_to_d_plus_one_classes_take_every_order():
    rng = np.random.default_rng(0)
    for d in (1, 2, 3):
        layer = SoftmaxLayer(rng.normal(size=(d + 2, d)))
        for k in (d + 1, d + 2):
            orders = [Order([[t] for t in p]) for p in itertools.permutations(range(k))]
            found = ask(layer, orders, features=Unbounded())
            assert (found.counts["possible"] == len(orders)) == (k == d + 1)


def test_a_ranking_says_more_than_the_order_of_its_classes():
    layer = SoftmaxLayer(
        [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], tokens=["e", "w", "n", "s"]
    )
    assert ask_rankings(layer, [["e", "w"]])[0].verdict == "impossible"
    assert ask(layer, [Order([[0], [1]])])[0].verdict == "possible"
    assert ask_rankings(layer, [["e", "n"]])[0].verdict == "possible"
    for ranking, message in (([], "no class is named"), ([0, 1, 2, 0], "duplicate: 0")):
        with pytest.raises(ValueError, match=f"a ranking: .*{message}"):
            ask_rankings(SoftmaxLayer(np.eye(3)), [ranking])
