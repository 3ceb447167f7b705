"""The plane of two features examined, and single searches followed."""

from __future__ import annotations

import numpy as np
import pytest

from softgeom.bottleneck import SoftmaxLayer, braid_reflect
from softgeom.bottleneck.drawing.examine import examine_plane
from softgeom.bottleneck.paper001 import example_search, follow_search, leads, mirror_error


@pytest.mark.parametrize("bias", [False, True])
def test_a_random_layer_is_what_the_theory_says(bias):
    rng = np.random.default_rng(3)
    W, b = rng.integers(-99, 100, (5, 2)), rng.integers(-99, 100, 5) if bias else None
    seen = examine_plane(W, b)
    assert seen["polygons"] == seen["visited"] == seen["formula"]
    assert seen["bounded"] == seen["added_by_bias"]
    assert seen["corollary_2"] == seen["classes"] == 5
    assert seen["same_rankings"]
    assert seen["tiles"]


def test_a_square_has_fewer_polygons_than_a_layer_in_general_position():
    seen = examine_plane([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    assert seen["polygons"] == seen["visited"] == 8 < seen["formula"]


def test_following_one_search_gives_what_the_batch_gives():
    rng = np.random.default_rng(1)
    W, b = rng.uniform(-1, 1, (12, 3)), rng.uniform(-1, 1, 12)
    batch = braid_reflect(SoftmaxLayer(W, b), patience=9)
    for t in range(12):
        search = follow_search(W, b, t, 9)
        assert len(search.winners) == batch.steps[t]
        np.testing.assert_allclose(search.points[-1], batch.x[t], atol=1e-12)


def test_a_step_reverses_the_lead_and_is_a_mirror():
    search = example_search(np.random.default_rng(0))
    assert len(search.winners) > 1
    for step in range(len(search.winners)):
        before, after = leads(search, step)
        assert before < 0
        assert after == pytest.approx(-before)
        assert mirror_error(search, step) < 1e-12
