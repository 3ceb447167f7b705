"""Classes that are unargmaxable over further sets than a scan's: proofs, the table, the file."""

from dataclasses import replace

import numpy as np
import pytest

from softgeom import widening
from softgeom.certifying.folder import verify_folder, write_folder
from softgeom.certifying.verdict import EvidenceError
from softgeom.layer import Ball, Box, SoftmaxLayer, Unbounded
from softgeom.scan_result import Scan
from softgeom.scanner import scan
from softgeom.verdict_table import read_verdicts
from softgeom.widening import turning_bounds, up_to, widen


def crowd(bias: bool = True) -> SoftmaxLayer:
    """Forty classes in three dimensions, of which some can never win, some only far out."""
    rng = np.random.default_rng(5)
    W = rng.normal(size=(40, 3)) * rng.uniform(0.2, 1, size=(40, 1))
    return SoftmaxLayer(W.astype("f4"), rng.normal(size=40).astype("f4") if bias else None)


@pytest.fixture(scope="module")
def found() -> Scan:
    return widen(scan(crowd(), features=Box(3.0)), [Unbounded(), Ball(4.0), Ball(60.0)])


@pytest.mark.parametrize("bias", [True, False])
def test_as_many_are_lost_without_a_bound_as_a_scan_without_one_finds(bias):
    layer = crowd(bias)
    found = widen(scan(layer, features=Box(3.0)))
    everywhere = scan(layer, features=Unbounded())
    lost = [f.index for f in everywhere.findings if f.evidence.verdict == "unargmaxable"]
    assert [f.index for f in found.wider[0].findings] == lost
    assert 0 < len(lost) <= found.counts["unargmaxable"]
    assert (len(lost) < found.counts["unargmaxable"]) == bias
    assert found.verify()


@pytest.mark.parametrize("size", [5e-324, 1e300, 1.7e308])
def test_no_set_is_too_large_or_too_small_to_be_widened(size):
    """Sixteen times as far, or ten thousand, may be further than float64 reaches."""
    layer = crowd()
    found = up_to(widen(scan(layer, features=Box(size)), [Unbounded(), Ball(size)]))
    everywhere = scan(layer, features=Unbounded()).counts["unargmaxable"]
    assert len(found.wider[0]) <= everywhere
    assert (len(found.wider[0]) == everywhere) or size < 1
    assert widen(scan(layer, features=Ball(size))).verify()
    assert found.verify()
    lost = found.wider[0].findings[0].index
    assert turning_bounds(layer, lost, size)[1] == np.inf


def test_many_classes_are_asked_for_more_only_on_request(monkeypatch):
    found = scan(crowd(), features=Box(3.0))
    monkeypatch.setattr(widening, "MOST", found.counts["unargmaxable"] - 1)
    assert widen(found, every=False).wider == ()
    assert widen(found).wider
    monkeypatch.setattr(widening, "MOST", found.counts["unargmaxable"])
    assert widen(found, every=False).wider


def test_a_class_that_wins_in_a_larger_box_is_not_asked_for_all_of_space(monkeypatch):
    found, won = scan(crowd(), features=Box(3.0)), set()

    def told(layer, classes, *, features, **work):
        assert won.isdisjoint(classes)
        told = scan(layer, classes, features=features, **work)
        won.update(f.index for f in told.findings if f.verdict == "argmaxable")
        return told

    monkeypatch.setattr(widening, "scan", told)
    widen(found)
    assert won


def test_the_table_says_the_weakest_condition_if_there_is_one(found):
    everywhere, ball, *far = ({f.index for f in part.findings} for part in found.wider)
    said = dict(zip(found.table["class"], found.table["holds"], strict=True))
    for f in found.findings:
        if f.evidence.verdict != "unargmaxable":
            assert said[f.index] == ""
        elif f.index in everywhere:
            assert said[f.index] == "whatever the features"
        else:
            balls = "; over ||x|| <= 4" * (f.index in ball)
            balls += "; over ||x|| <= 60" * any(f.index in part for part in far)
            assert said[f.index] == "up to 3" + balls
    assert set(said.values()) > {"", "whatever the features"}
    all_win = scan(SoftmaxLayer(np.eye(4, dtype="f4")))
    assert widen(all_win).wider == ()
    everywhere = scan(crowd(), features=Unbounded())
    assert widen(everywhere).wider == ()
    assert "holds" not in everywhere.table


def test_file_and_folder_keep_it(found, tmp_path):
    found.save(tmp_path / "evidence.safetensors")
    again = Scan.load(tmp_path / "evidence.safetensors", found.layer)
    assert again.verify()
    assert again.table.equals(found.table)
    write_folder(tmp_path / "out", found)
    report = verify_folder(tmp_path / "out", found.layer)
    assert report.wider["whatever the features"] == len(found.wider[0])
    assert "whatever the features" in str(report)
    table = read_verdicts(tmp_path / "out")
    assert table["holds"].tolist() == found.table["holds"].tolist()


def test_of_two_sets_each_inside_the_other_both_are_said(found):
    """The same box, with a bound for each feature: not taken for one that says more."""
    same = Box((found.features.high,) * found.layer.dimension)
    again = replace(found.wider[0], features=same)
    twofold = replace(found, wider=(again,))
    with pytest.raises(EvidenceError, match="occurs twice"):
        twofold.verify()
    said = dict(zip(found.table["class"], twofold.table["holds"], strict=True))
    assert same.condition() in said[again.findings[0].index]


def test_the_bound_from_which_a_class_wins_is_certified_from_both_sides():
    """One feature: class 1 leads class 0 where x > 8, and class 2 is ahead of both below -1."""
    layer = SoftmaxLayer(np.array([[1.0], [2.0], [-1.0]]), np.array([8.0, 0.0, 0.0]))
    lost, free = turning_bounds(layer, 1, 3.0)
    assert 3.0 < lost <= 8.0 < free <= 1.01 * lost
    assert turning_bounds(layer, 1, 3.0, digits=1e-6)[1] < 8.0001
    assert scan(layer, [1], features=Box(lost)).counts["unargmaxable"] == 1
    assert scan(layer, [1], features=Box(free)).counts["argmaxable"] == 1
    never = SoftmaxLayer(np.array([[1.0], [0.0], [-1.0]]), np.array([0.0, -1.0, 0.0]))
    assert turning_bounds(never, 1, 3.0)[1] == np.inf


def test_the_table_says_up_to_which_bound_a_class_that_needs_one_never_wins():
    found = up_to(widen(scan(crowd(), features=Box(3.0))))
    said = dict(zip(found.table["class"], found.table["holds"], strict=True))
    lost = [f.index for f in found.findings if f.evidence.verdict == "unargmaxable"]
    bounds = {t: float(said[t].removeprefix("up to ")) for t in lost if "up to" in said[t]}
    assert found.verify()
    assert len(set(bounds.values())) > 1  # some of the ladder's, not all the scan's own
    ladder = [3.0, *(3.0 * rung for rung in (1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0))]
    for t, bound in bounds.items():
        least, free = turning_bounds(found.layer, t, 3.0)
        assert bound <= least * 1.001
        assert free <= ladder[ladder.index(bound) + 1]
    assert {said[t] for t in lost if t not in bounds} == {"whatever the features"}


def test_a_floor_stays_and_many_are_told_their_bound_only_on_request(monkeypatch):
    found = up_to(widen(scan(crowd(), features=Box(3.0, low=-0.5))))
    boxes = [part.features for part in found.wider if isinstance(part.features, Box)]
    assert boxes
    assert {box.low for box in boxes} == {-0.5}
    assert found.verify()
    found = widen(scan(crowd(), features=Box(3.0)))
    monkeypatch.setattr(widening, "FEW", 1)
    assert up_to(found, every=False) is found
    assert len(up_to(found).wider) > len(found.wider)
    assert up_to(scan(crowd(), features=Box(1.0))).wider


@pytest.mark.parametrize("features", [Unbounded(), Ball(3.0), Box((3.0,) * 3)])
def test_only_a_box_with_two_bounds_has_a_larger_one(features):
    found = scan(crowd(), features=features)
    assert up_to(found) is found
