"""Lesson 6: right answers pass, each typical mistake gets its own sentence, and what the lesson says of its layers is true."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import classroom
from classroom import asking
from softgeom.bottleneck import scan
from softgeom.bottleneck.proving.enumeration import enumerate_verdicts
from softgeom.layer import SoftmaxLayer, Unbounded


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        ("1", {"A", "B", "C"}),
        ("1", "BCE"),
        ("2", {"A", "C", "D", "E", "G"}),
        ("3", [0, 1]),
        ("4", ["1/3", "2/3", "2/3", "1/3"]),
        ("5", 4),
    ],
)
def test_right_answers(number, answer):
    feedback = classroom.check(f"asking-{number}", answer)
    assert feedback.right is True, feedback


@pytest.mark.parametrize(
    ("number", "answer", "says"),
    [
        ("1", {"A", "C", "E"}, "D wins for some features"),
        ("1", {"A", "B", "C", "E"}, "2 of them can be spared"),
        ("1", {"A", "D"}, "its own jailer"),
        ("2", {"A", "B"}, "E is to be among"),
        ("2", set("ABCDEFG"), "D, E, F never win"),
        ("2", {"A", "C", "D", "E"}, "a larger set"),
        ("3", [0, 0], "length zero"),
        ("3", [1, 0], "returns A and"),
        ("3", [1, 1], "returns B and A"),
        ("3", [-2, 3], "tie for the second place"),
        ("4", ["1/2", "1/2", "1/2", "1/2"], "they differ"),
        ("4", ["1/3", "1/3", "2/3", "1/3"], "sum to 2/3"),
        ("4", ["-1", "2", "1/2", "1/2"], "negative"),
        ("5", 2, "in the plane you saw"),
        ("5", 3, "five documents"),
        ("5", 6, "fewer dimensions will do"),
    ],
)
def test_mistakes_are_named(number, answer, says):
    feedback = classroom.check(f"asking-{number}", answer)
    assert feedback.right is False
    assert says.lower() in feedback.text.lower()


def test_the_lesson_tells_the_truth_about_its_layers():
    """By enumeration of all subsets and of the queries between the ties, with nothing of the answers' own search."""
    W = asking.RIVALS.W * 4
    others = [i for i in range(5) if i != 3]

    def wins(rivals) -> bool:
        rows = W[[3, *rivals]].astype(np.int64)
        return enumerate_verdicts(rows, np.zeros(len(rows), np.int64), ("unbounded",))[0].verdict == "argmaxable"

    assert not wins(others)
    assert {"ABCDE"[i] for i in others if wins([k for k in others if k != i])} == asking.freeing()
    for k in range(1, 5):
        for some in itertools.combinations(others, k):
            least = not wins(some) and all(wins([i for i in some if i != r]) for r in some)
            assert asking.imprison("ABCDE"[i] for i in some) == least
    turns = np.linspace(0, 2 * np.pi, 3600, endpoint=False) + 1e-4
    logits = np.column_stack([np.cos(turns), np.sin(turns)]) @ asking.INDEX.W.T
    seen = {frozenset(row) for row in np.argsort(-logits, axis=1)[:, :2].tolist()}
    assert len(seen) == asking.pairs_together()
    assert set(scan(asking.INDEX, features=Unbounded()).table["verdict"]) == {"argmaxable"}


def test_the_largest_mask_is_the_largest():
    layer = asking.VOCABULARY
    sizes = []
    for k in range(1, 8):
        for some in itertools.combinations(range(7), k):
            part = scan(SoftmaxLayer(layer.W[list(some)]), features=Unbounded()).counts
            if 4 in some and part["argmaxable"] == k:
                sizes.append(k)
    assert max(sizes) == asking.largest_with("E") == len(asking.best_mask("E"))


def test_predictions_answer_the_thought_behind_them():
    assert "You saw it" in classroom.reveal("asking-guess", 2).text
    assert "stays dead" in classroom.reveal("asking-guess", 0).text
    assert "stand in for another" in classroom.reveal("asking-guess", 4).text
    assert "You saw it" in classroom.reveal("asking-guess_pairs", 6).text
    assert "lies between them" in classroom.reveal("asking-guess_pairs", 15).text
    assert "two of them" in classroom.reveal("asking-guess_pairs", 3).text
    assert "surround nobody" in classroom.reveal("asking-guess_real", 0).text
    assert "You saw it" in classroom.reveal("asking-guess_real", 100).text
