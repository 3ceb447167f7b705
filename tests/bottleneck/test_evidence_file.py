"""What was written comes back; whatever is written otherwise is refused in one sentence."""

import hashlib
import io
import json
import warnings
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from softgeom.bottleneck.blocks import block_path, load_block
from softgeom.bottleneck.certifying import evidence_file
from softgeom.bottleneck.certifying.evidence_file import (
    fingerprint,
    fingerprint_of,
    identity,
    load_answers,
    load_findings,
    load_groups,
    load_parts,
    read_fractions,
    read_head,
    read_members,
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
from softgeom.features import Ball, Box, Ellipsoid
from softgeom.layer import SoftmaxLayer

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
    for name in content(saved):
        if name == "head":
            continue
        for change in (
            lambda a, n=name: (
                a.update({n: a[n].astype(a[n].dtype.newbyteorder(">"))})
                if a[n].dtype.itemsize > 1
                else a.update({n: a[n].astype(np.int16)})
            ),
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
    ("name", "place", "value"),
    [
        ("kinds", 0, 7), ("kinds", 0, -1), ("kinds", 0, 1), ("kinds", 2, 4), ("steps", 0, -1),
        ("classes", 1, 0),
        ("classes", 0, -1), ("classes", 6, 7), ("classes", 2, 5), ("twins", 0, 7), ("twins", 0, -1),
        ("margins", 0, 0.0),
        ("margins", 0, -1.0), ("margins", 0, np.nan), ("margins", 1, 1e-9), ("margins", 1, np.nan),
        ("margins", 1, -np.inf),
        ("margins", 2, 1e-9), ("margins", 3, np.nan), ("radii", 0, -1e-9), ("radii", 0, np.nan),
        ("radii", 1, 0.0),
        ("radii", 2, 0.0), ("radii", 3, 1.0), ("radii", 5, 0.0), ("points32", (0, 1), np.nan),
        ("points32", (0, 0), np.inf),
        ("points64", (0, 1), -np.inf), ("counts", 0, 1), ("counts", 0, 0), ("counts", 0, -1),
        ("counts", 0, 3),
        ("below", 0, 2), ("below", 1, 0), ("below", 1, 7), ("below", 0, -1), ("below", 3, 1),
        ("weights", 0, 0.0),
        ("weights", 0, -1.0), ("weights", 1, np.nan), ("weights", 1, np.inf),
    ],
)  # fmt: skip
def test_every_number_is_one_that_can_be(saved, name, place, value):
    refused(saved, lambda arrays: arrays[name].__setitem__(place, value))


HEADS: list[Callable[[dict], object]] = [
    *(lambda h, k=key: h.pop(k) for key in ("format", "holds", "layer", "features", "methods",
    "reasons", "exact_points", "exact_weights", "sections")),
    lambda h: h.update(more=1), lambda h: h.update(format=3), lambda h: h.update(format=4.0),
    lambda h: h.update(format=True),
    lambda h: h.update(holds="orders"), lambda h: h.update(holds=["scan"]),
    lambda h: h.update(holds="answers"),
    lambda h: h.update(sections=["sets"]), lambda h: h.update(sections={}),
    lambda h: h.update(methods=h["methods"][1:]),
    lambda h: h["methods"].append(""), lambda h: h["methods"].__setitem__(0, 1),
    lambda h: h.update(methods="abcdefg"),
    lambda h: h.update(reasons=[]), lambda h: h["reasons"].append(""),
    lambda h: h.update(reasons=[None]),
    lambda h: h["features"].update(more="0x1p0"), lambda h: h["features"].pop("low"),
    lambda h: h["features"].update(set="cube"),
    lambda h: h["features"].update(high="0x1.0p1"), lambda h: h["features"].update(high="2.0"),
    lambda h: h["features"].update(high=2.0),
    lambda h: h["features"].update(high="inf"),
    lambda h: h["features"].update(high="-0x1.0000000000000p+1"),
    lambda h: h["features"]["low"].append("-0x1.0000000000000p+0"),
    lambda h: h["features"]["low"].pop(),
    lambda h: h["exact_points"].append(["1/1", "1/1"]), lambda h: h.update(exact_points=[]),
    lambda h: h["exact_points"][0].append("1/1"),
    lambda h: h["exact_points"][0].pop(), lambda h: h["exact_weights"].append(["1/1", "1/1"]),
    lambda h: h.update(exact_weights=[]),
    *(lambda h, t=text: h["exact_points"][0].__setitem__(0, t) for text in ("2/4", "1/-2", "+1/2",
    "01/2", "0x1/2", "1", "1/0", "A/b", "1/2/3", " 1/2", "1_0/11", 1, None)),
    lambda h: h["exact_weights"][0].__setitem__(0, "0/1"),
    lambda h: h["exact_weights"][0].__setitem__(0, "-1/7"),
    lambda h: h["layer"].update(b=None), lambda h: h["layer"]["W"].update(sha256="0" * 64),
    lambda h: h["layer"].update(c=None),
    lambda h: h["layer"]["W"].update(shape=[7.0, 2]), lambda h: h.update(layer=None),
]  # fmt: skip


@pytest.mark.parametrize("change", HEADS)
def test_the_head_is_exactly_what_it_is(saved, change):
    refused(saved, lambda arrays: headed(arrays, change))


def test_the_head_is_written_in_one_way(saved):
    text = str(content(saved)["head"])
    for other in (
        text.replace(", ", ","),
        text.replace('"format": 4', '"format": 4, "format": 4'),
        json.dumps(dict(reversed(json.loads(text).items()))),
        text + " ",
        text.replace('"steps"', '"st\\u0065ps"').replace("no time", "no\\u0020time"),
        "[" * 100_000,
        "[]",
        "4",
        "",
    ):
        refused(saved, lambda arrays, t=other: arrays.update(head=np.array(t)))
    refused(saved, lambda arrays: arrays.update(head=np.array([text])))
    refused(saved, lambda arrays: arrays.update(head=np.array(text.encode())))


def rewritten(path: Path, write: Callable[[zipfile.ZipFile, str, bytes], object]) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, data in members.items():
            write(archive, name, data)


@pytest.mark.parametrize(
    "write",
    [
        lambda a, n, d: a.writestr(n, d, zipfile.ZIP_DEFLATED),
        lambda a, n, d: [a.writestr(n, d)] * 1 + ([a.writestr(n, d)] if n == "classes.npy" else []),
        lambda a, n, d: a.writestr(n.replace("classes", "Classes"), d),
        lambda a, n, d: a.writestr(n, d + b"\0" * (n == "margins.npy")),
        lambda a, n, d: a.writestr(n, d[:-1] if n == "margins.npy" else d),
        lambda a, n, d: a.writestr(n,
        d.replace(b"\x93NUMPY\x01", b"\x93NUMPY\x02", n == "radii.npy")),
        lambda a, n, d: a.writestr(n, d.replace(b"(7,)", b"(-7,)", n == "radii.npy")),
        # encrypted, as the directory says
        lambda a, n, d: [a.writestr(n, d), setattr(a.getinfo(n), "flag_bits", 1)],
    ],
)  # fmt: skip
def test_members_are_stored_as_they_are(saved, write):
    rewritten(saved, lambda a, n, d: a.writestr(n, d))
    load_findings(saved, LAYER)
    rewritten(saved, write)
    with pytest.raises(ValueError, match="is not a valid file of evidence"):
        load_findings(saved, LAYER)


def test_members_that_share_their_bytes_are_no_bomb(saved):
    """Each entry of the directory points to the same large member."""
    big = io.BytesIO()
    np.save(big, np.zeros(10**6))
    with zipfile.ZipFile(saved) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr("head.npy", members["head.npy"])
        archive.writestr("margins.npy", big.getvalue())
        first = archive.getinfo("margins.npy")
        for name in members.keys() - {"head.npy", "margins.npy"}:
            archive.filelist.append(info := zipfile.ZipInfo(name))
            for field in ("header_offset", "file_size", "compress_size", "CRC"):
                setattr(info, field, getattr(first, field))
        archive._didModify = True
    with pytest.raises(ValueError, match="another reader takes"):
        load_findings(saved, LAYER)


def test_orders_and_experts_are_read_as_strictly(tmp_path):
    path = tmp_path / "answers.npz"
    save_answers(path, LAYER, SET, ANSWERS)
    for name, place, value in (
        ("blocks", 0, 3), ("blocks", 1, 0), ("rest", 0, 2), ("rest", 0, -1), ("sizes", 0, 1),
        ("sizes", 0, 0), ("named", 0, 0),
        ("named", 0, 7), ("named", 0, -1), ("named", 1, 3), ("above", 0, 7), ("above", 0, 2),
        ("above", 2, 7), ("above", 2, 8),
        ("below", 1, 4), ("kinds", 1, 3),
    ):  # fmt: skip
        refused(path, lambda a, n=name, p=place, v=value: a[n].__setitem__(p, v), load_answers)
    refused(path, lambda a: headed(a, lambda h: h.update(k=1)), load_answers)
    path = tmp_path / "experts.npz"
    save_groups(path, LAYER, SET, 2, [])
    with pytest.raises(ValueError, match="names no expert"):
        load_groups(path, LAYER)
    few = [(1, "impossible", "", []), (3, "possible", "", ANSWERS[:1]), (5, "undecided", "", [])]
    save_groups(path, LAYER, SET, 2, few)
    for name, place, value in (
        ("experts", 1, 5), ("experts", 1, 1), ("experts", 0, -1), ("experts", 2, 7),
        ("expert_verdicts", 0, 3), ("expert_verdicts", 0, -1),
        ("expert_counts", 1, 0), ("expert_counts", 2, 1), ("expert_counts", 2, -1),
    ):  # fmt: skip
        refused(path, lambda a, n=name, p=place, v=value: a[n].__setitem__(p, v), load_groups)
    for change in (
        lambda h: h.update(k=0), lambda h: h.update(k=8), lambda h: h.update(k=2.0),
        lambda h: h.update(k=True), lambda h: h.pop("k"),
        lambda h: h["expert_methods"].append(""), lambda h: h.update(expert_methods=[1, 2]),
    ):  # fmt: skip
        refused(path, lambda a, c=change: headed(a, c), load_groups)


def test_a_set_of_another_dimension_is_refused(saved):
    for other in (Ellipsoid(np.ones(3)), Box((1.0, 1.0, 1.0))):
        refused(saved, lambda a, o=other: headed(a, lambda h: h.update(features=o.to_json())))
    stored = Ellipsoid([1.0, 2.0], centred=True).to_json() | {"centred": 1}
    refused(saved, lambda a: headed(a, lambda h: h.update(features=stored)))


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


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_member_has_one_size_and_is_not_packed(method, tmp_path):
    path = tmp_path / "zeros.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        text = io.BytesIO()
        np.save(text, np.zeros(9))
        archive.writestr("zeros.npy", text.getvalue())
        info = archive.getinfo("zeros.npy")
        # what a directory says is for its writer to choose
        info.file_size = info.compress_size + (method == zipfile.ZIP_STORED)
        archive._didModify = True
    with pytest.raises(ValueError, match="another reader takes"):
        read_members(path, ["zeros"])


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
