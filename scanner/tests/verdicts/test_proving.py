"""Each proof route on shared layers, against programmes of HiGHS; and what routes are made of."""

import highspy
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom import routes
from softgeom.certifying.checker import Checker
from softgeom.certifying.hull import certify_unargmaxable
from softgeom.examples import hard_layer, uniform_layer
from softgeom.layer import Ball, Box, SoftmaxLayer, Unbounded
from softgeom.problem import Points, Problem, Proofs, make_problem
from softgeom.proving import dual_simplex, shared_basis
from softgeom.proving.caratheodory import reduce_support
from softgeom.proving.cheapest import CheapestWeights
from softgeom.proving.dual_simplex import SharedProgramme, solve_batch
from softgeom.proving.interior_point import walk_each
from softgeom.proving.lp import (
    MarginProgramme,
    NearestPointProgramme,
    SolverError,
    chebyshev_radius,
)
from softgeom.proving.shared_basis import prove_together
from softgeom.proving.surround import surround
from softgeom.routes import Start, make_start
from softgeom.scanner import scan
from softgeom.searching.look import look

NEARLY_ZERO = 1e-7  # best margins up to this may be zero in the simplex method's arithmetic


def head(seed: int = 0, d: int = 10) -> SoftmaxLayer:
    """300 outer classes, 60 copies of one row but for rounding, 60 mixtures with a low bias."""
    rng = np.random.default_rng(seed)
    outer = rng.normal(size=(300, d))
    dead = np.zeros((60, d)) + rng.normal(scale=1e-8, size=(60, d))
    mixtures = rng.dirichlet(np.ones(40), 60) @ outer[:40]
    W = np.concatenate([outer, dead, mixtures])
    b = np.concatenate([rng.normal(scale=0.02, size=300), np.full(60, -0.2), np.full(60, -0.3)])
    return SoftmaxLayer(W.astype(np.float32), b.astype(np.float32))


def crowded(seed: int = 0, d: int = 8) -> SoftmaxLayer:
    """150 outer rows and 60 mixtures of them: biases decide which of these win."""
    rng = np.random.default_rng(seed)
    outer = rng.normal(size=(150, d))
    mixtures = rng.dirichlet(np.full(30, 0.2), 60) @ outer[:30]
    rows, b = np.concatenate([outer, mixtures]), rng.normal(scale=0.1, size=210)
    return SoftmaxLayer(rows.astype(np.float32), b.astype(np.float32))


def edge() -> SoftmaxLayer:
    """60 of 300 rows between two that stick out: weights crowd on these."""
    rng = np.random.default_rng(2)
    W = rng.normal(size=(300, 20))
    W[:2] *= 4
    share = rng.uniform(size=(60, 1))
    W[200:260] = share * W[0] + (1 - share) * W[1]
    return SoftmaxLayer(W.astype(np.float32))


def with_flaw(flaw: str, seed: int = 0) -> SoftmaxLayer:
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
    elif flaw == "no bias":
        b[:] = 0
    elif flaw == "tiny":
        W, b = W * np.float32(1e-18), b * np.float32(1e-18)
    return SoftmaxLayer(W, b)


def walk(problem: Problem, classes: np.ndarray, rivals: int = 12) -> tuple[Proofs, Points]:
    """From the anchor, with few rivals: others have to join."""
    start = np.broadcast_to(problem.anchor, (len(classes), problem.dimension))
    seen = look(problem, start, classes, strongest=rivals, enough=np.inf)
    return walk_each(problem, classes, list(start), list(seen.strongest))


def together(problem: Problem, classes: np.ndarray) -> tuple[Proofs, Points]:
    start = shared_basis.shared_basis(problem, classes)
    return prove_together(problem, classes, start) if start else ({}, {})


ROUTES = {
    "surround": lambda problem, classes: (surround(problem, classes), {}),
    "together": together,
    "interior": walk,
}


def best_margin(problem: Problem, t: int) -> float:
    """Over everybody, by HiGHS or least squares; above 0 where the class can win."""
    rows, others = problem.rows(slice(None), np.float64), np.delete(np.arange(problem.classes), t)
    if problem.is_box:
        programme = MarginProgramme(*problem.box)
    else:
        programme = NearestPointProgramme(problem.dimension, problem.radius)
    programme.add(others, rows[t] - rows[others], problem.b[t] - problem.b[others])
    return programme.solve()[1]


# layer, open classes, features, and how many each route proves at least
CASES = {
    "dead and mixtures": (head(), np.arange(300, 420), Box(100.0), (120, 120, 120)),
    "dead and mixtures, one-sided": (head(), np.arange(300, 420), Box(5.0, low=0.0), (0, 120, 120)),
    "dead and mixtures, ball": (head(), np.arange(300, 420), Ball(20.0), (0, 120, 120)),
    "crowded": (crowded(), np.arange(100, 210), Box(100.0), (0, 0, 10)),
    "crowded, small box": (crowded(), np.arange(100, 210), Box(1.0), (0, 0, 10)),
    "crowded, lopsided": (crowded(), np.arange(100, 210), Box(5.0, low=-0.3), (0, 0, 10)),
    "crowded, ball": (crowded(2), np.arange(100, 210), Ball(3.0), (0, 0, 1)),
    "edge": (edge(), np.arange(200, 260), Ball(5.0), (0, 0, 0)),
    "planted": (hard_layer(600, 32, planted=20), np.arange(570, 600), Box(100.0), (15, 0, 0)),
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("case", CASES)
def test_a_route_proves_only_what_a_programme_confirms(case, route):
    layer, classes, features, least = CASES[case]
    problem = make_problem(layer, features)
    with np.errstate(all="ignore"):
        proofs, points = ROUTES[route](problem, classes)
    assert len(proofs) >= least[list(ROUTES).index(route)]
    for t, (blocking, bound) in proofs.items():
        alone = certify_unargmaxable(layer, features, t, blocking.rivals, blocking.weights)
        assert 0 >= bound == pytest.approx(alone, rel=1e-6)
        assert t not in blocking.rivals
        assert route == "surround" or len(blocking.rivals) <= layer.dimension + 1
    tolerance = NEARLY_ZERO if problem.is_box else 0
    for t in list(proofs)[::6]:
        assert best_margin(problem, t) <= tolerance
    if route != "interior":
        return
    assert not set(proofs) & set(points)
    if "crowded" in case:
        assert set(proofs) | set(points) == set(classes.tolist())
        assert len(points) >= 10
    won = Checker(layer, features).certify_many(list(points.values()), list(points))
    assert (won > 0).all()


@settings(max_examples=30)
@given(
    st.integers(0, 1000),
    st.sampled_from(
        ["equal rows", "dead columns", "two values", "huge bias", "no bias", "tiny", "one rival"]
    ),
)
def test_degenerate_layers_give_no_false_verdict(seed, flaw):
    layer = with_flaw(flaw, seed)
    problem, classes = make_problem(layer, Box(10.0)), np.arange(140, 210, 3)
    with np.errstate(all="ignore"):
        walked = walk(problem, classes, rivals=1 if flaw == "one rival" else 12)
        found = [walked, together(problem, classes)]
    assert not set(walked[0]) & set(walked[1])
    for proofs, _ in found:
        for t, (_, bound) in proofs.items():
            assert bound <= 0
            assert best_margin(problem, t) <= NEARLY_ZERO * max(1.0, np.abs(layer.bias).max())


# ---- Weights of largest entropy


# ---- Interior points


@pytest.mark.parametrize("share", [1e-3, -1e-3, 1e-5, -1e-5])
def test_margins_near_zero_take_float64(share):
    """The best margin is set to a small share of the spread of biases, on either side of zero."""
    layer, t = crowded(1), 160
    free = best_margin(make_problem(layer, Box(100.0)), t)
    W, b = layer.W.astype(np.float64), layer.bias.astype(np.float64)
    b[t] += share * b.std() - free
    proofs, points = walk(make_problem(SoftmaxLayer(W, b), Box(100.0)), np.array([t]))
    assert list(points if share > 0 else proofs) == [t]


def test_no_bias_no_walk_and_no_class_competes_with_itself():
    layer = SoftmaxLayer(crowded().W)
    assert walk(make_problem(layer, Box(100.0)), np.arange(210)) == ({}, {})  # 150 of them can win
    problem, t = make_problem(crowded(), Box(100.0)), 3
    proofs, points = walk_each(problem, np.array([t]), [problem.anchor], [np.arange(20)])
    assert best_margin(problem, t) > 0
    assert (list(points), proofs) == ([t], {})


# ---- One programme for many classes


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


def test_some_problems_share_no_start_and_one_that_fails_loses_nothing(monkeypatch, caplog):
    layer, classes = head(), np.arange(300, 420)
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


# ---- Programmes of one class


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
        D, c = W[t] - W[programme.rivals], b[t] - b[programme.rivals]
        assert (D @ z + c).min() == pytest.approx(value, abs=1e-7)
        dual = 4.0 * np.abs(weights @ D).sum() + weights @ c
        assert dual == pytest.approx(value, abs=1e-6)


def test_chebyshev_radius_of_a_known_cone_and_solvers_that_give_up():
    """The first quadrant cut by |x| <= 1; the ball may leave the box, as in the paper."""
    square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    one, many = np.ones(2), np.ones(40)
    for method in ("simplex", "ipm"):
        radius, centre = chebyshev_radius(square, None, 0, -one, one, method=method)
        np.testing.assert_allclose(centre, [1.0, 1.0], atol=1e-6)
        assert radius == pytest.approx(1.0, abs=1e-6)
    five, b = np.vstack([square, [[0, 0]]]), np.array([0, 0, 0, 0, -1.0])
    assert chebyshev_radius(five, b, 4, -one, one)[0] < 0
    layer = uniform_layer(400, 40)
    with pytest.raises(SolverError, match="HiGHS ended with status Time limit"):
        chebyshev_radius(layer.W, layer.b, 0, -many, many, time_limit=0.0)


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


# ---- Fewer points, the same mean (Carathéodory)


def cloud(n: int, D: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points around the origin, their worth, and weights of very different sizes."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)), rng.normal(loc=0.2, size=n), rng.uniform(size=n) ** 6


@settings(max_examples=120)
@given(st.integers(0, 10**6), st.sampled_from(["apart", "grid", "thirds", "near grid", "copies"]))
def test_the_mean_and_the_worth_stay_with_at_most_one_point_more_than_dimensions(seed, kind):
    """Weights come back as they are where a pivot is what rounding left of zero."""
    rng = np.random.default_rng(seed)
    n, D = int(rng.integers(2, 60)), int(rng.integers(1, 12))
    A, c, weights = cloud(n, D, seed)
    if kind != "apart":
        weights = rng.integers(0, 3, n) + np.eye(n)[0]
    if kind == "copies":
        A[n // 2 :] = A[: n - n // 2] + 1e-12 * rng.normal(size=(n - n // 2, D))
    elif kind != "apart":
        A = rng.integers(-2, 3, (n, D)) / (3.0 if kind == "thirds" else 1.0)
        A += (kind == "near grid") * 1e-9 * rng.normal(size=(n, D))
    few, room = reduce_support(A, c, weights), 1e-8 if kind == "apart" else 1e-6
    assert (few >= 0).all()
    assert (few is weights and kind != "apart") or np.count_nonzero(few) <= D + 1
    assert few.sum() == pytest.approx(weights.sum(), rel=1e-9)
    assert np.allclose(few @ A, weights @ A, rtol=0, atol=room * np.abs(A).max() * weights.sum())
    assert few @ c >= weights @ c - room * weights.sum()
    if kind == "apart":
        mean = np.append(weights @ A, weights.sum())
        best = scipy.optimize.linprog(-c, A_eq=np.vstack([A.T, np.ones(n)]), b_eq=mean)
        assert few @ c <= -best.fun + 1e-6 * weights.sum()


@pytest.mark.parametrize("seed", range(5))
def test_the_cheapest_weights_cost_what_scipy_finds(seed):
    """Twice, as the second programme starts where the first ended; removed rivals have none."""
    rng = np.random.default_rng(seed)
    W, b = rng.normal(size=(300, 4)), rng.normal(size=300)
    W[0], b[0], rivals, room = 0.1, -1.0, np.arange(1, 300), 0.5
    programme = CheapestWeights(SoftmaxLayer(W, b), 0, rivals, room)
    for _ in range(2):
        cost = rng.uniform(size=299) * rng.integers(0, 2, 299)
        removed = rng.choice(299, 30, replace=False)
        weights = programme.solve(cost, removed)
        assert not weights[removed].any()
        assert np.count_nonzero(weights) <= 6
        assert np.allclose([weights.sum(), *weights @ W[rivals]], [1.0, *W[0]], atol=1e-9)
        assert weights @ b[rivals] - b[0] >= room - 1e-9
        found = scipy.optimize.linprog(
            cost,
            A_ub=b[0] + room - b[None, rivals],
            b_ub=[0.0],
            A_eq=np.vstack([W[rivals].T, np.ones(299)]),
            b_eq=[*W[0], 1.0],
            bounds=[(0, 0 if i in removed else 1) for i in range(299)],
        )
        assert cost @ weights == pytest.approx(found.fun, abs=1e-9)
