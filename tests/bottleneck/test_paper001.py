"""Paper 001's own algorithms: Braid Reflect line by line, its programme and its approximate test
against what is proven, and total orders against the count of regions.
"""

import itertools

import numpy as np
import pytest

from papers.bottleneck import count_regions
from papers.bottleneck.paper001 import (
    braid_reflect,
    compare_with_programme,
    declare_on_hull,
    example_search,
    follow_search,
    leads,
    mirror_error,
    quality,
    reflect_step,
)
from softgeom.asking.ask import ask
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import Witness
from softgeom.examples import normal_layer, uniform_layer
from softgeom.layer import SoftmaxLayer, Unbounded
from softgeom.proving.lp import chebyshev_radius
from softgeom.scanner import scan


def reflect_as_published(
    layer: SoftmaxLayer, t: int, patience: int
) -> tuple[bool, int, np.ndarray]:
    """Algorithms 1 and 2 of the paper, line by line, for one class."""
    W, b = layer.W, layer.bias
    x = W[t].copy()
    for step in range(patience + 1):
        i = int(np.argmax(W @ x + b))
        if i == t:
            return True, step, x
        if step == patience:
            break
        w = W[t] - W[i]
        w_prime = w / np.linalg.norm(w)
        d = w_prime @ x
        x = x - 2 * (d + (b[t] - b[i]) / np.linalg.norm(w)) * w_prime
    return False, patience, x


@pytest.mark.parametrize("bias", [False, True])
def test_braid_reflect_is_the_published_algorithm(bias):
    layer = normal_layer(40, 3, bias=bias, seed=4)
    layer = SoftmaxLayer(layer.W.astype(float), None if layer.b is None else layer.b.astype(float))
    ours = braid_reflect(layer, patience=30, bound=1e9)
    for t in range(40):
        won, steps, x = reflect_as_published(layer, t, 30)
        assert (bool(ours.won[t]), int(ours.steps[t])) == (won, steps)
        np.testing.assert_allclose(ours.x[t], x, rtol=1e-6, atol=1e-9)
    assert ours.won.any()
    assert not ours.won.all()
    # from where it stopped, those that won stay where they are and the others go on
    on = braid_reflect(layer, patience=30, bound=1e9, start=ours.x)
    assert not on.steps[ours.won].any()
    assert on.steps[~ours.won].all()


def test_a_reflection_swaps_two_logits_and_a_win_outside_the_box_does_not_count():
    rng = np.random.default_rng(0)
    x, w_t, w_i = rng.normal(size=(3, 5, 4))
    (b_t, b_i), zero = rng.normal(size=(2, 5)), np.zeros(5)
    before, after = (
        np.einsum("nd,nd->n", w_t - w_i, at) + b_t - b_i
        for at in (x, reflect_step(x, w_t, w_i, b_t, b_i))
    )
    np.testing.assert_allclose(after, -before)
    mirrored = reflect_step(x, w_t, w_i, zero, zero)
    np.testing.assert_allclose(np.linalg.norm(mirrored, axis=1), np.linalg.norm(x, axis=1))
    np.testing.assert_array_equal(reflect_step(x, w_t, w_t, b_t, b_i), x)
    layer = SoftmaxLayer([[1.0], [0.0]], [-50.0, 0.0])
    found = braid_reflect(layer, bound=10.0)
    assert found.won[0]
    assert not found.inside[0]


def test_following_one_search_gives_what_the_batch_gives():
    rng = np.random.default_rng(1)
    W, b = rng.uniform(-1, 1, (12, 3)), rng.uniform(-1, 1, 12)
    batch = braid_reflect(SoftmaxLayer(W, b), patience=9)
    for t in range(12):
        search = follow_search(W, b, t, 9)
        assert len(search.winners) == batch.steps[t]
        np.testing.assert_allclose(search.points[-1], batch.x[t], atol=1e-12)
    search = example_search(np.random.default_rng(0))
    assert len(search.winners) > 1
    for step in range(len(search.winners)):  # each reverses the lead, and is a mirror
        before, after = leads(search, step)
        assert 0 < after == pytest.approx(-before)
        assert mirror_error(search, step) < 1e-12


def test_approximate_test_never_errs_on_one_side_and_misses_on_the_other():
    layer = normal_layer(300, 8, seed=0)
    found = scan(layer, features=Unbounded())
    truth = np.array([isinstance(f.evidence, Witness) for f in found.findings])
    judged = quality(declare_on_hull(layer, directions=50), truth)
    assert judged.precision == 1.0
    assert 0.3 < judged.recall < 1.0
    assert np.isnan(quality(np.zeros(2, bool), np.zeros(2, bool)).precision)


def test_the_papers_programme_says_what_is_certified_and_its_centre_wins():
    layer = uniform_layer(60, 4, seed=1)
    table = compare_with_programme(scan(layer), range(60))
    box = np.full(layer.dimension, 100.0)
    for t in range(60):
        radius, centre = chebyshev_radius(layer.W, layer.b, t, -box, box)
        assert radius == pytest.approx(table.chebyshev[t])
        assert (np.argmax(layer.logits(centre)) == t) == (radius > 0)
    assert table.agree.all()
    assert table.bounded.all()
    assert (table.chebyshev[table.verdict == "unargmaxable"] <= 0).all()


@pytest.mark.parametrize("bias", [False, True])
def test_total_orders_are_as_many_as_regions(bias):
    rng = np.random.default_rng(1)
    layer = SoftmaxLayer(rng.normal(size=(5, 2)), rng.normal(size=5) if bias else None)
    orders = [Order([[i] for i in p]) for p in itertools.permutations(range(5))]
    found = ask(layer, orders, features=Unbounded())
    assert found.counts["possible"] == count_regions(5, 2, bias)
    assert found.counts["undecided"] == 0
