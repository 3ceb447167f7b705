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

THREE = Box(3.0)


def crowd(bias: bool = True) -> SoftmaxLayer:
    """Forty classes in three dimensions, of which some can never win, some only far out."""
    rng = np.random.default_rng(5)
    W = rng.normal(size=(40, 3)) * rng.uniform(0.2, 1, size=(40, 1))
    return SoftmaxLayer(W.astype("f4"), rng.normal(size=40).astype("f4") if bias else None)


def never(found: Scan) -> list[int]:
    return [f.index for f in found.findings if f.verdict == "unargmaxable"]


def said(found: Scan) -> dict[int, str]:
    return dict(zip(found.table["class"], found.table["holds"], strict=True))


@pytest.fixture(scope="module")
def plain() -> Scan:
    return scan(crowd(), features=THREE)


@pytest.fixture(scope="module")
def found(plain) -> Scan:
    return widen(plain, [Unbounded(), Ball(4.0), Ball(60.0)])


@pytest.mark.parametrize("bias", [True, False])
def test_as_many_never_win_without_a_bound_as_a_scan_without_one_finds(bias):
    layer = crowd(bias)
    found = widen(scan(layer, features=THREE))
    everywhere = never(scan(layer, features=Unbounded()))
    assert never(found.wider[0]) == everywhere
    assert 0 < len(everywhere) <= found.counts["unargmaxable"]
    assert (len(everywhere) < found.counts["unargmaxable"]) == bias
    assert found.verify()


@pytest.mark.parametrize("size", [5e-324, 1.7e308])
def test_no_set_is_too_large_or_too_small_to_be_widened(size):
    """Sixteen times as far, or ten thousand, may be further than float64 reaches."""
    layer = crowd()
    found = up_to(widen(scan(layer, features=Box(size)), [Unbounded(), Ball(size)]))
    everywhere = scan(layer, features=Unbounded()).counts["unargmaxable"]
    assert len(found.wider[0]) <= everywhere
    assert (len(found.wider[0]) == everywhere) or size < 1
    assert widen(scan(layer, features=Ball(size))).verify()
    assert found.verify()
    assert turning_bounds(layer, found.wider[0].findings[0].index, size)[1] == np.inf


def test_many_classes_are_asked_for_more_only_on_request(plain, monkeypatch):
    for most, asked in ((plain.counts["unargmaxable"] - 1, False), (len(never(plain)), True)):
        monkeypatch.setattr(widening, "MOST", most)
        assert bool(widen(plain, every=False).wider) is asked
    wide = widen(plain)
    assert wide.wider
    monkeypatch.setattr(widening, "FEW", 1)
    assert up_to(wide, every=False) is wide


def test_the_table_says_the_weakest_condition_if_there_is_one(found):
    everywhere, ball, *far = (set(never(part)) for part in found.wider)
    conditions = said(found)
    for f in found.findings:
        if f.verdict != "unargmaxable":
            assert conditions[f.index] == ""
        elif f.index in everywhere:
            assert conditions[f.index] == "for any features"
        else:
            balls = "; over ||x|| <= 4" * (f.index in ball)
            balls += "; over ||x|| <= 60" * any(f.index in part for part in far)
            assert conditions[f.index] == "up to 3" + balls
    assert set(conditions.values()) > {"", "for any features"}
    assert widen(scan(SoftmaxLayer(np.eye(4, dtype="f4")))).wider == ()
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
    assert report.wider["for any features"] == len(found.wider[0])
    assert "for any features" in str(report)
    assert read_verdicts(tmp_path / "out")["holds"].tolist() == found.table["holds"].tolist()


def test_of_two_sets_each_inside_the_other_both_are_said(found):
    """The same box, with a bound for each feature: not taken for one that says more."""
    same = Box((found.features.high,) * found.layer.dimension)
    twofold = replace(found, wider=(replace(found.wider[0], features=same),))
    with pytest.raises(EvidenceError, match="occurs twice"):
        twofold.verify()
    assert same.condition() in said(twofold)[found.wider[0].findings[0].index]


def test_the_bound_from_which_a_class_wins_is_certified_from_both_sides():
    """One feature: class 1 leads class 0 where x > 8, and class 2 is ahead of both below -1."""
    layer = SoftmaxLayer(np.array([[1.0], [2.0], [-1.0]]), np.array([8.0, 0.0, 0.0]))
    held, free = turning_bounds(layer, 1, 3.0)
    assert 3.0 < held <= 8.0 < free <= 1.01 * held
    assert turning_bounds(layer, 1, 3.0, digits=1e-6)[1] < 8.0001
    assert scan(layer, [1], features=Box(held)).counts["unargmaxable"] == 1
    assert scan(layer, [1], features=Box(free)).counts["argmaxable"] == 1
    everywhere = SoftmaxLayer(np.array([[1.0], [0.0], [-1.0]]), np.array([0.0, -1.0, 0.0]))
    assert turning_bounds(everywhere, 1, 3.0)[1] == np.inf


def test_the_table_says_up_to_which_bound_a_class_that_needs_one_never_wins(plain):
    found = up_to(widen(plain))
    assert found.verify()
    conditions = {t: said(found)[t] for t in never(found)}
    bounds = {t: float(c.removeprefix("up to ")) for t, c in conditions.items() if "up to" in c}
    assert len(set(bounds.values())) > 1  # some of the ladder's, not all the scan's own
    ladder = [3.0, *(3.0 * rung for rung in (1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0))]
    for t, bound in bounds.items():
        least, free = turning_bounds(found.layer, t, 3.0)
        assert bound <= least * 1.001
        assert free <= ladder[ladder.index(bound) + 1]
    assert {conditions[t] for t in conditions if t not in bounds} == {"for any features"}


def test_a_floor_stays():
    found = up_to(widen(scan(crowd(), features=Box(3.0, low=-0.5))))
    boxes = [part.features for part in found.wider if isinstance(part.features, Box)]
    assert boxes
    assert {box.low for box in boxes} == {-0.5}
    assert found.verify()
