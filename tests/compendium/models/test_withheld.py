"""Layers trained without some classes: the law of their rows, the limit, and the cure."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from compendium.models import withheld as training
from softgeom.layer import SoftmaxLayer

SMALL = training.Recipe(width=6, steps=40, batch=16)


def _task(seed=0, shown=0):
    return training.code_task(30, 10, 200, shown, seed)


def test_withheld_classes_have_no_example_unless_asked_for():
    for shown in (0, 2):
        task = _task(shown=shown)
        counts = np.bincount(task.train[1], minlength=30)
        assert (counts[task.withheld] == shown).all()
        assert (counts[~task.withheld] > 0).all()
        assert not task.withheld[task.held_out[1]].any()
        assert task.withheld.sum() == 10
    left = training.feature_task(task.train, task.held_out, task.withheld)
    assert not task.withheld[left.train[1]].any()
    assert len(left.train[1]) == (~task.withheld[task.train[1]]).sum() > 0


def test_without_a_gradient_the_law_is_exact():
    """Features of zero give rows no gradient: decay is all that moves them."""
    task = _task()
    dark = replace(task, train=(np.zeros_like(task.train[0]), task.train[1]))
    recipe = replace(SMALL, width=0, decay=3.0)
    (outcome,) = training.train_heads([dark], recipe, [0])
    assert outcome.spreads == pytest.approx(training.predicted_spreads(recipe), rel=1e-5)
    total = 3.0 * sum(recipe.rate(step) for step in range(recipe.steps))
    assert outcome.spreads[-1] == pytest.approx(np.exp(-total), rel=0.05)


def test_seeds_side_by_side_are_trained_as_if_alone():
    tasks, recipe = [_task(0), _task(1)], replace(SMALL, smoothing=0.1, decay=0.5)
    together = training.train_heads(tasks, recipe, [0, 1])
    for task, seed, found in zip(tasks, (0, 1), together, strict=True):
        (alone,) = training.train_heads([task], recipe, [seed])
        assert np.allclose(found.layer.W, alone.layer.W, atol=1e-3)
        assert found.spreads == pytest.approx(alone.spreads, rel=1e-2)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_at_the_minimum_with_decay_withheld_rows_are_one_row(epsilon):
    """The strictly convex loss, minimised by L-BFGS in float64: equal rows, and nobody wins."""
    rng = np.random.default_rng(3)
    C, d, n = 8, 6, 40
    X, y = rng.normal(size=(n, d)), rng.integers(0, C - 3, n)  # the last three are withheld
    targets = (1 - epsilon) * np.eye(C)[y] + epsilon / C

    def loss(flat):
        W = flat.reshape(C, d)
        logits = X @ W.T
        top = logits.max(axis=1, keepdims=True)
        p = np.exp(logits - top)
        total = p.sum(axis=1, keepdims=True)
        value = (np.log(total[:, 0]) + top[:, 0] - (targets * logits).sum(axis=1)).mean()
        gradient = (p / total - targets).T @ X / n
        return value + 0.005 * (W**2).sum(), (gradient + 0.01 * W).ravel()

    start = rng.normal(size=C * d)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-12, "ftol": 0})
    W = found.x.reshape(C, d)
    assert np.abs(W[-3:] - W[-1]).max() < 1e-6 < np.abs(start.reshape(C, d)[-3:] - W[-1]).max()
    assert np.abs(W[0] - W[1]).max() > 1e-2
    W[-3:] = W[-3:].mean(axis=0)
    assert training.never_win(SoftmaxLayer(W)).tolist() == [False] * 5 + [True] * 3


@pytest.mark.parametrize("rows", ["one norm", "nearest"])
def test_with_a_cure_every_class_wins(rows):
    recipe = replace(SMALL, width=2, decay=2.0, smoothing=0.1, rows=rows)
    free = training.examine([_task()], replace(recipe, rows="free"), [0])
    cured = training.examine([_task()], recipe, [0])
    assert free.lost[0] > 0
    assert cured.lost[0] == 0
    (outcome,) = training.train_heads([_task()], recipe, [0])
    W, b = outcome.layer.W.astype(float), outcome.layer.b.astype(float)
    power = 2 * b + (W**2).sum(axis=1)
    assert np.ptp(power) < 1e-5 * (W**2).sum(axis=1).max()
