"""What is read off a scan: captors, Qhull, nearest rows."""

from dataclasses import replace

import numpy as np
import pytest

from softgeom import unargmaxable
from softgeom.ceiling.bound import Certifier
from softgeom.certifying.verdict import Captors
from softgeom.examples import uniform_layer
from softgeom.layer import Ball, SoftmaxLayer
from softgeom.rows import cut_features, nearest_rows
from softgeom.scanner import scan
from softgeom.unargmaxable import (
    heaviest_captors,
    smallest_shift,
    unargmaxable_table,
    with_strongest_proofs,
)


@pytest.fixture(scope="module")
def scanned():
    return scan(uniform_layer(60, 4, seed=1))


@pytest.fixture(scope="module")
def lost(scanned):
    return int(unargmaxable_table(scanned)["class"].iloc[0])


@pytest.fixture(scope="module")
def winner(scanned):
    return int(scanned.table["class"][scanned.table.verdict == "argmaxable"].iloc[0])


def test_captors_come_by_falling_weight_and_share_the_whole(scanned):
    table = unargmaxable_table(scanned)
    assert len(table) == scanned.counts["unargmaxable"] > 0
    index = int(table["class"].iloc[0])
    rivals, shares = heaviest_captors(scanned, index)
    assert shares.sum() == pytest.approx(1)
    assert (np.diff(shares) <= 0).all()
    assert index not in rivals
    assert table.captors.iloc[0] == len(rivals)


def test_weights_beyond_every_float_give_a_ceiling(scanned, lost):
    exact = scanned.with_exact_weights([lost])
    weights = exact.evidence(lost).weights * 10**400
    found = replace(exact[lost], evidence=Captors(exact.evidence(lost).rivals, weights))
    huge = replace(exact, findings=[found])
    assert huge.verify()
    assert huge.ceiling(lost) == pytest.approx(exact.ceiling(lost), rel=1e-9)


def test_winners_have_no_captors(scanned, winner):
    with pytest.raises(ValueError, match="has no captors"):
        heaviest_captors(scanned, winner)


def test_nearest_rows_are_those_of_all_pairs():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(700, 5)).astype(np.float32)
    W[3] = W[4] + np.float32(1e-6)
    distances = np.linalg.norm(W[:, None].astype(float) - W[None].astype(float), axis=2)
    np.fill_diagonal(distances, np.inf)
    least = distances.min(axis=1)
    np.testing.assert_allclose(nearest_rows(W)[1], least, rtol=1e-12)
    np.testing.assert_allclose(nearest_rows(W, [3, 9])[1], least[[3, 9]], rtol=1e-12)
    assert nearest_rows(SoftmaxLayer(np.eye(2)).W)[1][0] == pytest.approx(np.sqrt(2))
    with pytest.raises(ValueError, match="two classes"):
        nearest_rows(W[:1])


def test_the_smallest_shift_frees_a_class_and_less_does_not(scanned, winner):
    layer = scanned.layer
    for index in unargmaxable_table(scanned)["class"].head(3):
        shift = smallest_shift(scanned, int(index))
        for factor, verdict in ((0.999, "unargmaxable"), (1.001, "argmaxable")):
            b = layer.bias.astype(float)
            b[index] += factor * shift
            moved = scan(SoftmaxLayer(layer.W.astype(float), b), [index])
            assert moved.evidence(index).verdict == verdict
    with pytest.raises(ValueError, match="only an unargmaxable class"):
        smallest_shift(scanned, winner)


@pytest.mark.parametrize("size", [1e-9, 1e12])
def test_the_smallest_shift_has_the_units_of_its_layer(size):
    """In which the solver's tolerances are nothing, or all."""
    W = np.array([[1.0, 0], [-1, 1], [-1, -1], [0, 0]])
    found = scan(SoftmaxLayer(W * size, np.array([0, 0, 0, -1.0]) * size))
    assert smallest_shift(found, 3) == pytest.approx(size, rel=1e-9)


@pytest.mark.parametrize("astray", [False, True])
def test_the_strongest_proof_is_the_best_margin(scanned, monkeypatch, astray):
    held = scanned.counts["unargmaxable"]
    if astray:  # then each class has a programme of its own
        monkeypatch.setattr(
            unargmaxable, "solve_batch", lambda _, rows, *__: ((n, None) for n in range(len(rows)))
        )
    strongest = with_strongest_proofs(scanned)
    assert strongest.verify()
    assert (strongest.table.verdict == scanned.table.verdict).all()
    assert (strongest.table.method == "strongest").sum() == held
    for t in unargmaxable_table(scanned)["class"]:
        assert strongest[t].margin == pytest.approx(-smallest_shift(scanned, t), abs=1e-8)
        assert strongest[t].margin <= scanned[t].margin + 1e-9


def test_some_proofs_are_strengthened_and_only_over_a_box(scanned):
    t, other = unargmaxable_table(scanned)["class"].iloc[[0, 1]]
    some = with_strongest_proofs(scanned, [t])
    assert [some[t].method, some[other].method] == ["strongest", scanned[other].method]
    assert with_strongest_proofs(scanned, []).findings == scanned.findings
    with pytest.raises(ValueError, match="over a box"):
        with_strongest_proofs(scan(scanned.layer, features=Ball(1.0)))


def test_a_cut_layer_has_the_logits_of_the_slice_and_frees_nobody(scanned):
    layer, at = scanned.layer, np.array([0.5, -1.0, 2.0, 0.0])
    cut = cut_features(layer, [2, 0], at)
    x = np.array([[1.5, -0.25]])  # features 2 and 0
    full = np.array([[-0.25, -1.0, 1.5, 0.0]])
    np.testing.assert_allclose(cut.logits(x), layer.logits(full), rtol=1e-6)
    lost = scan(cut).table.verdict != "argmaxable"
    assert (lost | (scanned.table.verdict == "argmaxable")).all()
    with pytest.raises(ValueError, match="different numbers"):
        cut_features(layer, [0, 0], at)
    with pytest.raises(ValueError, match="one value for each"):
        cut_features(layer, [0], at[:2])


def test_a_ceiling_is_what_the_captors_prove_and_a_twin_halves(scanned, lost):
    held = scanned.evidence(lost)
    certifier = Certifier(scanned.layer, scanned.features)
    proven = certifier.ceiling_of_captors(lost, held.rivals, held.weights)
    assert scanned.ceiling(lost) == proven < 1
    twins = scan(SoftmaxLayer([[1.0], [1.0], [-1.0]]))
    assert [twins.ceiling(t) for t in range(3)] == [0.5, 0.5, 1.0]


def test_only_lost_classes_get_exact_weights_and_findings_are_looked_up(scanned, lost, winner):
    exact = scanned.with_exact_weights([lost])
    assert exact.verify()
    assert exact.evidence(lost).weights.dtype == object
    with pytest.raises(ValueError, match=f"Class {winner} .* only unargmaxable"):
        scanned.with_exact_weights([lost, winner])
    found = scan(SoftmaxLayer([[1.0], [-1.0], [0.5]], tokens=["a", "b", "b"]), [0, 1])
    assert found["b"] is found[1] is found.findings[1]
    for missing in ("c", 2):
        with pytest.raises(KeyError):
            found[missing]
