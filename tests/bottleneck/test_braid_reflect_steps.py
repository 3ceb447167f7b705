"""Single searches of Braid Reflect, followed step by step."""

import numpy as np
import pytest

from softgeom.bottleneck import SoftmaxLayer, braid_reflect
from softgeom.bottleneck.paper001 import example_search, follow_search, leads, mirror_error


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
