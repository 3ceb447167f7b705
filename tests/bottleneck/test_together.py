"""Captives proven together: warm bases against programmes of their own, in step against one at a
time.
"""

import numpy as np
import pytest

from softgeom.bottleneck.certifying.checker import Checker
from softgeom.bottleneck.certifying.hull import certify_captivity
from softgeom.bottleneck.problem import make_problem
from softgeom.bottleneck.proving import lockstep, together
from softgeom.bottleneck.proving.bases import Bases
from softgeom.bottleneck.proving.cutting import cut_each
from softgeom.bottleneck.proving.lp import MarginProgramme
from softgeom.bottleneck.proving.together import prove_together
from softgeom.bottleneck.searching.look import look
from softgeom.layer import Ball, Box, SoftmaxLayer, Unbounded


def head(d: int = 10, seed: int = 0) -> tuple[SoftmaxLayer, np.ndarray]:
    """300 outer classes, 60 copies of a dead row up to rounding, 60 mixtures; all of the latter
    have a low bias.
    """
    rng = np.random.default_rng(seed)
    outer = rng.normal(size=(300, d))
    dead = np.zeros((60, d)) + rng.normal(scale=1e-8, size=(60, d))
    mixtures = rng.dirichlet(np.ones(40), 60) @ outer[:40]
    b = np.concatenate([rng.normal(scale=0.02, size=300), np.full(60, -0.2), np.full(60, -0.3)])
    return SoftmaxLayer(
        np.concatenate([outer, dead, mixtures]).astype(np.float32), b.astype(np.float32)
    ), np.arange(300, 420)


@pytest.mark.parametrize(("low", "high"), [(-100.0, 100.0), (-0.28, 100.0), (0.0, 3.0)])
def test_warm_bases_have_the_values_of_programmes_of_their_own(low: float, high: float) -> None:
    rng = np.random.default_rng(1)
    rows, bias = rng.normal(size=(90, 6)), rng.normal(scale=0.3, size=90)
    rows[7] *= 4  # far out: it wins, unless it has to beat itself
    corners = np.full(6, low), np.full(6, high)
    bases, signs = Bases(rows, bias, *corners), set()
    for n in range(40):
        inside = n == 5  # a class that is among the shared rivals does not compete with itself
        own = rows[7] if inside else rng.normal(size=6) * rng.uniform(0, 1.5)
        b = bias[7] if inside else -0.1
        vertex = bases.solve(own, b, 7 if inside else None)
        programme = MarginProgramme(own, b, *corners)
        rivals = np.delete(np.arange(90), 7) if inside else np.arange(90)
        programme.add(rivals, rows[rivals], bias[rivals])
        value = programme.solve()[1]
        assert vertex is not None
        signs.add(value > 0)
        if value > 0:  # left at the first point that shows it
            margin = (own - rows[rivals]) @ vertex.z + b - bias[rivals]
            assert 1e-6 < vertex.value <= value + 1e-7
            assert margin.min() == pytest.approx(vertex.value, abs=1e-7)
        else:
            assert vertex.value == pytest.approx(value, abs=1e-7)
            assert len(vertex.weights) <= 7
            assert vertex.weights.min() >= -1e-9
    assert signs == {True, False}


@pytest.mark.parametrize("group", [3, 64])
def test_in_step_the_vertices_are_those_of_one_at_a_time(group: int, monkeypatch) -> None:
    """Some classes are among the shared rivals, one of them in the first basis; bases are inverted
    anew on the way.
    """
    monkeypatch.setattr(lockstep, "GROUP", group)
    monkeypatch.setattr(lockstep, "REFRESH", 5)
    rng = np.random.default_rng(2)
    rows, bias = rng.normal(size=(90, 6)), rng.normal(scale=0.3, size=90)
    rows[7] *= 4
    corners = np.full(6, -0.5), np.full(6, 100.0)

    def fresh() -> Bases:
        bases = Bases(rows, bias, *corners)
        assert bases.solve(rows.mean(axis=0), -1.0) is not None
        return bases

    own, b, itself = (
        rng.normal(size=(40, 6)) * rng.uniform(0, 1.5, (40, 1)),
        np.full(40, -0.1),
        np.full(40, -1),
    )
    first = fresh().basic
    for n, place in enumerate([7, int(first[first < 90][0]), 30]):
        own[n], b[n], itself[n] = rows[place], bias[place], place
    found = dict(lockstep.solve_in_step(fresh(), own, b, itself))
    assert sorted(found) == list(range(40))
    for n, vertex in found.items():
        alone = fresh().solve(own[n], b[n], int(itself[n]) if itself[n] >= 0 else None)
        assert vertex is not None
        assert alone is not None
        assert (vertex.value > 0) == (alone.value > 0)
        rivals = np.delete(np.arange(90), itself[n]) if itself[n] >= 0 else np.arange(90)
        if vertex.value > 0:
            assert (
                (own[n] - rows[rivals]) @ vertex.z + b[n] - bias[rivals]
            ).min() == pytest.approx(vertex.value, abs=1e-7)
        else:
            assert vertex.value == pytest.approx(alone.value, abs=1e-7)
            assert set(vertex.positions) <= set(rivals)
            v = own[n] - vertex.weights @ rows[vertex.positions]
            right = (
                np.maximum(corners[0] * v, corners[1] * v).sum()
                + b[n]
                - vertex.weights @ bias[vertex.positions]
            )
            assert right == pytest.approx(vertex.value, abs=1e-7)
    assert {vertex.value > 0 for vertex in found.values()} == {True, False}


def test_rivals_that_join_mend_a_basis_to_that_of_all() -> None:
    rng = np.random.default_rng(3)
    rows, bias = rng.normal(size=(120, 6)), rng.normal(scale=0.3, size=120)
    corners, signs = (np.full(6, -2.0), np.full(6, 100.0)), set()
    for _ in range(30):
        own = rng.normal(size=6) * rng.uniform(0, 1.5)
        bases = Bases(rows[:40], bias[:40], *corners)
        bases.solve(own, -0.1, best=True)
        bases.add(rows[40:], bias[40:])
        mended = bases.improve(own, -0.1)
        whole = Bases(rows, bias, *corners).solve(own, -0.1, best=True)
        assert mended is not None
        assert whole is not None
        signs.add(whole.value > 0)
        if whole.value > 0:
            assert mended.value == pytest.approx(whole.value, abs=1e-7)
        else:  # it ends with the first weights that prove captivity
            assert whole.value - 1e-7 <= mended.value <= 0
    assert signs == {True, False}


@pytest.mark.parametrize("features", [Box(100.0), Box(5.0, low=0.0), Ball(20.0)])
def test_a_shared_basis_proves_the_dead_and_the_mixtures_with_few_captors(features) -> None:
    layer, classes = head()
    problem = make_problem(layer, features)
    proven, points = prove_together(problem, classes)
    assert set(proven) == set(classes.tolist())
    assert not points
    for t, (captors, bound) in proven.items():
        assert len(captors.rivals) <= layer.dimension + 1
        assert bound == pytest.approx(
            certify_captivity(layer, features, t, captors.rivals, captors.weights), rel=1e-6
        )
        assert bound <= 0


def test_no_class_that_can_win_is_proven(monkeypatch) -> None:
    # the median of all classes lies among those that win
    monkeypatch.setattr(together, "TRIED", 200)
    layer, _ = head()
    problem = make_problem(layer, Box(100.0))
    proven, points = prove_together(problem, np.arange(420))
    rows, corners = layer.W.astype(np.float64), (np.full(10, -100.0), np.full(10, 100.0))
    assert proven
    assert points
    assert set(points) <= set(range(300))
    for t in list(proven)[::4]:
        programme, others = (
            MarginProgramme(rows[t], problem.b[t], *corners),
            np.delete(np.arange(420), t),
        )
        programme.add(others, rows[others], problem.b[others])
        assert programme.solve()[1] <= 1e-9


@pytest.mark.parametrize("features", [Box(100.0), Ball(20.0)])
def test_without_bias_cutting_planes_decide_every_class(features) -> None:
    """Mixtures of different rows: no simplex holds two of them, but cutting planes find each its
    own.
    """
    rng = np.random.default_rng(4)
    outer = rng.normal(size=(400, 12))
    mixtures = np.array(
        [rng.dirichlet(np.ones(13)) @ outer[rng.choice(400, 13, replace=False)] for _ in range(40)]
    )
    layer = SoftmaxLayer(np.concatenate([outer, mixtures]).astype(np.float32))
    classes = np.arange(360, 440)
    problem = make_problem(layer, features)
    starts = look(
        problem, problem.reach(problem.rows(classes)), classes, strongest=24, enough=np.inf
    ).strongest
    proofs, points = cut_each(problem, classes, list(starts))
    assert set(proofs) | set(points) == set(classes.tolist())
    assert set(range(400, 440)) <= set(proofs)
    assert all(bound == 0 for _, bound in proofs.values())
    assert (Checker(layer, features).certify_many(list(points.values()), list(points)) > 0).all()


def test_few_classes_wide_layers_and_homogeneous_problems_are_left_alone(monkeypatch) -> None:
    layer, classes = head()
    assert prove_together(make_problem(layer, Box(100.0)), classes[: together.FEWEST - 1]) == (
        {},
        {},
    )
    assert prove_together(make_problem(layer, Unbounded()), classes) == ({}, {})
    monkeypatch.setattr(together, "MOST_FEATURES", 9)
    assert prove_together(make_problem(layer, Box(100.0)), classes) == ({}, {})


@pytest.mark.parametrize("flaw", ["equal rows", "dead columns", "no bias", "two classes"])
def test_degenerate_layers_stop_nothing(flaw: str) -> None:
    layer, classes = head()
    W, b = layer.W.copy(), layer.bias.copy()
    if flaw == "equal rows":
        W[300:] = 0
    elif flaw == "dead columns":
        W[:, 3:6] = 1.0
    elif flaw == "no bias":
        b[:] = 0
    else:
        W, b, classes = W[:2], b[:2], np.arange(2)
    proven, _ = prove_together(
        make_problem(SoftmaxLayer(W, b), Box(100.0)),
        np.resize(classes, 32) if len(W) < 9 else classes,
    )
    assert all(bound <= 0 for _, bound in proven.values())
