"""Classes proven from a shared basis: every vertex against a linear programme of its own."""

import numpy as np
import pandas as pd
import pytest

from softgeom import routes, scanner
from softgeom.certifying.hull import certify_unargmaxable
from softgeom.layer import Ball, Box, SoftmaxLayer, Unbounded
from softgeom.problem import Points, Problem, Proofs, make_problem
from softgeom.proving import dual_simplex, shared_basis
from softgeom.proving.dual_simplex import SharedProgramme, solve_batch
from softgeom.proving.lp import MarginProgramme
from softgeom.proving.shared_basis import prove_together
from softgeom.routes import Start, make_start
from softgeom.scanner import scan


def head(d: int = 10, seed: int = 0) -> tuple[SoftmaxLayer, np.ndarray]:
    """300 outer classes, 60 copies of one row but for rounding, 60 mixtures with a low bias."""
    rng = np.random.default_rng(seed)
    outer = rng.normal(size=(300, d))
    dead = np.zeros((60, d)) + rng.normal(scale=1e-8, size=(60, d))
    mixtures = rng.dirichlet(np.ones(40), 60) @ outer[:40]
    W = np.concatenate([outer, dead, mixtures])
    b = np.concatenate([rng.normal(scale=0.02, size=300), np.full(60, -0.2), np.full(60, -0.3)])
    return SoftmaxLayer(W.astype(np.float32), b.astype(np.float32)), np.arange(300, 420)


@pytest.mark.parametrize(("low", "high"), [(-100.0, 100.0), (-0.28, 100.0), (0.0, 3.0)])
@pytest.mark.parametrize("group", [3, 64])
def test_vertices_are_those_of_programmes_of_their_own(low, high, group, monkeypatch):
    """Some classes are among the shared rivals; bases are inverted anew on the way."""
    monkeypatch.setattr(dual_simplex, "GROUP", group)
    rng = np.random.default_rng(1)
    rows, bias = rng.normal(size=(90, 6)), rng.normal(scale=0.3, size=90)
    rows[7] *= 4  # far out: it wins, unless it has to beat itself
    corners = np.full(6, low), np.full(6, high)
    own, b = rng.normal(size=(40, 6)) * rng.uniform(0, 1.5, (40, 1)), np.full(40, -0.1)
    itself = np.full(40, -1)
    for n, place in enumerate([7, 30]):
        own[n], b[n], itself[n] = rows[place], bias[place], place
    shared = SharedProgramme(rows, bias, *corners)
    middle = dict(solve_batch(shared, rows.mean(axis=0)[None], -np.ones(1), -np.ones(1, int)))[0]
    signs = set()
    for first in (None, middle.basic):
        found = dict(solve_batch(shared, own, b, itself, first))
        assert sorted(found) == list(range(40))
        for n, vertex in found.items():
            basis = shared.first if first is None else first
            assert (vertex is None) == (itself[n] in basis)
            if vertex is None:
                continue
            rivals = np.delete(np.arange(90), itself[n]) if itself[n] >= 0 else np.arange(90)
            programme = MarginProgramme(*corners)
            programme.add(rivals, own[n] - rows[rivals], b[n] - bias[rivals])
            value = programme.solve()[1]
            signs.add(value > 0)
            assert set(vertex.positions) <= set(rivals)
            if value > 0:  # left at the first point that shows it
                margin = (own[n] - rows[rivals]) @ vertex.z + b[n] - bias[rivals]
                assert 0 < vertex.value <= value + 1e-7
                assert margin.min() == pytest.approx(vertex.value, abs=1e-7)
            else:
                assert vertex.value == pytest.approx(value, abs=1e-7)
                assert len(vertex.weights) <= 7
                assert vertex.weights.min() >= -1e-9
    assert signs == {True, False}


def together(problem: Problem, classes: np.ndarray) -> tuple[Proofs, Points]:
    start = shared_basis.shared_basis(problem, classes)
    return prove_together(problem, classes, start) if start else ({}, {})


@pytest.mark.parametrize("features", [Box(100.0), Box(5.0, low=0.0), Ball(20.0)])
def test_a_shared_basis_proves_the_dead_and_the_mixtures_with_few_captors(features):
    layer, classes = head()
    problem = make_problem(layer, features)
    proven, points = together(problem, classes)
    assert set(proven) == set(classes.tolist())
    assert not points
    for t, (captors, bound) in proven.items():
        assert len(captors.rivals) <= layer.dimension + 1
        alone = certify_unargmaxable(layer, features, t, captors.rivals, captors.weights)
        assert 0 >= bound == pytest.approx(alone, rel=1e-6)


def test_no_class_that_can_win_is_proven(monkeypatch):
    # the median of all classes lies among those that win; these are to be rivals, too
    monkeypatch.setattr(shared_basis, "NEAREST", 0.1)
    monkeypatch.setattr(shared_basis, "FEWEST", 200)
    layer, _ = head()
    problem = make_problem(layer, Box(100.0))
    proven, points = together(problem, np.arange(420))
    rows, corners = layer.W.astype(np.float64), (np.full(10, -100.0), np.full(10, 100.0))
    assert proven
    assert points
    assert set(points) <= set(range(300))
    for t in list(proven)[::4]:
        programme, others = MarginProgramme(*corners), np.delete(np.arange(420), t)
        programme.add(others, rows[t] - rows[others], problem.b[t] - problem.b[others])
        assert programme.solve()[1] <= 1e-9


def test_some_problems_share_no_start_and_one_that_fails_loses_nothing(monkeypatch, caplog):
    layer, classes = head()
    boxed = make_problem(layer, Box(100.0))
    assert make_start(boxed, classes, 0) == Start(surrounds=True, basis=None)
    monkeypatch.setattr(routes, "surround", lambda *given: {})
    assert make_start(boxed, classes, 0).basis is not None
    assert make_start(boxed, classes[: shared_basis.FEWEST - 1], 0) == Start()
    assert make_start(make_problem(layer, Unbounded()), classes, 0) == Start()
    with monkeypatch.context() as wide:
        wide.setattr(shared_basis, "BLOCK_BYTES", 8 * 12 * 11**2 - 1)
        assert make_start(boxed, classes, 0) == Start()
    verdicts = scan(layer).table.verdict.tolist()
    monkeypatch.setattr(routes, "shared_basis", lambda *given: 1 // 0)
    assert scan(layer).table.verdict.tolist() == verdicts
    assert "the shared start failed (ZeroDivisionError" in caplog.text


def test_blocks_share_one_start_and_prove_the_same_whatever_their_size(monkeypatch):
    layer, _ = head()
    sampled, surrounding = [], shared_basis._surrounding
    monkeypatch.setattr(
        shared_basis, "_surrounding", lambda *given: sampled.append(1) or surrounding(*given)
    )
    # the first route would prove them all
    monkeypatch.setattr(routes, "surround", lambda *given: {})
    whole = scan(layer)
    monkeypatch.setattr(scanner, "DECIDE_TOGETHER", 16)
    parts = scan(layer)
    assert len(sampled) == 2
    # what the search finds of the others depends on its block
    proven = whole.table[whole.table.method == "together"]
    assert len(proven) >= 120
    pd.testing.assert_frame_equal(proven, parts.table[parts.table.method == "together"])
    assert whole.table.verdict.equals(parts.table.verdict)


@pytest.mark.parametrize("flaw", ["equal rows", "dead columns", "no bias", "two classes"])
def test_degenerate_layers_stop_nothing(flaw):
    layer, classes = head()
    W, b = layer.W.copy(), layer.bias.copy()
    if flaw == "equal rows":
        W[300:] = 0
    elif flaw == "dead columns":
        W[:, 3:6] = 1.0
    elif flaw == "no bias":
        b[:] = 0
    else:
        W, b, classes = W[:2], b[:2], np.resize([0, 1], 32)
    proven, _ = together(make_problem(SoftmaxLayer(W, b), Box(100.0)), classes)
    assert all(bound <= 0 for _, bound in proven.values())
