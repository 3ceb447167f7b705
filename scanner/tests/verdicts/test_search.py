"""Ascent and looks; what a search clears, the programme clears."""

import highspy
import numpy as np
import pytest

from softgeom.examples import hard_layer, normal_layer, uniform_layer
from softgeom.layer import Ball, Box, Ellipsoid, SoftmaxLayer, Unbounded
from softgeom.problem import make_problem
from softgeom.proving.lp import (
    MarginProgramme,
    NearestPointProgramme,
    SolverError,
    chebyshev_radius,
)
from softgeom.proving.surround import (
    _polish_together,
    inverse_covariance,
    largest_entropy,
    surround,
)
from softgeom.searching.ascent import climb
from softgeom.searching.look import _largest, look


@pytest.mark.parametrize(
    "features",
    [Box(1.0), Unbounded(), Ellipsoid([1.0, 2.0, 0.5], [1.0, 0, 0], centred=True)],
    ids=lambda f: f.describe(),
)
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


def test_ascent_finds_what_one_look_does_not_and_surround_proves_what_is_planted():
    layer = hard_layer(3000, 128, planted=20)
    problem = make_problem(layer, Box(100.0))
    found = climb(problem, np.arange(2400, 2980))
    assert (found.margin[found.looks == 1] > 0).all()
    later = (found.margin > 0) & (found.looks > 1)
    assert later.sum() > 20
    assert (np.abs(found.Z) <= 100).all()
    layer = hard_layer(3000, 64, planted=20)
    problem = make_problem(layer, Box(100.0))
    proven = surround(problem, np.arange(2970, 3000))
    assert set(range(2980, 3000)) <= set(proven)
    assert all(bound <= 0 for _, bound in proven.values())


def inside() -> tuple[np.ndarray, ...]:
    """600 rows, 30 mixtures of some of them, and largest-entropy weights of those."""
    rng = np.random.default_rng(5)
    W = rng.normal(size=(600, 40)).astype(np.float32)
    own = np.concatenate([rng.dirichlet(np.ones(120), 30) @ W[:120], 3 * W[:2]]).astype(np.float32)
    precision = inverse_covariance(W)
    return W, own, largest_entropy(W, own, np.zeros(600, np.float32), precision), precision


def residual(weights: np.ndarray, W: np.ndarray, own: np.ndarray) -> np.ndarray:
    return weights.sum(axis=1)[:, None] * own.astype(float) - weights @ W.astype(float)


def test_weights_polished_together_hold_each_class():
    """By the equation; a class outside the hull keeps a residual."""
    W, own, p, precision = inside()
    weights = _polish_together(W, own, p, precision, lambda which, *_: np.zeros(len(which), bool))
    v = residual(weights, W, own)
    assert np.abs(v[:30]).max() < 1e-8
    assert weights[:30].min() >= 0
    assert not (np.abs(v[30:]).max(axis=1) < 0.1).any()


def test_polishing_ends_for_each_class_once_its_residual_fits_into_its_room():
    W, own, p, precision = inside()
    own, p, asked = own[:30], p[:30], []

    def has_room(which: np.ndarray, weights: np.ndarray, v: np.ndarray) -> np.ndarray:
        assert np.allclose(residual(weights, W, own[which]), v, atol=1e-9)
        asked.append(which.tolist())
        return which % 3 == len(asked) - 1

    weights = _polish_together(W, own, p, precision, has_room)
    assert asked == [[t for t in range(30) if t % 3 >= rounds] for rounds in range(3)]
    residuals = np.abs(residual(weights, W, own)).max(axis=1)
    assert (weights[::3] == np.where(p > 1e-9 * p.max(axis=1, keepdims=True), p, 0)[::3]).all()
    assert residuals[::3].min() > 100 * residuals[1::3].max() > 100 * residuals[2::3].max()


def test_certified_bounds_of_polished_classes_are_near_those_without_a_residual():
    """Ending early gives away at most a tenth of the room (and rounding)."""
    layer = hard_layer(3000, 64, planted=20)
    problem = make_problem(SoftmaxLayer(layer.W, layer.bias + np.float32(5)), Box(100.0))
    for t, (captors, bound) in surround(problem, np.arange(2980, 3000)).items():
        room = captors.weights @ (problem.b[captors.rivals] - problem.b[t]) / captors.weights.sum()
        assert bound <= -0.85 * room


def test_surround_survives_classes_on_an_edge_of_the_hull():
    """There the weights crowd on two rivals and their Gram matrix loses its rank."""
    rng = np.random.default_rng(2)
    W = rng.normal(size=(300, 80))
    W[:2] *= 4
    share = rng.uniform(size=(60, 1))
    W[200:260] = share * W[0] + (1 - share) * W[1]
    problem = make_problem(SoftmaxLayer(W.astype(np.float32)), Ball(5.0))
    assert all(bound <= 0 for _, bound in surround(problem, np.arange(200, 260)).values())


def test_programme_and_nearest_point_agree_and_dual_weights_have_the_value():
    """In one dimension a box and a ball are the same set."""
    layer = uniform_layer(15, 1, seed=3)
    W, b = layer.W.astype(float), layer.bias.astype(float)
    for t in range(15):
        others = np.delete(np.arange(15), t)
        box = MarginProgramme(np.array([-2.0]), np.array([2.0]))
        ball = NearestPointProgramme(1, 2.0)
        for programme in (box, ball):
            programme.add(others, W[t] - W[others], b[t] - b[others])
        assert (box.solve()[1] > 1e-6) == (ball.solve()[1] > 0)
    layer = uniform_layer(30, 3, seed=5)
    W, b, high = layer.W.astype(float), layer.bias.astype(float), np.full(3, 4.0)
    for t in range(0, 30, 5):
        others = np.delete(np.arange(30), t)
        programme = MarginProgramme(-high, high)
        for some in (others[:5], others[5:]):
            programme.add(some, W[t] - W[some], b[t] - b[some])
        z, value, weights = programme.solve()
        assert len(weights) == 29
        assert weights.sum() == pytest.approx(1.0)
        rows = programme.rivals
        assert ((W[t] - W[rows]) @ z + b[t] - b[rows]).min() == pytest.approx(value, abs=1e-7)
        dual = 4.0 * np.abs(weights @ (W[t] - W[rows])).sum() + weights @ (b[t] - b[rows])
        assert dual == pytest.approx(value, abs=1e-6)


def test_chebyshev_radius_of_a_known_cone_and_solvers_that_give_up():
    """The first quadrant cut by |x| <= 1; the ball may leave the box, as in the paper."""
    square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    for method in ("simplex", "ipm"):
        radius, centre = chebyshev_radius(square, None, 0, -np.ones(2), np.ones(2), method=method)
        np.testing.assert_allclose(centre, [1.0, 1.0], atol=1e-6)
        assert radius == pytest.approx(1.0, abs=1e-6)
    inside, _ = chebyshev_radius(
        np.vstack([square, [[0, 0]]]), np.array([0, 0, 0, 0, -1.0]), 4, -np.ones(2), np.ones(2)
    )
    assert inside < 0
    layer = uniform_layer(400, 40)
    with pytest.raises(SolverError, match="HiGHS ended with status Time limit"):
        chebyshev_radius(layer.W, layer.b, 0, -np.ones(40), np.ones(40), time_limit=0.0)
    W = layer.W.astype(np.float64)
    programme = MarginProgramme(-np.ones(40), np.ones(40), time_limit=0.0)
    programme.add(np.arange(1, 400), W[0] - W[1:], np.zeros(399))
    with pytest.raises(SolverError, match="HiGHS ended with status Time limit"):
        programme.solve()


def test_a_programme_that_goes_round_in_a_circle_starts_anew(monkeypatch):
    """As explaining a class of PP-OCRv4 did for ever; here its first run may not pivot at all."""
    run, runs = highspy.Highs.run, []

    def stuck_at_first(self):
        if not runs:
            self.setOptionValue("simplex_iteration_limit", 0)
        runs.append(run(self))
        self.setOptionValue("simplex_iteration_limit", 1000)
        return runs[-1]

    D = np.random.default_rng(0).normal(size=(30, 4))
    found = []
    for _ in range(2):
        programme = MarginProgramme(-np.ones(4), np.ones(4))
        programme.add(np.arange(30), D, np.zeros(30))
        found.append(programme.solve()[1])
        monkeypatch.setattr(highspy.Highs, "run", stuck_at_first)
    assert len(runs) == 2
    assert found[0] == pytest.approx(found[1])


@pytest.mark.parametrize(
    "features",
    [
        Box(3.0, low=-0.3),
        Ball(2.0),
        Unbounded(),
        Ellipsoid([1.0, 2.0, 0.5], [1.0, 0, 0], centred=True),
    ],
    ids=lambda f: f.describe(),
)
def test_a_device_finds_what_numpy_finds(features, monkeypatch):
    pytest.importorskip("torch")
    from softgeom.searching import device

    monkeypatch.setattr(device, "BLOCK_BYTES", 1)  # many tiles
    problem = make_problem(uniform_layer(700, 3, seed=1), features)
    classes = np.arange(0, 700, 5)
    on = device.Device(problem, "cpu")
    Z = problem.reach(problem.rows(classes) - problem.mean.astype(np.float32))
    seen, expected = on.look(Z, classes, strongest=7), look(problem, Z, classes, strongest=7)
    np.testing.assert_allclose(seen.margin, expected.margin, atol=1e-4)
    np.testing.assert_array_equal(seen.losers, expected.losers)
    np.testing.assert_array_equal(np.sort(seen.strongest), np.sort(expected.strongest))
    found, host = climb(problem, classes, device=on), climb(problem, classes)
    # the few near ties are left to the proofs
    assert ((found.margin > 0) == (host.margin > 0)).mean() > 0.98
    np.testing.assert_allclose(found.Z, problem.project(found.Z), rtol=1e-6)


def test_a_device_sends_and_waits_once_a_look_and_once_a_climb(monkeypatch):
    """Counting what travels: no tile's answer, and the corners of the box once."""
    pytest.importorskip("torch")
    from softgeom.searching import device

    class Counting(device.Device):
        sent = received = 0

        def _put(self, array):
            self.sent += 1
            return super()._put(array)

        def _get(self, tensor):
            self.received += 1
            return super()._get(tensor)

    monkeypatch.setattr(device, "BLOCK_BYTES", 1)  # many tiles
    problem = make_problem(uniform_layer(700, 3, seed=1), Box(3.0, low=-0.3))
    classes, on = np.arange(0, 700, 5), Counting(problem, "cpu")
    start = np.zeros((2, 3), np.float32), np.arange(2), np.array([[2, 3], [4, 5]])
    on.ascend(*start, steps=1)
    sent, received = on.sent, on.received
    on.look(problem.reach(problem.rows(classes)), classes, strongest=7)
    assert (on.sent - sent, on.received - received) == (2, 1)
    on.ascend(*start, steps=50)
    assert (on.sent - sent, on.received - received) == (4, 2)


def test_one_class_and_half_precision_on_a_device():
    pytest.importorskip("torch")
    from softgeom.searching.device import Device

    one = make_problem(SoftmaxLayer([[1.0, 2.0]]), Box(1.0))
    assert climb(one, np.array([0]), device=Device(one, "cpu")).margin[0] == np.inf
    half = make_problem(SoftmaxLayer(normal_layer(300, 5).W.astype(np.float16)), Box(100.0))
    on = Device(half, "cpu")
    assert on.W.element_size() == 2, "a plain layer is not widened as a whole"
    found, host = climb(half, np.arange(300), device=on), climb(half, np.arange(300))
    assert ((found.margin > 0) == (host.margin > 0)).mean() > 0.98
