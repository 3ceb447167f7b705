"""Candidates and minimal blocking sets against enumeration over all subsets."""

import itertools

import numpy as np
import pytest
from enumeration import enumerate_verdicts
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom.asking.candidates import ask_among, find_blocking_set
from softgeom.examples import uniform_layer
from softgeom.layer import Box, SoftmaxLayer, Unbounded
from softgeom.scanner import scan

SQUARE = SoftmaxLayer(
    [[2, 2], [2, -2], [-2, 2], [-2, -2], [1, 0]], tokens=["a", "b", "c", "d", "inside"]
)


def truth(W, t: int, rivals) -> bool:
    """Whether t wins among the rivals somewhere in R^d, by enumeration."""
    rows = np.array(W)[[t, *rivals]]
    own, *_ = enumerate_verdicts(rows, np.zeros(len(rows), np.int64), ("unbounded",))
    return own.verdict == "argmaxable"


def test_a_mask_frees_what_everybody_blocks():
    assert scan(SQUARE, [4])["inside"].evidence.verdict == "unargmaxable"
    free = ask_among(SQUARE, ["a", "c", "inside"])
    assert free.counts["possible"] == 3
    assert ask_among(SQUARE, ["a", "b", "c", "d"], ["inside"])[0].verdict == "impossible"


def test_among_all_classes_the_verdicts_are_those_of_a_scan():
    layer = uniform_layer(40, 2, seed=2)
    found, scanned = ask_among(layer, range(40)), scan(layer)
    assert [a.verdict == "possible" for a in found.answers] == [
        f.evidence.verdict == "argmaxable" for f in scanned.findings
    ]


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=3, max_size=7))
def test_blocking_sets_are_minimal_and_small(rows):
    W = np.array(rows)
    found = find_blocking_set(SoftmaxLayer(W), 0, features=Unbounded())
    assert (found is None) == truth(W, 0, range(1, len(W)))
    if found is None:
        return
    assert found.verify()
    assert found.minimal
    assert len(found.rivals) <= 3  # Helly: d + 1
    assert not truth(W, 0, found.rivals)
    for fewer in itertools.combinations(found.rivals.tolist(), len(found.rivals) - 1):
        assert not fewer or truth(W, 0, fewer)


def test_a_blocking_set_among_candidates_names_candidates_only():
    W = np.vstack([SQUARE.W * 2, SQUARE.W])  # class 9 sits inside both squares
    found = find_blocking_set(SoftmaxLayer(W), 9, range(5, 10), features=Box(1.0))
    assert found is not None
    assert set(found.rivals) < set(range(5, 9))
    assert found.class_ == 9


def test_bad_candidates_are_refused_in_a_sentence():
    for among, message in (
        ([], "candidates: no class is named"),
        ("ab", "not one text"),
        (["e"], "candidates: the model has no class 'e'"),
        ([7], "no class 7: .* below 5"),
        ([1, 1], "duplicate: 1"),
        ([1.5], "no class 1.5"),
    ):
        with pytest.raises(ValueError, match=message):
            ask_among(SQUARE, among)  # type: ignore[arg-type]
    twins = SoftmaxLayer([[1.0], [2.0]], tokens=["x", "x"])
    with pytest.raises(ValueError, match="are all called 'x'"):
        ask_among(twins, ["x"])
    assert ask_among(SQUARE, ["inside"])[0].verdict == "possible"  # alone
