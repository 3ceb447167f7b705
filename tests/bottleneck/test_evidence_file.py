"""What was written comes back; each array has one type and size. Whatever else may be written
otherwise is in the corpus of forgeries (tests/forgeries).
"""

import hashlib
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from softgeom.bottleneck.blocks import block_path, load_block
from softgeom.bottleneck.certifying import evidence_file
from softgeom.bottleneck.certifying.evidence_file import (
    load_answers,
    load_findings,
    load_groups,
    load_parts,
    read_fractions,
    read_head,
    save_answers,
    save_findings,
    save_groups,
)
from softgeom.bottleneck.certifying.order import Order
from softgeom.bottleneck.certifying.verdict import (
    Answer,
    Captors,
    Comparisons,
    Finding,
    Twin,
    Unknown,
    Witness,
)
from softgeom.features import Ball, Box
from softgeom.layer import SoftmaxLayer, fingerprint, fingerprint_of, identity

LAYER = SoftmaxLayer(np.arange(14.0).reshape(7, 2), np.arange(7.0))
SET = Box(2.0, low=(-1.0, -0.5))
HALF = np.array([Fraction(1, 2), Fraction(-1, 3)], dtype=object)
FINDINGS = [
    Finding(0, Witness(np.array([0.5, 1.0], np.float32)), "look", 3, 0.25, 0.125),
    Finding(1, Captors(np.array([2, 0]), np.array([0.75, 0.5])), "lp", 0, -0.5, np.nan),
    Finding(2, Twin(5), "twin", 0, 0.0, np.nan),
    Finding(3, Unknown(np.inf, "no time"), "lp", 1, np.inf, np.nan),
    Finding(4, Witness(HALF), "exact", 0, 5e-324, 0.0),
    Finding(5, Captors(np.array([1, 3]), np.array([Fraction(1, 7), Fraction(2)])), "", 0, 0.0,
    np.nan),
    Finding(6, Witness(np.array([0.1, 0.2])), "ascent", 9, 1e300, 1.0),
]  # fmt: skip
COMPARED = Comparisons(np.array([1, 1, 0]), np.array([3, 2, 2]), np.array([1.0, 2.0, 3.0]))
ANSWERS = [
    Answer(Order([[1, 0], [2, 3]]), COMPARED, "lp", 2, -1.0),
    Answer(Order([[6]], rest=True), Witness(HALF), "", 0, np.inf),
    Answer(Order([[2], [1], [0]]), Unknown(0.5, "open"), "", 0, 0.5),
    Answer(Order([[6], [5]]), Comparisons(np.array([6]), np.array([5]), np.ones(1)), "", 0, -0.25),
]


def content(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as file:
        return {name: file[name].copy() for name in file.files}


def headed(arrays: dict[str, np.ndarray], change: Callable[[dict], object]) -> None:
    head = json.loads(str(arrays["head"]))
    change(head)
    arrays["head"] = np.array(json.dumps(head, sort_keys=True))


@pytest.fixture
def saved(tmp_path) -> Path:
    save_findings(tmp_path / "scan.npz", LAYER, SET, FINDINGS)
    return tmp_path / "scan.npz"


def refused(path: Path, change: Callable[[dict], object], load=load_findings) -> None:
    """A changed file is no evidence; nothing but a ValueError of one line says so."""
    honest = path.read_bytes()
    arrays = content(path)
    change(arrays)
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=f"{path.name} (is not a valid|belongs to)") as error:
        load(path, LAYER)
    assert "\n" not in str(error.value)
    path.write_bytes(honest)


def test_findings_come_back_in_the_order_of_the_classes(saved):
    save_findings(saved, LAYER, SET, FINDINGS[::-1])
    features, found = load_findings(saved, LAYER)
    assert features == SET
    for ours, theirs in zip(FINDINGS, found, strict=True):
        for name in ("index", "method", "steps", "margin"):
            assert getattr(ours, name) == getattr(theirs, name)
        assert ours.radius == theirs.radius or np.isnan([ours.radius, theirs.radius]).all()
        assert type(ours.evidence) is type(theirs.evidence)
    assert found[1].evidence.rivals.tolist() == [0, 2]
    assert found[1].evidence.weights.tolist() == [0.5, 0.75]
    assert found[2].evidence.twin == 5
    assert (found[3].evidence.bound, found[3].evidence.reason) == (np.inf, "no time")
    assert found[4].evidence.point.tolist() == HALF.tolist()
    assert found[5].evidence.weights.tolist() == [Fraction(1, 7), Fraction(2)]
    assert found[0].evidence.point.dtype == np.float32
    assert found[6].evidence.point.tolist() == [0.1, 0.2]
    save_findings(saved, LAYER, SET, [])
    assert load_findings(saved, LAYER)[1] == []


def test_answers_and_experts_come_back(tmp_path):
    save_answers(tmp_path / "a.npz", LAYER, SET, ANSWERS)
    features, found = load_answers(tmp_path / "a.npz", LAYER)
    assert features == SET
    assert [a.order for a in found] == [a.order for a in ANSWERS]
    assert [a.margin for a in found] == [-1.0, np.inf, 0.5, -0.25]
    pairs = zip(found[0].evidence.above, found[0].evidence.below, strict=True)
    assert [*map(tuple, pairs)] == [(0, 2), (1, 2), (1, 3)]
    assert found[0].evidence.weights.tolist() == [3.0, 2.0, 1.0]
    groups = [(5, "possible", "m", ANSWERS[:2]), (3, "undecided", "n", ANSWERS[2:])]
    save_groups(tmp_path / "e.npz", LAYER, SET, 2, groups)
    features, k, again = load_groups(tmp_path / "e.npz", LAYER)
    assert (features, k) == (SET, 2)
    assert [group[:3] for group in again] == [(3, "undecided", "n"), (5, "possible", "m")]
    assert [len(answers) for *_, answers in again] == [2, 2]
    assert again[1][3][1].order == ANSWERS[1].order
    for load in (load_findings, load_groups):
        with pytest.raises(ValueError, match="holds 'answers'"):
            load(tmp_path / "a.npz", LAYER)
    assert read_head(tmp_path / "e.npz")["holds"] == "experts"


def test_nothing_is_written_twice(tmp_path):
    with pytest.raises(ValueError, match="A class occurs twice"):
        save_findings(tmp_path / "x.npz", LAYER, SET, FINDINGS[:1] * 2)
    twice = Finding(1, Captors(np.array([2, 2]), np.ones(2)), "", 0, 0.0, np.nan)
    with pytest.raises(ValueError, match="weighs the same comparison twice"):
        save_findings(tmp_path / "x.npz", LAYER, SET, [twice])
    none = Finding(1, Captors(np.array([2, 2]), np.array([1.0, 0.0])), "", 0, 0.0, np.nan)
    save_findings(tmp_path / "x.npz", LAYER, SET, [none])
    assert load_findings(tmp_path / "x.npz", LAYER)[1][0].evidence.rivals.tolist() == [2]


def test_every_array_has_one_dtype_and_one_size(saved):
    other = {"i": ">i8", "f": ">f8"}
    for name in content(saved):
        if name == "head":
            continue
        for change in (
            lambda a, n=name: a.update({n: a[n].astype(other[a[n].dtype.kind])}),
            lambda a, n=name: a.update({n: a[n][:-1]}),
            lambda a, n=name: a.update({n: np.concatenate([a[n], a[n][:1]])}),
            lambda a, n=name: a.update({n: a[n][None]}),
            lambda a, n=name: a.update({n: a[n].astype(object)}),
            lambda a, n=name: a.pop(n),
        ):
            refused(saved, change)
    refused(saved, lambda a: a.update(more=np.zeros(0)))
    refused(saved, lambda a: a.update(points64=np.asfortranarray(np.ones((2, 2)))))


@pytest.mark.parametrize(
    ("name", "place", "values"),
    [
        ("kinds", 0, (7, -1, 1)), ("kinds", 2, (4,)), ("steps", 0, (-1,)), ("classes", 0, (-1,)),
        ("classes", 1, (0,)), ("classes", 2, (5,)), ("classes", 6, (7,)), ("twins", 0, (7, -1)),
        ("margins", 0, (0.0, -1.0, np.nan)), ("margins", 1, (1e-9, np.nan, -np.inf)),
        ("margins", 2, (1e-9,)), ("margins", 3, (np.nan,)), ("radii", 0, (-1e-9, np.nan)),
        ("radii", 1, (0.0,)), ("radii", 2, (0.0,)), ("radii", 3, (1.0,)), ("radii", 5, (0.0,)),
        ("points32", (0, 1), (np.nan, np.inf)), ("points64", (0, 1), (-np.inf,)),
        ("counts", 0, (-1, 0, 1, 3)), ("below", 0, (2, -1)), ("below", 1, (0, 7)),
        ("below", 3, (1,)), ("weights", 0, (0.0, -1.0, np.nan, np.inf)),
    ],
)  # fmt: skip
def test_every_number_is_one_that_can_be(saved, name, place, values):
    """Also where the kernel would refuse it."""
    for value in values:
        refused(saved, lambda arrays, v=value: arrays[name].__setitem__(place, v))


def test_identities_are_hashes_of_every_bit_and_shape():
    layers = [
        LAYER,
        SoftmaxLayer(LAYER.W),
        SoftmaxLayer(LAYER.W.astype(np.float32), LAYER.b),
        SoftmaxLayer(LAYER.W.reshape(2, 7)),
        SoftmaxLayer(LAYER.W, np.nextafter(LAYER.b, 9)),
        SoftmaxLayer(np.zeros((9000, 1))),
        SoftmaxLayer(np.eye(9000, 1, -8999)),
    ]
    assert len({fingerprint(layer) for layer in layers}) == len(layers)
    turned = SoftmaxLayer(np.asfortranarray(LAYER.W), LAYER.b)
    assert fingerprint(turned) == fingerprint(LAYER) == fingerprint_of(identity(LAYER))
    W = np.arange(9000.0)[:, None]
    assert identity(SoftmaxLayer(W))["W"]["sha256"] == hashlib.sha256(W.tobytes()).hexdigest()


def test_the_first_class_may_be_a_twin_and_an_expert_without_orders(tmp_path):
    path = tmp_path / "evidence.npz"
    found = [Finding(6, Twin(0), "twin", 0, 0.0, np.nan)]
    save_findings(path, LAYER, SET, found)
    assert load_findings(path, LAYER)[1][0].evidence.twin == 0
    save_groups(path, LAYER, SET, 1, [(2, "undecided", "m", [])])
    assert load_groups(path, LAYER)[2] == [(2, "undecided", "m", [])]
    save_findings(path, LAYER, SET, FINDINGS, wider=[(Box(1.0), FINDINGS[1:2])])
    (_, first), (features, more) = load_parts(path, LAYER)
    assert (len(first), features, more[0].index) == (7, Box(1.0), 1)


def test_only_known_kinds_of_files_have_a_head(saved):
    refused(
        saved,
        lambda a: headed(a, lambda h: h.update(holds="scans")),
        lambda path, _: read_head(path),
    )


def test_fractions_of_any_length_but_a_million_characters(monkeypatch):
    assert read_fractions(["1/3", "-ff/10"], 2).tolist() == [Fraction(1, 3), Fraction(-255, 16)]
    with pytest.raises(ValueError, match="2 fractions where 3 belong"):
        read_fractions(["1/1", "1/1"], 3)
    zeros = "0" * (10**6 - 3)
    assert read_fractions([f"1/1{zeros}"], 1)[0].numerator == 1
    with pytest.raises(ValueError, match="too long"):
        read_fractions([f"1/1{zeros}0"], 1)
    monkeypatch.setattr(evidence_file, "LONGEST", 10)
    assert read_fractions([f"{16**7:x}/1"], 1)[0] == 16**7
    with pytest.raises(ValueError, match="too long"):
        read_fractions([f"{16**9:x}/1"], 1)


def test_a_block_is_about_its_classes_and_set(tmp_path):
    layer, won = SoftmaxLayer([[1.0], [-1.0]]), Witness(np.array([0.5]))
    findings = [Finding(0, won, "", 0, 0.5, 0.0), Finding(1, Unknown(1.0, ""), "", 0, 1.0, np.nan)]
    known, both = identity(layer), np.array([1, 0])
    path = block_path(tmp_path, known, "search 0", Ball(1.0), both)
    save_findings(path, layer, Ball(1.0), findings, known)
    assert [f.index for f in load_block(path, layer, Ball(1.0), both, known)] == [1, 0]
    for features, classes in ((Ball(2.0), both), (Ball(1.0), both[:1]), (Ball(1.0), np.arange(3))):
        with pytest.raises(ValueError, match="about other classes or another feature set"):
            load_block(path, layer, features, classes, known)
    with pytest.raises(ValueError, match="belongs to another layer"):
        load_block(path, layer, Ball(1.0), both, identity(LAYER))
