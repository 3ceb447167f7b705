"""Newton's ascent: what it finds wins, captors hold in fractions, it finds nearly all that
programmes find, and nothing stops it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from softgeom.bottleneck.certifying.hull import certify_captivity
from softgeom.bottleneck.problem import make_problem
from softgeom.bottleneck.proving.lp import MarginProgramme
from softgeom.bottleneck.searching import newton
from softgeom.bottleneck.searching.newton import newton_ascent
from softgeom.layer import Ball, Box, SoftmaxLayer


def crowded(d: int = 8, classes: int = 160, seed: int = 0) -> SoftmaxLayer:
    """Rows on a sphere and some inside it, with biases: some win in small regions only, some not at
    all.
    """
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(classes, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    W[-classes // 4 :] *= rng.uniform(0.1, 0.7, size=(W[-classes // 4 :].shape[0], 1))
    return SoftmaxLayer(
        W.astype(np.float32), rng.normal(scale=0.15, size=classes).astype(np.float32)
    )


def best_margin(layer: SoftmaxLayer, t: int, low: np.ndarray, high: np.ndarray) -> float:
    rows, others = layer.W.astype(np.float64), np.delete(np.arange(layer.classes), t)
    programme = MarginProgramme(rows[t], float(layer.bias[t]), low, high)
    programme.add(others, rows[others], layer.bias[others].astype(np.float64))
    return float(programme.solve()[1])


@pytest.mark.parametrize(
    "features", [Box(100.0), Box(4.0, low=0.0), Ball(6.0)], ids=lambda f: f.describe()
)
def test_it_finds_nearly_every_winner_and_never_a_captive(features) -> None:
    layer = crowded()
    problem, classes = make_problem(layer, features), np.arange(layer.classes)
    start = np.tile(problem.box[0] * 0.4 + problem.box[1] * 0.6, (layer.classes, 1))
    found, captors = newton_ascent(problem, classes, start)
    values = np.array([best_margin(layer, t, *problem.box) for t in classes])
    won = found.margin > 0
    assert not (won & (values < 1e-6)).any()
    assert not set(captors) & set(classes[won].tolist())
    if problem.is_box:  # a winner of the box around a ball may lose in the ball
        assert won[values > 1e-3].mean() > 0.97
    assert won.sum() > 40
    assert (~won).any()
    assert features.contains(found.Z.astype(np.float64)).all()
    logits = found.Z.astype(np.float64) @ layer.W.T.astype(np.float64) + layer.bias
    own = logits[classes, classes].copy()
    logits[classes, classes] = -np.inf
    np.testing.assert_allclose(found.margin, own - logits.max(axis=1), atol=1e-4)
    for t, rivals in enumerate(found.rivals):
        assert t not in rivals
        assert logits[t].argmax() in rivals


def test_groups_and_their_order_change_nothing(monkeypatch) -> None:
    layer = crowded(seed=1)
    problem, classes = make_problem(layer, Box(50.0)), np.arange(40)
    start, first = np.zeros((40, 8)), np.where(classes % 3, newton.HOT, newton.COLD)
    whole, held = newton_ascent(problem, classes, start, first=first)
    monkeypatch.setattr(newton, "GROUP_BYTES", 4 * layer.classes * 7)
    parts, held_apart = newton_ascent(problem, classes[::-1].copy(), start, first=first[::-1])
    np.testing.assert_array_equal(whole.margin > 0, parts.margin[::-1] > 0)
    assert set(held) == set(held_apart)
    np.testing.assert_allclose(
        whole.margin, parts.margin[::-1], atol=0.1 * np.abs(whole.margin).max()
    )


def test_a_start_that_wins_is_kept() -> None:
    layer = crowded()
    problem = make_problem(layer, Box(100.0))
    corner = np.where(layer.W[:1] > 0, 100.0, -100.0)  # on the faces, where the barrier is infinite
    t = int((corner @ layer.W.T + layer.bias).argmax())
    found, captors = newton_ascent(problem, np.array([t]), corner)
    np.testing.assert_array_equal(found.Z, corner.astype(np.float32))
    assert found.margin[0] > 0
    assert found.steps[0] == 0
    assert not captors


@pytest.mark.parametrize(
    "features", [Box(100.0), Box(4.0, low=0.0), Ball(6.0)], ids=lambda f: f.describe()
)
def test_captors_hold_in_fractions_and_nearly_every_captive_has_some(features) -> None:
    """The weights at a minimum above zero: made exact they imprison, whatever programmes say; few
    captives lie too near to winning.
    """
    layer = crowded(classes=400, seed=2)
    problem, classes = make_problem(layer, features), np.arange(300, 400)
    _, captors = newton_ascent(problem, classes, np.full((100, 8), 1e-3))
    for t, few in captors.items():
        assert t not in few.rivals
        assert len(few.rivals) <= newton.HEAVIEST * (layer.dimension + 1)
        weights = [Fraction(w) for w in few.weights.tolist()]
        assert certify_captivity(layer, features, t, few.rivals, np.array(weights)) == 0
    if problem.is_box:
        captive = {t for t in classes.tolist() if best_margin(layer, t, *problem.box) < -1e-2}
        assert len(captive) > 40
        assert len(captive - set(captors)) <= 2
    assert len(captors) > 40


def test_weights_that_leave_a_residual_are_not_taken_for_captors(monkeypatch) -> None:
    """Without corrections the weights near a minimum have room in the bias but miss the row: over
    this box that proves nothing.
    """
    layer = crowded(classes=400, seed=2)
    problem, classes = make_problem(layer, Box(1e6)), np.arange(300, 400)
    start = np.zeros((100, 8))
    assert newton_ascent(problem, classes, start)[1]
    monkeypatch.setattr(newton, "CORRECTIONS", 0)
    assert not newton_ascent(problem, classes, start)[1]


def test_a_direction_solves_newtons_equation_by_automatic_differentiation(monkeypatch) -> None:
    monkeypatch.setattr(newton, "HEAVIEST", 1000)  # nobody is lost in the sum
    monkeypatch.setattr(newton, "FORGET", 1000.0)
    layer, rng = crowded(seed=2), np.random.default_rng(2)
    problem = make_problem(layer, Box(2.0))
    group = newton._Group(
        problem, np.array([3, 150]), rng.uniform(-1.5, 1.5, size=(2, 8)), newton.COLD
    )
    rows, bias, low, high = map(
        torch.tensor, (problem.rows(slice(None), np.float64), problem.b, *problem.box)
    )
    for n, t in enumerate(group.classes.tolist()):
        T, others = float(group.T[n]), [i for i in range(layer.classes) if i != t]

        def smoothed(z, T=T, t=t, others=others):
            leads = (rows[others] - rows[t]) @ z + bias[others] - bias[t]
            return (
                T * torch.logsumexp(leads / T, 0) - T / 16 * torch.log((high - z) * (z - low)).sum()
            )

        z = torch.from_numpy(group.Z[n])
        gradient = torch.func.grad(smoothed)(z)
        expected = -torch.linalg.solve(torch.func.hessian(smoothed)(z), gradient)
        step = group._newton_step(n)
        np.testing.assert_allclose(step.move, expected, rtol=1e-3)
        assert step.decrement == pytest.approx(float(-gradient @ expected) / T, rel=1e-3)


@settings(max_examples=100, deadline=None)
@example(d=2, classes=3, kinds=1, scale=1.0, seed=457)  # temperatures below the last bit of a lead
@given(
    d=st.integers(1, 5),
    classes=st.integers(2, 12),
    kinds=st.integers(1, 4),
    scale=st.sampled_from([0.0, 1e-6, 1.0, 200.0]),
    seed=st.integers(0, 1000),
)
def test_degenerate_rows_stop_nothing(
    d: int, classes: int, kinds: int, scale: float, seed: int
) -> None:
    """Equal rows, no differences at all, one feature, starts in corners."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(kinds, d))[rng.integers(kinds, size=classes)] * scale
    layer = SoftmaxLayer(
        rows.astype(np.float32), rng.integers(-1, 2, size=classes).astype(np.float32)
    )
    problem = make_problem(layer, Box(3.0, low=-1.0))
    which = np.arange(classes)
    found, captors = newton_ascent(problem, which, rng.choice([-1.0, 3.0], size=(classes, d)))
    assert np.isfinite(found.Z).all()
    assert problem.features.contains(found.Z.astype(np.float64)).all()
    logits = found.Z.astype(np.float64) @ layer.W.T.astype(np.float64) + layer.bias
    for t in which[found.margin > 1e-3 * max(scale, 1.0)]:
        assert logits[t, t] > np.delete(logits[t], t).max()
    assert not set(captors) & set(which[found.margin > 0].tolist())
