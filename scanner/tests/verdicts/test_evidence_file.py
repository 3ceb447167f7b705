"""What was written comes back; whatever else may be written otherwise is in the corpus of forgeries
(tests/forgeries).
"""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from safetensors.numpy import load_file

from softgeom.asking.experts import Chosen, Router
from softgeom.blocks import block_path, load_block
from softgeom.certifying import container, evidence_file
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import (
    Answer,
    BlockingClasses,
    Comparisons,
    Finding,
    Twin,
    Unknown,
    Witness,
)
from softgeom.features import Ball, Box, Unbounded
from softgeom.layer import SoftmaxLayer, fingerprint
from softgeom.readout import PLAIN
from softgeom.verdict_table import read_verdicts, verdict_table

LAYER = SoftmaxLayer(np.arange(14.0).reshape(7, 2), np.arange(7.0))
NAMED = SoftmaxLayer(LAYER.W, LAYER.b, ["a", "=1", "\n", "\ud800", "", "NA", "é"])
SET = Box(2.0, low=(-1.0, -0.5))
HALF = np.array([Fraction(1, 2), Fraction(-1, 3)], dtype=object)
SEVENTHS = np.array([Fraction(1, 7), Fraction(2)])
FINDINGS = [
    Finding(0, Witness(np.array([0.5, 1.0], np.float32)), "look", 3, 0.25, 0.125),
    Finding(1, BlockingClasses(np.array([2, 0]), np.array([0.75, 0.5])), "lp", 0, -0.5, np.nan),
    Finding(2, Twin(5), "twin", 0, 0.0, np.nan),
    Finding(3, Unknown(np.inf, "no time"), "lp", 1, np.inf, np.nan),
    Finding(4, Witness(HALF), "exact", 0, 5e-324, 0.0),
    Finding(5, BlockingClasses(np.array([1, 3]), SEVENTHS), "", 0, 0.0, np.nan),
    Finding(6, Witness(np.array([0.1, 0.2])), "ascent", 9, 1e300, 1.0),
]  # fmt: skip
COMPARED = Comparisons(np.array([1, 1, 0]), np.array([3, 2, 2]), np.array([1.0, 2.0, 3.0]))
ANSWERS = [
    Answer(Order([[1, 0], [2, 3]]), COMPARED, "lp", 2, -1.0),
    Answer(Order([[6]], rest=True), Witness(HALF), "", 0, np.inf),
    Answer(Order([[2], [1], [0]]), Unknown(0.5, "open"), "", 0, 0.5),
    Answer(Order([[6], [5]]), Comparisons(np.array([6]), np.array([5]), np.ones(1)), "", 0, -0.25),
]


@pytest.fixture
def saved(tmp_path):
    evidence_file.save_parts(tmp_path / "scan", LAYER, [(SET, FINDINGS[::-1])])
    return tmp_path / "scan"


def test_findings_come_back_in_the_order_of_the_classes(saved):
    ((features, found),) = evidence_file.load_parts(saved, LAYER)
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
    evidence_file.save_parts(saved, LAYER, [(SET, [])])
    assert evidence_file.load_parts(saved, LAYER) == [(SET, [])]


def test_answers_come_back_and_experts_group_by_group(tmp_path):
    path = tmp_path / "answers"
    evidence_file.save_answers(path, LAYER, SET, ANSWERS)
    features, found, k, _ = evidence_file.load_answers(path, LAYER)
    assert (features, k) == (SET, None)
    assert [a.order for a in found] == [a.order for a in ANSWERS]
    assert [a.margin for a in found] == [-1.0, np.inf, 0.5, -0.25]
    pairs = zip(found[0].evidence.above, found[0].evidence.below, strict=True)
    assert [*map(tuple, pairs)] == [(0, 2), (1, 2), (1, 3)]
    assert found[0].evidence.weights.tolist() == [3.0, 2.0, 1.0]
    open_ = Answer(Order([[3]]), Unknown(np.inf, "open"), "m", 0, np.inf)
    Router(LAYER, SET, [Chosen(6, 2, ANSWERS[3:]), Chosen(3, 2, [open_])]).save(path)
    again = Router.load(path, LAYER)
    said = [(e.expert, e.k, e.verdict, e.method) for e in again.experts]
    assert said == [(3, 2, "undecided", "m"), (6, 2, "impossible", "")]
    assert evidence_file.read_header(path)["holds"] == "experts"
    with pytest.raises(ValueError, match="it holds experts, not scan"):
        evidence_file.load_parts(path, LAYER)


def test_ceilings_come_back_with_the_points_that_are_used(tmp_path):
    points = np.array([[1.0, 2.0], [9.0, 9.0], [3.0, 4.0]])
    odds = evidence_file.Odds(
        np.array([2, 5]), points, np.array([2, 0]), np.array([0.5, 1.0]), np.zeros(2)
    )
    evidence_file.save_odds(tmp_path / "c", LAYER, SET, odds)
    features, found, readout = evidence_file.load_odds(tmp_path / "c", LAYER)
    assert features == SET
    assert readout == PLAIN
    assert found.points[found.at].tolist() == [[3.0, 4.0], [1.0, 2.0]]
    assert (len(found.points), found.classes.tolist(), found.ceiling[0]) == (2, [2, 5], 0.5)


def test_any_reader_of_safetensors_reads_the_file(saved):
    arrays = load_file(saved)
    assert {name: values.dtype.str for name, values in arrays.items()} == evidence_file.ARRAYS
    assert arrays["named"].tolist() == list(range(7))
    assert json.loads(arrays["methods"].tobytes())[0] == "look"


def test_the_table_is_read_without_the_layer(tmp_path):
    """Names of any kind come back, and which class cannot win over which set."""
    wider = [(Unbounded(), FINDINGS[1:2])]
    evidence_file.save_parts(tmp_path / "evidence.safetensors", NAMED, [(SET, FINDINGS), *wider])
    expected = verdict_table(NAMED, SET, FINDINGS, wider)
    for path in (tmp_path, tmp_path / "evidence.safetensors"):
        assert read_verdicts(path).equals(expected)
    path = tmp_path / "evidence.safetensors"
    evidence_file.save_parts(path, LAYER, [(SET, FINDINGS)])
    assert read_verdicts(path)["token"].tolist() == list("0123456")
    other = SoftmaxLayer(LAYER.W, LAYER.b, "abcdefg")
    evidence_file.save_parts(path, NAMED, [(SET, FINDINGS)])
    evidence_file.load_parts(path, LAYER)
    with pytest.raises(ValueError, match="names the classes otherwise"):
        evidence_file.load_parts(path, other)


def test_nothing_is_written_twice(tmp_path):
    def save(*findings: Finding) -> None:
        evidence_file.save_parts(tmp_path / "x", LAYER, [(SET, findings)])

    with pytest.raises(ValueError, match="A class is listed twice"):
        save(*FINDINGS[:1] * 2)
    twice = Finding(1, BlockingClasses(np.array([2, 2]), np.ones(2)), "", 0, 0.0, np.nan)
    with pytest.raises(ValueError, match="weighs the same comparison twice"):
        save(twice)
    save(replace(twice, evidence=BlockingClasses(np.array([2, 2]), np.array([1.0, 0.0]))))
    assert evidence_file.load_parts(tmp_path / "x", LAYER)[0][1][0].evidence.rivals.tolist() == [2]


def test_a_block_is_about_its_classes_and_set(tmp_path):
    layer, won = SoftmaxLayer([[1.0], [-1.0]]), Witness(np.array([0.5]))
    findings = [Finding(0, won, "", 0, 0.5, 0.0), Finding(1, Unknown(1.0, ""), "", 0, 1.0, np.nan)]
    known, both = fingerprint(layer), np.array([1, 0])
    path = block_path(tmp_path, known, "search 0", Ball(1.0), both)
    evidence_file.save_parts(path, layer, [(Ball(1.0), findings)], known)
    assert [f.index for f in load_block(path, layer, Ball(1.0), both, known)] == [1, 0]
    for features, classes in ((Ball(2.0), both), (Ball(1.0), both[:1]), (Ball(1.0), np.arange(3))):
        with pytest.raises(ValueError, match="about other classes or another feature set"):
            load_block(path, layer, features, classes, known)
    with pytest.raises(ValueError, match="belongs to another layer"):
        load_block(path, layer, Ball(1.0), both, fingerprint(LAYER))


def test_a_container_holds_any_shapes_and_says_when_it_is_not_one(tmp_path):
    arrays = {"b": np.zeros((0, 3)), "a": np.arange(3, dtype=np.int8), "c": np.float32(1.5)[None]}
    container.write(tmp_path / "x", {"said": "é\n"}, arrays)
    texts, found = container.read(tmp_path / "x")
    assert texts == {"said": "é\n"}
    assert {name: found[name].tolist() for name in found} == {"b": [], "a": [0, 1, 2], "c": [1.5]}
    container.write(tmp_path / "x", {}, {"W": np.ones((2, 2), ">f8")})
    assert container.read(tmp_path / "x")[1]["W"].dtype.str == "<f8"
    with pytest.raises(ValueError, match="no such file"):
        container.read(tmp_path / "y")
