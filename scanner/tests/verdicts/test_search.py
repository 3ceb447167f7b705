"""Looks and climbs."""

import numpy as np
import pytest

from softgeom.examples import hard_layer, normal_layer
from softgeom.layer import Box, Ellipsoid, Unbounded
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
