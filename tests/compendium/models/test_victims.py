"""Frequency and kind of victims, each number by a second route on cases that can be counted by
hand.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from compendium.models.bags import BagModel, Recipe, draw_windows, losses, train_bag
from compendium.models.victims import (
    chance_rarer,
    judge_layer,
    kind_of,
    rank_correlation,
    rare_over_frequent,
)
from softgeom.bottleneck.examples import uniform_layer


def test_the_chance_is_the_share_of_pairs():
    rng = np.random.default_rng(0)
    frequency, lost = rng.integers(0, 6, 30), rng.random(30) < 0.4
    pairs = [(v < s) + 0.5 * (v == s) for v in frequency[lost] for s in frequency[~lost]]
    assert chance_rarer(lost, frequency) == pytest.approx(np.mean(pairs))
    assert chance_rarer(np.zeros(3, bool), np.arange(3)) is None


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        ("a", "single character"),
        (" a", "single character"),
        (" word", "word stem"),
        (" wor", "other"),
        ("word", "other"),
        (" w0rd", "other"),
    ],
)
def test_kinds_of_tokens(token, kind):
    assert kind_of(token) == kind


def test_rare_tokens_that_take_more_steps_are_seen():
    frequency = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    steps = np.array([20, 9, 8, 7, 6, 5, 4, 3, 2, 4])
    assert rare_over_frequent(steps, frequency) == 5
    assert rank_correlation(steps, frequency) > 0.8
    assert rank_correlation(frequency, frequency) == pytest.approx(-1)
    assert rank_correlation(np.ones(10), frequency) is None
    assert rare_over_frequent(np.zeros(10), frequency) is None


def test_a_layer_is_judged_and_its_failures_counted():
    judged = judge_layer(uniform_layer(80, 4, seed=1), patience=3)
    assert judged.lost.sum() == judged.counts["unargmaxable"] + judged.counts["tied"] > 0
    assert (judged.steps[judged.lost] == 4).all()  # nothing finds what cannot win
    assert judged.failures == (judged.steps[~judged.lost] == 4).sum()


def test_training_lowers_the_loss_and_the_logits_are_what_the_layer_says():
    rng = np.random.default_rng(0)
    tokens = np.cumsum(rng.integers(1, 3, 3000)) % 12
    recipe = Recipe(context=2, steps=60, batch=128, learning_rate=0.05)
    model = train_bag(tokens, 12, 4, recipe, seed=0)
    windows = draw_windows(tokens, 2, 200, torch.Generator().manual_seed(1))
    untrained = BagModel(12, 4, 2, torch.Generator().manual_seed(0))
    assert losses(model, windows).mean() < 0.6 * losses(untrained, windows).mean()
    x = sum(model.E[j][windows[:, j]] for j in range(2)).detach().numpy()
    np.testing.assert_allclose(
        model.layer().logits(x), model(windows[:, :-1]).detach().numpy(), rtol=1e-4, atol=1e-4
    )
    assert model.size == 2 * 12 * 4 + 12 * 4 + 12
    student = train_bag(tokens, 12, 4, recipe, seed=2, teacher=model)
    assert losses(student, windows).mean() < 0.6 * losses(untrained, windows).mean()
