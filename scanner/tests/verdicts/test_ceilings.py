"""Ceilings and floors against independent solvers, feasible points and cases known by hand; behind
a softmax, a scale, a soft cap or sigmoids.
"""

import math
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.optimize import minimize

from softgeom.ceiling import Ceilings, ceilings, floor
from softgeom.ceiling.bound import LIBRARY, Certifier, Target
from softgeom.ceiling.ceilings import GAP
from softgeom.certifying import container
from softgeom.layer import Ball, Box, Ellipsoid, SoftmaxLayer, Unbounded
from softgeom.readout import Readout

DIMENSION = 3
SETS = {
    "box": Box(2.0),
    "uneven box": Box((1.0, 4.0, 0.5), low=(-0.3, 0.0, -2.0)),
    "ball": Ball(1.5),
    "layer norm": Ellipsoid.layer_norm([1.0, 0.5, 2.0], [0.1, 0.0, -0.2]),
    "rms norm": Ellipsoid.rms_norm([1.0, -0.5, 2.0]),
    "unbounded": Unbounded(),
}
READOUTS = {
    "scale": Readout(scale=0.3),
    "large scale": Readout(scale=4.0),
    "cap": Readout(soft_cap=3.0),
    "scale and cap": Readout(scale=2.5, soft_cap=1.5),
    "sigmoid": Readout("threshold", probability="sigmoid"),
    "scaled sigmoid": Readout("threshold", scale=0.5, soft_cap=4.0, probability="sigmoid"),
}
by_set = pytest.mark.parametrize("name", SETS)


def draw_layer(rng: np.random.Generator, classes: int = 7) -> SoftmaxLayer:
    W = rng.normal(size=(classes, DIMENSION)) * rng.choice([0.3, 1.0, 3.0])
    W[rng.integers(classes)] = W.mean(axis=0)  # one inside the others
    return SoftmaxLayer(W, rng.normal(size=classes))


def draw_points(rng: np.random.Generator, name: str, count: int) -> np.ndarray:
    """Points of a set in the coordinates of evidence."""
    features = SETS[name]
    if isinstance(features, Box):
        low, high = features.bounds(DIMENSION)
        return rng.uniform(low, high, (count, DIMENSION))
    directions = rng.normal(size=(count, DIMENSION))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    radius = getattr(features, "radius", 30.0)
    return directions * radius * 0.999 * rng.uniform(0, 1, (count, 1)) ** 0.3


def log_probabilities(layer: SoftmaxLayer, features, Z: np.ndarray) -> np.ndarray:
    Y = layer.logits(features.features_at(Z)[0])
    return Y - np.logaddexp.reduce(Y, axis=1, keepdims=True)


def best_by_scipy(layer: SoftmaxLayer, features, t: int, start: np.ndarray) -> float:
    """``max log p_t`` by SciPy: L-BFGS-B in a box, SLSQP in a ball."""

    def loss(z):
        return -log_probabilities(layer, features, z[None])[0, t]

    if isinstance(features, Box):
        bounds = np.stack(features.bounds(DIMENSION), axis=1)
        return -float(minimize(loss, start, bounds=bounds, method="L-BFGS-B").fun)
    if isinstance(features, Unbounded):
        return -float(minimize(loss, start, method="BFGS").fun)
    inside = {"type": "ineq", "fun": lambda z: features.radius**2 - z @ z}
    return -float(minimize(loss, start, constraints=inside, method="SLSQP").fun)


@by_set
def test_no_feasible_point_is_above_a_ceiling_and_a_solver_comes_close(name):
    rng = np.random.default_rng(list(SETS).index(name))
    for _ in range(3):
        layer = draw_layer(rng)
        found = ceilings(layer, features=SETS[name], gap=0.01)
        assert found.verify()
        log_p = log_probabilities(layer, SETS[name], draw_points(rng, name, 400)).max(axis=0)
        assert (np.log(found.ceiling) >= log_p).all()
        assert (found.reached <= found.ceiling).all()
        for t in range(layer.classes):
            best = best_by_scipy(layer, SETS[name], t, np.full(DIMENSION, 0.01))
            assert math.exp(best) <= found.ceiling[t] * (1 + 1e-7)
            # nobody's point is much better than ours
            assert best <= math.log(found.reached[t]) + 0.02


@pytest.mark.parametrize("name", ["box", "ball", "layer norm"])
@pytest.mark.parametrize("readout", READOUTS.values(), ids=READOUTS)
def test_no_point_exceeds_a_ceiling_behind_a_readout(readout, name, tmp_path):
    rng, features = np.random.default_rng(5), SETS[name]
    layer = draw_layer(rng, classes=9)
    found = ceilings(layer, features=features, readout=readout)

    def probabilities(Z):
        x, _ = features.features_at(Z)
        return readout.probabilities(x @ layer.W.T + layer.bias)

    assert (probabilities(draw_points(rng, name, 20_000)).max(axis=0) <= found.ceiling).all()
    own = probabilities(np.asarray(found.points, float)[found.at]).diagonal()
    assert (found.reached <= own * (1 + 1e-12)).all()
    if readout.soft_cap is None or readout.probability == "sigmoid":
        # what is reached and what is proven agree to the gap that was asked for
        assert (found.ceiling <= found.reached * 1.04 + 1e-12).all()
    else:
        assert np.allclose(found.ceiling[found.ceiling <= 0.5], 0.5)
    found.save(tmp_path / "c")
    again = Ceilings.load(tmp_path / "c", layer)
    assert again.readout == readout
    assert np.array_equal(again.ceiling, found.ceiling)


def test_a_cap_can_raise_a_probability_and_not_above_one_half():
    """Five rows of a Gemma 2: at 29% without the cap, class 4 has 42% of the model's own output."""
    rows = np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [0.45, 0.45]], np.float32)
    layer, norm = SoftmaxLayer(100 * rows), Ellipsoid.rms_norm(np.ones(2))
    capped = ceilings(layer, [4], features=norm, readout=Readout(soft_cap=30.0))
    plain = ceilings(layer, [4], features=norm)
    turn = np.linspace(0, 2 * np.pi, 20_001)
    X = np.sqrt(2) * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    own = Readout(soft_cap=30.0).probabilities(X @ layer.W.T)[:, 4].max()
    assert plain.ceiling[0] < own <= capped.ceiling[0]
    assert capped.reached[0] <= own


def test_blocking_classes_and_floors_follow_a_scale():
    layer, four = draw_layer(np.random.default_rng(5)), Readout(scale=4.0)
    scaled, targets = SoftmaxLayer(layer.W * 4, layer.bias * 4), [{0: 0.5, 1: 0.5}, [2, 5]]
    by_hand, found = (
        Certifier(*given).blocking_ceiling(6, [0, 3], [0.5, 0.5])
        for given in ((scaled, Box(2.0)), (layer, Box(2.0), four))
    )
    assert found == pytest.approx(by_hand, rel=1e-9)
    by_hand = floor(scaled, targets, features=Box(0.5))
    found = floor(layer, targets, features=Box(0.5), readout=four)
    assert found["attained"].to_numpy() == pytest.approx(by_hand["attained"].to_numpy(), abs=0.01)
    assert (found["floor"] <= by_hand["attained"]).all()


def test_in_a_box_every_class_comes_within_the_gap_however_stiff():
    """Few rivals share the probability at the best points, and many coordinates are at a bound."""
    rng = np.random.default_rng(7)
    for _ in range(3):
        W = 30 * rng.normal(size=(40, 6))
        W[:10] = W[10:].mean(axis=0) + 0.05 * W[:10]
        bounds = ceilings(SoftmaxLayer(W, rng.normal(size=40)), features=Box(3.0))
        assert (bounds.ceiling <= bounds.reached * math.exp(GAP)).all()


@by_set
def test_any_point_and_any_blocking_classes_prove_a_true_bound(name):
    """Points that are far from optimal, outside the set or absurd. Of blocking classes the residual
    counts: without s_X(r) about half of the bounds would be wrong.
    """
    rng = np.random.default_rng(10 + list(SETS).index(name))
    below, classes, at = 0, np.tile(np.arange(7), 6), np.repeat(np.arange(6), 7)
    for _ in range(20):
        layer = draw_layer(rng)
        Z = rng.normal(size=(6, DIMENSION)) * rng.choice([0.0, 0.1, 1.0, 30.0, 1e4], (6, 1))
        log_p = log_probabilities(layer, SETS[name], draw_points(rng, name, 2000)).max(axis=0)
        certifier = Certifier(layer, SETS[name])
        ceiling, reached = certifier.ceilings(Z, classes, at)
        assert (np.log(ceiling) >= log_p[classes]).all()
        assert (reached[~SETS[name].contains(Z)[at]] == 0).all()
        for _ in range(3):
            t, *rivals = rng.permutation(7)[: rng.integers(2, 7)].tolist()
            bound = certifier.blocking_ceiling(t, rivals, rng.uniform(0.1, 1, len(rivals)))
            assert math.log(bound) >= log_p[t]
            below += bound < 1 - 1e-6
    assert below > 20 or name == "unbounded"  # where any residual is too much


@pytest.mark.parametrize("name", [name for name in SETS if name != "unbounded"])
def test_floors_of_distributions(name):
    rng = np.random.default_rng(20 + list(SETS).index(name))
    for _ in range(4):
        layer = draw_layer(rng, classes=9)
        p = rng.dirichlet(np.ones(9))
        shares = np.stack([p / p.sum(), np.isin(np.arange(9), [0, 3, 5]) / 3, np.eye(9)[2]])
        targets = [dict(enumerate(shares[0])), [0, 3, 5], [2]]
        found = floor(layer, targets, features=SETS[name], gap=0.01)
        assert (found.floor <= found.attained + 1e-9).all()
        assert found.of_radius.isna().all() if "box" in name else (found.of_radius <= 1).all()
        # a target with an entropy that only touches zero within the gap proves nothing: 0
        assert ((found.attained - found.floor <= 0.02) | (found.floor == 0)).all()
        log_p = log_probabilities(layer, SETS[name], draw_points(rng, name, 2000))
        for q, bound in zip(shares, found.floor, strict=True):
            there = q > 0
            divergence = (q[there] * (np.log(q[there]) - log_p[:, there])).sum(axis=1)
            assert (bound <= divergence).all()


def test_ceilings_known_by_symmetry():
    """Vertices of a simplex and their mean: by symmetry 1 / (k + 1), reached at the origin."""
    for k in (2, 3, 6):
        W = np.vstack([np.linalg.svd(np.eye(k) - 1 / k)[0][:, : k - 1], np.zeros(k - 1)])
        found = ceilings(SoftmaxLayer(W), [k], features=Unbounded())
        assert 1 / (k + 1) <= found.ceiling[0] == pytest.approx(1 / (k + 1), rel=1e-4)
        assert found.reached[0] == pytest.approx(1 / (k + 1), rel=1e-4)
    # two rivals either side, each with a bias of log 3 more: 1 / (1 + 2 * 3) at the middle
    layer = SoftmaxLayer([[1.0], [-1.0], [0.0]], [math.log(3), math.log(3), 0.0])
    for features in (Box(5.0), Unbounded()):
        found = ceilings(layer, [2], features=features, gap=1e-4)
        assert found.ceiling[0] == pytest.approx(1 / 7, rel=1e-4)
    proven = Certifier(layer, Unbounded()).blocking_ceiling(2, [0, 1], [1.0, 1.0])
    assert proven == pytest.approx(1 / 7, rel=1e-9)


def test_points_that_were_moved_prove_the_truth_and_damaged_blocks_are_done_again(tmp_path):
    rng = np.random.default_rng(3)
    layer = draw_layer(rng, classes=30)
    first = ceilings(layer, checkpoint=tmp_path)
    (block, *_) = sorted(tmp_path.glob("block-*.safetensors"))
    whole, (texts, arrays) = block.read_bytes(), container.read(block)
    points = np.array(arrays["points"])
    container.write(block, texts, arrays | {"points": np.full_like(points, np.nan)})
    for content in (b"", b"no proofs", whole[:-30], whole[:99] + whole[98:], block.read_bytes()):
        block.write_bytes(content)
        assert np.array_equal(ceilings(layer, checkpoint=tmp_path).ceiling, first.ceiling)
        assert block.read_bytes() == whole
    points += rng.normal(size=points.shape).astype(points.dtype)
    container.write(block, texts, arrays | {"points": points})
    again = ceilings(layer, checkpoint=tmp_path)
    assert (again.ceiling >= first.reached).all()
    assert again.verify()


FLAT = [[0.5, 0.5], [0.1, 3.0], [0.1, 0.1], [3.0, 3.0], [0.0, 0.0]]  # equal columns, mostly


@pytest.mark.parametrize(
    ("layer", "features"),
    [
        (SoftmaxLayer(FLAT, [0.0, 30.0, -1.0, -1.0, 0.0]), Box(1000.0)),
        (SoftmaxLayer([[3.0, 3.0], [0.1, 0.1], [0.5, 0.5]], [0.0, 30.0, 1.0]), Box(1e6)),
        (SoftmaxLayer([[1.0, 0.0], [-1.0, 1.0], [-1.0, -1.0], [0.0, 0.0]]), Ball(1e39)),
        (SoftmaxLayer([[1e39, 0.0], [-1e39, 1.0], [0.0, -1.0]]), Box(1.0)),
        (SoftmaxLayer([[1.0], [0.0]]), Box(1e300, low=1e299)),
    ],
    ids=["a flat Hessian", "a flat one, far out", "a ball beyond float32", "rows", "a box"],
)
def test_ceilings_of_extreme_layers_are_read_back(layer, features, tmp_path):
    found = ceilings(layer, features=features)
    assert found.verify()
    found.save(tmp_path / "c")
    assert (Ceilings.load(tmp_path / "c", layer).ceiling == found.ceiling).all()
    with pytest.raises(ValueError, match="not finite"):
        replace(found, points=found.points * np.nan).save(tmp_path / "c")


def test_blocks_give_one_table():
    layer = draw_layer(np.random.default_rng(5), classes=40)
    alone = ceilings(layer)
    assert alone.table.equals(ceilings(layer, n_jobs=2, backend="threading").table)
    counts = alone.counts(0.5)
    assert sum(counts.values()) == 40
    assert counts["never"] == int((alone.ceiling < 0.5).sum())


NEVER, OTHER = (Readout(probability=kind) for kind in ("none", "normalised sigmoids"))
CAP = Readout(soft_cap=9.0)


@pytest.mark.parametrize(
    ("call", "point"),
    [
        (lambda layer: ceilings(layer, [0, 0]), "twice"),
        (lambda layer: ceilings(layer, [7]), "between 0 and 6"),
        (lambda layer: ceilings(layer, []), "at least one"),
        (lambda layer: ceilings(layer, gap=0.0), "positive"),
        (lambda layer: ceilings(layer, features=Box((1.0, 1.0))), "columns"),
        (lambda layer: ceilings(layer).counts(0.0), "probability"),
        (lambda layer: ceilings(layer, readout=NEVER), "known for a softmax or sigmoids"),
        (lambda layer: ceilings(layer, readout=OTHER), "known for a softmax or sigmoids"),
        (lambda layer: ceilings(layer, [0], features=Ball(1.0)).sharpened([0]), "over a box"),
        (lambda layer: ceilings(layer, [0], readout=CAP).sharpened([0]), "without a soft cap"),
        (lambda layer: floor(layer, [[0, 1]], readout=CAP), "without a soft cap"),
        (lambda layer: floor(layer, [{0: 0.5}]), "sum to one"),
        (lambda layer: floor(layer, [{0: math.nan, 1: 0.5}]), "sum to one"),
        (lambda layer: floor(layer, [[0, 0]]), "twice"),
        (lambda layer: floor(layer, [[]]), "no class"),
        (lambda layer: floor(layer, [[9]]), "does not have"),
        (lambda layer: floor(layer, [{0: "half"}]), "not a number"),
    ],
)
def test_bad_input_gets_a_sentence(call, point):
    with pytest.raises(ValueError, match=point):
        call(draw_layer(np.random.default_rng(0)))


@pytest.mark.parametrize("name", ["box", "uneven box"])
def test_sharpened_bounds_meet_at_the_best_point_and_say_who_was_in_doubt(name):
    rng, features = np.random.default_rng(31), SETS[name]
    for _ in range(4):
        layer = draw_layer(rng)
        loose = ceilings(layer, features=features, gap=0.5)
        sharp = loose.sharpened([0, 3])
        assert sharp.verify()
        assert sharp.ceiling[[0, 3]] == pytest.approx(sharp.reached[[0, 3]], rel=1e-7)
        start = np.mean(features.bounds(DIMENSION), axis=0)
        for t in (0, 3):
            best = math.exp(best_by_scipy(layer, features, t, start))
            assert sharp.ceiling[t] == pytest.approx(best, rel=1e-6)
        others = [1, 2, 4, 5, 6]
        assert (sharp.ceiling[others] == loose.ceiling[others]).all()
        for level in (0.1, 0.5):
            assert len(loose.in_doubt(level)) == loose.counts(level)["in doubt"]
    assert len(ceilings(layer, [2], features=features).sharpened([0])) == 1


# ---- In fifty digits


def decimals(values) -> list[Decimal]:
    return [Decimal(value) for value in np.asarray(values, float).tolist()]


def exact_odds(layer: SoftmaxLayer, features, u: np.ndarray, t: int) -> Decimal:
    """``A(l)`` of bound.py's text in fifty digits, for a box or a ball."""
    rivals = [i for i in np.flatnonzero(u).tolist() if i != t]
    total = sum(decimals(u[rivals]))
    shares = [weight / total for weight in decimals(u[rivals])]
    rows, bias = [decimals(layer.W[i]) for i in rivals], decimals(layer.bias)
    mean = [
        sum(share * w for share, w in zip(shares, column, strict=True))
        for column in zip(*rows, strict=True)
    ]
    r = [w - m for w, m in zip(decimals(layer.W[t]), mean, strict=True)]
    if isinstance(features, Box):
        ends = zip(*map(decimals, features.bounds(len(r))), r, strict=True)
        reach = sum(max(low * v, high * v) for low, high, v in ends)
    else:
        reach = Decimal(features.radius) * sum(v * v for v in r).sqrt()
    entropy = -sum(share * share.ln() for share in shares)
    gain = sum(share * bias[i] for i, share in zip(rivals, shares, strict=True))
    return entropy + gain - bias[t] - reach


@pytest.mark.parametrize("features", [Box(100.0), Ball(3.0)], ids=["box", "ball"])
def test_each_bound_is_below_the_exact_one_where_rounding_is_large(features):
    """Rows far from the origin and close together, biases likewise: sums cancel to a few digits.
    And what the point attains is above the one with exact logits.
    """
    rng = np.random.default_rng(12)
    with localcontext() as context:
        context.prec = 50
        for _ in range(20):
            offset = rng.choice([0.0, 1e6, 1e12])
            W = rng.normal(size=(6, DIMENSION)) * 1e-3 + offset * rng.normal(size=DIMENSION)
            layer = SoftmaxLayer(W, rng.normal(size=6) + offset * rng.normal())
            certifier = Certifier(layer, features)
            z = rng.normal(size=(1, DIMENSION)) * rng.choice([1e-3, 1.0])
            (look,) = certifier._look(z)
            x, bias = decimals(z[0]), decimals(layer.bias)
            y = [
                sum(w * v for w, v in zip(decimals(row), x, strict=True)) + b
                for row, b in zip(layer.W, bias, strict=True)
            ]
            for t in range(6):
                value = certifier._odds(look, t)
                exact = exact_odds(layer, features, look.u, t)
                # and not far below either
                assert float(exact) - 1e-6 * max(1.0, offset) < value
                assert Decimal(value) <= exact
                attained = certifier._attained(look, Target(np.array([t]), np.ones(1)))
                assert Decimal(attained) >= sum((v - y[t]).exp() for v in y).ln()


def exact_bound_of_exact_mean(layer: SoftmaxLayer, u: np.ndarray, t: int) -> Decimal | None:
    """``A`` of the weights ``u_i (1 + D_i mu)`` of a layer with one feature, in fifty digits."""
    w, b = decimals(layer.W[:, 0]), decimals(layer.bias)
    weights = {i: Decimal(float(u[i])) for i in np.flatnonzero(u).tolist() if i != t}
    moment = sum(v * (w[i] - w[t]) ** 2 for i, v in weights.items())
    mu = -sum(v * (w[i] - w[t]) for i, v in weights.items()) / moment
    moved = {i: v * (1 + (w[i] - w[t]) * mu) for i, v in weights.items()}
    if min(moved.values()) <= 0:
        return None
    total = sum(moved.values())
    entropy = -sum(v / total * (v / total).ln() for v in moved.values())
    return entropy + sum(v / total * b[i] for i, v in moved.items()) - b[t]


def test_bounds_of_exact_means_are_below_the_exact_ones():
    """At points so far from the best one that weights change by up to a quarter; later ones may
    borrow the spread of earlier ones.
    """
    rng = np.random.default_rng(15)
    proven = 0
    with localcontext() as context:
        context.prec = 50
        for _ in range(100):
            b = 6 * rng.normal(size=5)
            layer = SoftmaxLayer([[-1.0], [-1.0], [1.0], [1.0], [0.0]], b)
            certifier = Certifier(layer, Unbounded())
            middle = (np.logaddexp(*b[:2]) - np.logaddexp(*b[2:4])) / 2
            far = rng.normal(size=(5, 1)) * [[1e-9], [1e-3], [0.02], [0.05], [0.1]]
            for look in certifier._look(middle + far):
                value = certifier._odds(look, 4)
                if value > -math.inf:
                    assert Decimal(value) <= exact_bound_of_exact_mean(layer, look.u, 4)
                    proven += 1
    assert proven > 100


def test_exponentials_and_logarithms_are_as_good_as_the_bounds_suppose():
    rng = np.random.default_rng(8)
    arguments = np.concatenate([-rng.uniform(0, 700, 300), -(10.0 ** rng.uniform(-12, 1, 300))])
    exponentials, logarithms = np.exp(arguments), np.log(np.exp(arguments))
    with localcontext() as context:
        context.prec = 50
        for a, e, log in zip(*map(decimals, (arguments, exponentials, logarithms)), strict=True):
            assert abs(e - a.exp()) <= a.exp() * Decimal(LIBRARY)
            assert abs(log - e.ln()) <= abs(e.ln()) * Decimal(LIBRARY)
