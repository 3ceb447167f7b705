"""What is read off a scan or made of it: blocking classes and their weights, shifts, ranks, repair,
narrow arithmetic, nearest rows.
"""

import numpy as np
import pytest

from softgeom import unargmaxable
from softgeom.arithmetic import round_to, survives
from softgeom.ceiling.bound import Certifier
from softgeom.certifying.checker import Checker
from softgeom.certifying.hull import has_slack
from softgeom.certifying.verdict import BlockingClasses, Finding, Witness
from softgeom.examples import uniform_layer
from softgeom.layer import Ball, Box, Ellipsoid, FeatureSet, SoftmaxLayer, Unbounded
from softgeom.prevention import power, repair
from softgeom.proving.refine import refine
from softgeom.rows import cut_features, nearest_rows
from softgeom.scan_result import Scan
from softgeom.scanner import scan
from softgeom.unargmaxable import (
    bound_rank,
    heaviest_blocking_classes,
    smallest_shift,
    unargmaxable_table,
    with_strongest_proofs,
)

# the origin inside a triangle inside a square: one of each is always ahead
NESTED = SoftmaxLayer([[2, 2], [2, -2], [-2, 2], [-2, -2], [1, 0], [-0.5, 1], [-0.5, -1], [0, 0]])


@pytest.fixture(scope="module")
def scanned() -> Scan:
    return scan(uniform_layer(60, 4, seed=1))


@pytest.fixture(scope="module")
def held(scanned) -> int:
    """A class that can never win."""
    return int(unargmaxable_table(scanned)["class"].iloc[0])


@pytest.fixture(scope="module")
def winner(scanned) -> int:
    return int(scanned.table["class"][scanned.table.verdict == "argmaxable"].iloc[0])


def test_blocking_classes_come_by_falling_weight_and_share_the_whole(scanned, held):
    table = unargmaxable_table(scanned)
    assert len(table) == scanned.counts["unargmaxable"] > 0
    rivals, shares = heaviest_blocking_classes(scanned, held)
    assert shares.sum() == pytest.approx(1)
    assert (np.diff(shares) <= 0).all()
    assert held not in rivals
    assert table.blocking_classes.iloc[0] == len(rivals)


def test_a_ceiling_is_what_the_blocking_classes_prove_and_a_twin_halves(scanned, held):
    blocking = scanned.evidence(held)
    certifier = Certifier(scanned.layer, scanned.features)
    proven = certifier.blocking_ceiling(held, blocking.rivals, blocking.weights)
    assert scanned.ceiling(held) == proven < 1
    twins = scan(SoftmaxLayer([[1.0], [1.0], [-1.0]]))
    assert [twins.ceiling(t) for t in range(3)] == [0.5, 0.5, 1.0]


def test_the_smallest_shift_frees_a_class_and_less_does_not(scanned):
    layer = scanned.layer
    for index in unargmaxable_table(scanned)["class"].head(3):
        shift = smallest_shift(scanned, int(index))
        for factor, verdict in ((0.999, "unargmaxable"), (1.001, "argmaxable")):
            b = layer.bias.astype(float)
            b[index] += factor * shift
            moved = scan(SoftmaxLayer(layer.W.astype(float), b), [index])
            assert moved.evidence(index).verdict == verdict


@pytest.mark.parametrize("size", [1e-9, 1e12])
def test_the_smallest_shift_has_the_units_of_its_layer(size):
    """In which the solver's tolerances are nothing, or all."""
    W = np.array([[1.0, 0], [-1, 1], [-1, -1], [0, 0]])
    found = scan(SoftmaxLayer(W * size, np.array([0, 0, 0, -1.0]) * size))
    assert smallest_shift(found, 3) == pytest.approx(size, rel=1e-9)


@pytest.mark.parametrize("astray", [False, True])
def test_the_strongest_proof_is_the_best_margin(scanned, monkeypatch, astray):
    if astray:  # then each class has a programme of its own
        monkeypatch.setattr(
            unargmaxable, "solve_batch", lambda _, rows, *__: ((n, None) for n in range(len(rows)))
        )
    strongest, classes = with_strongest_proofs(scanned), unargmaxable_table(scanned)["class"]
    assert strongest.verify()
    assert (strongest.table.verdict == scanned.table.verdict).all()
    assert (strongest.table.method == "strongest").sum() == len(classes)
    for t in classes:
        assert strongest[t].margin == pytest.approx(-smallest_shift(scanned, t), abs=1e-8)
        assert strongest[t].margin <= scanned[t].margin + 1e-9
    some = with_strongest_proofs(scanned, classes[:1])
    methods = [some[t].method for t in classes[:2]]
    assert methods == ["strongest", scanned[classes[1]].method]
    assert with_strongest_proofs(scanned, []).findings == scanned.findings


# ---- Ranks, repair, narrow arithmetic, rows


def test_rank_of_a_class_behind_two_fences():
    bounds = bound_rank(NESTED, 7)
    assert 3 <= bounds.at_least <= bounds.at_most
    y = NESTED.logits(bounds.point)
    assert 1 + int((np.delete(y, 7) >= y[7]).sum()) <= bounds.at_most
    assert bound_rank(NESTED, 0).at_most == 1


def test_whoever_is_ahead_or_level_but_for_rounding_counts_and_outside_everybody():
    layer = SoftmaxLayer(np.ones((4, 1)), [0.0, 1.0, -(2.0**-52), -(2.0**-20)])
    checker = Checker(layer, Box(1.0))
    assert [checker.ahead(0, np.array([x])) for x in (1.0, 2.0)] == [2, 3]
    # both logits are equal in float64, in which the second class is ahead by less than a unit
    bounds = bound_rank(SoftmaxLayer([[2.0**60]] * 2, [0.0, 2.0**-20]), 0, Box(1.0, low=0.5))
    assert (bounds.at_least, bounds.at_most) == (2, 2)


@pytest.mark.parametrize(
    ("value", "kind", "rounded"),
    [
        (1 + 2**-8, "bfloat16", 1.0),  # a tie goes to even
        (1 + 3 * 2**-8, "bfloat16", 1 + 2**-6),
        (1 + 2**-11, "float16", 1.0),
        (1e6, "float16", np.inf),
    ],
)
def test_narrow_formats_round_to_nearest_even(value, kind, rounded):
    assert round_to(np.array([value], np.float32), kind)[0] == rounded


def test_narrow_wins_do_not_survive_narrow_formats():
    layer = SoftmaxLayer([[1.0, 0.0], [1.0, 1e-4], [0.0, 1.0]])
    found = scan(layer, features=Box(1.0, low=(0.5, -1.0)))
    assert isinstance(found.evidence(0), Witness)
    assert survives(found, "float32")[0]
    assert not survives(found, "bfloat16")[0]


@pytest.mark.parametrize("method", ["unit-norm", "bias"])
def test_repaired_layers_free_every_class(method):
    sick = uniform_layer(80, 2, seed=0)
    assert scan(sick).counts["unargmaxable"] > 40
    well = repair(sick, method)
    assert scan(well, features=Unbounded()).counts["argmaxable"] == 80
    assert np.ptp(power(well)) < 1e-5
    X = well.W.astype(float)
    assert (well.logits(X).argmax(axis=1) == np.arange(80)).all(), "each class wins at its own row"


def test_nearest_rows_are_those_of_all_pairs():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(700, 5)).astype(np.float32)
    W[3] = W[4] + np.float32(1e-6)
    distances = np.linalg.norm(W[:, None].astype(float) - W[None].astype(float), axis=2)
    np.fill_diagonal(distances, np.inf)
    least = distances.min(axis=1)
    np.testing.assert_allclose(nearest_rows(W)[1], least, rtol=1e-12)
    np.testing.assert_allclose(nearest_rows(W, [3, 9])[1], least[[3, 9]], rtol=1e-12)


def test_a_cut_layer_has_the_logits_of_the_slice_and_frees_nobody(scanned):
    layer, at = scanned.layer, np.array([0.5, -1.0, 2.0, 0.0])
    cut = cut_features(layer, [2, 0], at)
    x = np.array([[1.5, -0.25]])  # features 2 and 0
    full = np.array([[-0.25, -1.0, 1.5, 0.0]])
    np.testing.assert_allclose(cut.logits(x), layer.logits(full), rtol=1e-6)
    lost = scan(cut).table.verdict != "argmaxable"
    assert (lost | (scanned.table.verdict == "argmaxable")).all()


# ---- Thin, sharp weights

NORM = Ellipsoid.layer_norm(np.linspace(0.5, 2.0, 6))
SETS = [Box(100.0), Ball(3.0), Unbounded(), NORM, Ellipsoid.rms_norm(np.linspace(-0.5, 2.0, 6))]
by_set = pytest.mark.parametrize("features", SETS, ids=lambda f: f.kind)


def mixed_layer(*, bias: bool = False) -> SoftmaxLayer:
    """Thirty rows on six features, the last six of them rounded mixtures of the others."""
    rng = np.random.default_rng(3)
    W = rng.normal(size=(30, 6)).astype(np.float32)
    W[24:] = (rng.dirichlet(np.ones(24), size=6) @ W[:24]).astype(np.float32)
    b = rng.normal(size=30).astype(np.float32) * 0.01 - np.repeat([0, 1], [24, 6])
    return SoftmaxLayer(W, b if bias else None)


def blocked(layer: SoftmaxLayer, features: FeatureSet) -> list[Finding]:
    return [
        f
        for f in scan(layer, features=features).findings
        if isinstance(f.evidence, BlockingClasses)
    ]


@by_set
def test_blocking_classes_without_bias_are_a_simplex_with_a_residual_at_rounding(features):
    layer = mixed_layer()
    found = blocked(layer, features)
    assert len(found) >= 6
    for f in found:
        D = layer.W[f.index].astype(float) - layer.W[f.evidence.rivals].astype(float)
        E = features.equalities(D, np.zeros(len(D)))[0]
        assert len(D) == np.count_nonzero(E.any(axis=0)) + 1
        assert np.abs(f.evidence.weights @ E).max() < 1e-14
        assert not has_slack(layer, features, f.index, f.evidence.rivals, f.evidence.weights)


def test_thick_weights_become_thin_and_stay_a_proof():
    layer, tried = mixed_layer(), 0
    for t in range(24, 30):
        weights = np.full(24, 1 / 24)
        D = layer.W[t].astype(float) - layer.W[:24].astype(float)
        A = np.vstack([D.T, np.ones(24)])
        weights += np.linalg.lstsq(A, np.append(np.zeros(6), 1.0) - A @ weights, rcond=None)[0]
        if weights.min() > 0:
            finer, bound = refine(layer, Unbounded(), t, BlockingClasses(np.arange(24), weights))
            assert (len(finer.rivals), bound) == (7, 0.0)
            tried += 1
    assert tried, "no class lies deep enough inside"


WIDE = SoftmaxLayer(np.ones((4, 2)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda found, won: heaviest_blocking_classes(found, won), "has no blocking classes"),
        (lambda found, won: smallest_shift(found, won), "only an unargmaxable class"),
        (
            lambda found, _: with_strongest_proofs(scan(found.layer, features=Ball(1.0))),
            "over a box",
        ),
        (lambda *_: nearest_rows(np.ones((1, 2))), "two classes"),
        (lambda *_: cut_features(WIDE, [0, 0], np.zeros(2)), "different numbers"),
        (lambda *_: cut_features(WIDE, [0], np.zeros(3)), "one value for each"),
        (lambda *_: round_to(np.ones(1), "int8"), "Unknown format 'int8'"),
        (lambda *_: repair(SoftmaxLayer([[1.0], [0.0]])), "Row 1 is zero"),
        (lambda *_: repair(SoftmaxLayer([[1.0]]), "prayer"), "Unknown repair"),
    ],
)
def test_bad_input_gets_a_sentence(call, message, scanned, winner):
    with pytest.raises(ValueError, match=message):
        call(scanned, winner)
