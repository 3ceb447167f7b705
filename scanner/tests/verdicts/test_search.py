"""Looks and climbs."""

import numpy as np
import pytest

from softgeom.examples import hard_layer, normal_layer
from softgeom.layer import Ball, Box, Ellipsoid, SoftmaxLayer, Unbounded
from softgeom.problem import make_problem
from softgeom.searching.ascent import climb
from softgeom.searching.look import _largest, look

CENTRED = Ellipsoid([1.0, 2.0, 0.5], [1.0, 0, 0], centred=True)


@pytest.mark.parametrize("features", [Box(1.0), Unbounded(), CENTRED], ids=lambda f: f.describe())
def test_a_look_is_the_plain_product(features, monkeypatch):
    import sys

    # many tiles
    monkeypatch.setattr(sys.modules["softgeom.searching.look"], "TILE_BYTES", 1)
    problem = make_problem(normal_layer(700, 3, bias=True), features)
    classes = np.arange(0, 700, 50)
    Z = np.random.default_rng(1).normal(size=(len(classes), problem.dimension)).astype(np.float32)
    seen = look(problem, Z, classes, strongest=5, enough=np.inf)
    Y = Z.astype(float) @ problem.rows(slice(None), np.float64).T + problem.b
    for n, t in enumerate(classes):
        rivals = np.delete(np.arange(700), t)
        order = rivals[np.argsort(-Y[n, rivals])]
        assert seen.margin[n] == pytest.approx(Y[n, t] - Y[n, order[0]], abs=1e-4)
        assert set(seen.strongest[n]) == set(order[:5])


def test_effective_problems_have_the_layers_logits_and_nobody_is_its_own_rival():
    problem = make_problem(SoftmaxLayer([[1.0, 0.0], [0.0, 0.25]]), Box(1.0))
    seen = look(problem, np.array([[1.0, 1.0]]), np.array([0]))
    assert (seen.margin[0], len(seen.losers)) == (0.75, 0)
    layer = normal_layer(20, 3, bias=True)
    u = np.array([0.3, -0.2, 0.5])
    norm = Ellipsoid([1.0, 2.0, 0.5], [1.0, -1.0, 0.2], centred=True)
    problem = make_problem(layer, norm)
    x = norm.bias + norm.gain * (u - u.mean())
    np.testing.assert_allclose(
        problem.rows(slice(None), np.float64) @ u + problem.b, layer.logits(x), atol=1e-12
    )
    cone = make_problem(layer, Unbounded())
    np.testing.assert_allclose(
        cone.rows(slice(None), np.float64) @ np.append(u, 1.0), layer.logits(u), atol=1e-12
    )
    np.testing.assert_allclose(cone.lift(np.append(u, 0.5), 1.0), u / 0.5)


@pytest.mark.parametrize("features", [Box(4.0, low=-1.0), Ball(4.0)], ids=lambda f: f.kind)
def test_points_far_out_lie_in_the_region_and_on_its_rim(features):
    """Along one direction or many; a class at the mean row, which has none, stays at the origin."""
    problem = make_problem(normal_layer(5, 2), features)
    directions = np.array([[3.0, 0.0], [0.0, 0.0], [-1e-20, 1e-20]])
    rim = [[4.0, 0.0], [0.0, 0.0], [-1.0, 4.0] if problem.is_box else [-np.sqrt(8), np.sqrt(8)]]
    for found in (
        problem.reach(directions),
        np.array([problem.reach(direction) for direction in directions]),
    ):
        np.testing.assert_allclose(found, rim, rtol=2e-6)
        assert features.contains(found).all()


@pytest.mark.parametrize("width", [7, 95, 96, 101, 1000])
@pytest.mark.parametrize("values", [3, 10**6])
def test_the_largest_entries_are_found_through_groups(width, values):
    """With three values nearly all are tied; barred classes are minus infinity."""
    rng = np.random.default_rng(width)
    Y = rng.integers(values, size=(20, width)).astype(np.float32)
    Y[rng.random(Y.shape) < 0.3] = -np.inf
    for k in (1, 3, 7):
        picked = _largest(Y, k)
        assert picked.shape == (20, k)
        assert all(len(set(row)) == k for row in picked.tolist())
        found = np.sort(np.take_along_axis(Y, picked, axis=1), axis=1)
        np.testing.assert_array_equal(found, np.sort(Y, axis=1)[:, -k:])


def test_ascent_finds_what_one_look_does_not():
    layer = hard_layer(3000, 128, planted=20)
    problem = make_problem(layer, Box(100.0))
    found = climb(problem, np.arange(2400, 2980))
    assert (found.margin[found.steps == 0] > 0).all()
    later = (found.margin > 0) & (found.steps > 0)
    assert later.sum() > 20
    assert (np.abs(found.Z) <= 100).all()
