"""Interior points and cutting planes against the simplex method's programme."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom.certifying.checker import Checker
from softgeom.layer import Ball, Box, SoftmaxLayer
from softgeom.problem import Problem, make_problem
from softgeom.proving import interior_point
from softgeom.proving.interior_point import walk_each
from softgeom.proving.lp import MarginProgramme
from softgeom.searching.look import look

NEARLY_ZERO = 1e-7  # best margins up to this may be zero in the simplex method's arithmetic


def crowded(seed: int = 0, d: int = 8, spread: float = 0.1) -> SoftmaxLayer:
    """150 outer rows and 60 mixtures of them: biases decide which of these win."""
    rng = np.random.default_rng(seed)
    outer = rng.normal(size=(150, d))
    mixtures = rng.dirichlet(np.full(30, 0.2), 60) @ outer[:30]
    rows = np.concatenate([outer, mixtures])
    b = rng.normal(scale=spread, size=210)
    return SoftmaxLayer(rows.astype(np.float32), b.astype(np.float32))


def walk(problem: Problem, classes: np.ndarray, rivals: int = 12):
    """From the anchor, with few rivals: others have to join."""
    start = np.broadcast_to(problem.anchor, (len(classes), problem.dimension))
    seen = look(problem, start, classes, strongest=rivals, enough=np.inf)
    return walk_each(problem, classes, list(start), list(seen.strongest))


def best_margin(problem: Problem, t: int) -> float:
    """By the simplex method, over everybody."""
    rows, others = problem.rows(slice(None), np.float64), np.delete(np.arange(problem.classes), t)
    programme = MarginProgramme(*problem.box)
    programme.add(others, rows[t] - rows[others], problem.b[t] - problem.b[others])
    return programme.solve()[1]


@pytest.mark.parametrize(
    "features", [Box(100.0), Box(1.0), Box(high=5.0, low=-0.3)], ids=["wide", "small", "lopsided"]
)
def test_signs_are_those_of_the_simplex_method(features):
    layer = crowded()
    problem, classes = make_problem(layer, features), np.arange(100, 210)
    proofs, points = walk(problem, classes)
    assert set(proofs) | set(points) == set(classes.tolist())
    assert not set(proofs) & set(points)
    assert min(len(proofs), len(points)) >= 10
    for t in classes[::2].tolist():
        assert (best_margin(problem, t) > 0) == (t in points)
    assert (Checker(layer, features).certify_many(list(points.values()), list(points)) > 0).all()
    assert all(bound <= 0 and t not in captors.rivals for t, (captors, bound) in proofs.items())
    assert max(len(captors.rivals) for captors, _ in proofs.values()) <= layer.dimension + 1


@pytest.mark.parametrize("share", [1e-3, -1e-3, 1e-5, -1e-5])
def test_margins_near_zero_take_float64(share, monkeypatch):
    """The best margin is set to a small share of the spread of biases, on either side of zero."""
    layer, t = crowded(1), 160
    free = best_margin(make_problem(layer, Box(100.0)), t)
    W, b = layer.W.astype(np.float64), layer.bias.astype(np.float64)
    b[t] += share * b.std() - free
    problem = make_problem(SoftmaxLayer(W, b), Box(100.0))
    proofs, points = walk(problem, np.array([t]))
    assert list(points if share > 0 else proofs) == [t]


def test_a_ball_is_searched_in_the_box_around_it_and_points_lie_in_the_ball():
    problem, classes = make_problem(crowded(2), Ball(3.0)), np.arange(100, 210)
    proofs, points = walk(problem, classes)
    assert proofs
    assert points
    assert max(np.linalg.norm(z) for z in points.values()) <= 3.0


def test_no_bias_no_walk_and_no_class_competes_with_itself():
    layer = SoftmaxLayer(crowded().W)
    assert walk(make_problem(layer, Box(100.0)), np.arange(210)) == ({}, {})  # 150 of them can win
    problem, t = make_problem(crowded(), Box(100.0)), 3
    proofs, points = walk_each(problem, np.array([t]), [problem.anchor], [np.arange(20)])
    assert best_margin(problem, t) > 0
    assert (list(points), proofs) == ([t], {})


def test_corrections_make_room_before_the_walk_has_ended():
    problem, early = make_problem(crowded(), Box(100.0)), 0
    for t in list(walk(problem, np.arange(150, 210))[0]):
        walking = interior_point._Walk(problem, t, problem.anchor, np.delete(np.arange(210), t))
        assert walking._step()
        while walking._value() <= 0:
            assert walking._step()
        raw = walking.y[: walking.k]
        has_room = raw @ walking.c > problem.support(-(raw @ walking.A))
        early += walking._certify() and not has_room
    assert early >= 5


def test_slacks_and_multipliers_keep_their_equations():
    """In float64, after every step; the residual of multipliers shrinks as the step says."""
    problem = make_problem(crowded(3), Box(100.0))
    walking = interior_point._Walk(problem, 170, problem.anchor, np.arange(100))
    walking.dtype = "float64"
    before = np.abs(walking._back(walking.y)).max()
    for _ in range(12):
        assert walking._step()
        m = walking.slack[: walking.k] + walking.lead
        np.testing.assert_allclose(m, m[0], atol=1e-9)
        faces = np.concatenate([walking.high - walking.z, walking.z - walking.low])
        np.testing.assert_allclose(walking.slack[walking.k :], faces, atol=1e-9)
        assert walking.slack.min() > 0
        assert walking.y.min() > 0
        assert walking.y[: walking.k].sum() == pytest.approx(1.0)
    assert np.abs(walking._back(walking.y)).max() < 1e-6 * before
    # Optimal now: value and lead agree, as the programme's strong duality says.
    assert walking._value() == pytest.approx(walking.lead.max(), abs=1e-4)


@settings(max_examples=25)
@given(
    st.integers(0, 1000),
    st.sampled_from(["equal rows", "dead columns", "two values", "huge bias", "one rival", "tiny"]),
)
def test_degenerate_layers_give_no_false_verdict(seed, flaw):
    layer = crowded(seed, d=3)
    W, b = layer.W.copy(), layer.bias.copy()
    if flaw == "equal rows":
        W[50:] = W[0]
    elif flaw == "dead columns":
        W[:, 1:] = 0.5
    elif flaw == "two values":
        W = np.sign(W)
    elif flaw == "huge bias":
        b[7] = 1e6
    elif flaw == "tiny":
        W, b = W * np.float32(1e-18), b * np.float32(1e-18)
    layer = SoftmaxLayer(W, b)
    problem, classes = make_problem(layer, Box(10.0)), np.arange(140, 210, 3)
    with np.errstate(all="ignore"):
        proofs, points = walk(problem, classes, rivals=1 if flaw == "one rival" else 12)
    assert not set(proofs) & set(points)
    for t in proofs:
        assert best_margin(problem, t) <= NEARLY_ZERO * max(1.0, float(np.abs(b).max()))
