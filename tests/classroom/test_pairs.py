"""Lesson 6 on documents: right answers pass, each typical mistake gets its own sentence, and what
the lesson says of its index is true.
"""

from __future__ import annotations

import numpy as np
import pytest

import classroom
from classroom import pairs
from softgeom.bottleneck import scan
from softgeom.layer import Unbounded


@pytest.mark.parametrize(
    ("number", "answer"), [("3", [0, 1]), ("4", ["1/3", "2/3", "2/3", "1/3"]), ("5", 4)]
)
def test_right_answers(number, answer):
    feedback = classroom.check(f"asking-{number}", answer)
    assert feedback.right is True, feedback


@pytest.mark.parametrize(
    ("number", "answer", "says"),
    [
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


def test_the_pairs_that_come_back_are_those_met_on_a_turn():
    """By the queries between the ties, with nothing of the answers' own search."""
    turns = np.linspace(0, 2 * np.pi, 3600, endpoint=False) + 1e-4
    logits = np.column_stack([np.cos(turns), np.sin(turns)]) @ pairs.INDEX.W.T
    seen = {frozenset(row) for row in np.argsort(-logits, axis=1)[:, :2].tolist()}
    assert len(seen) == pairs.pairs_together()
    assert set(scan(pairs.INDEX, features=Unbounded()).table["verdict"]) == {"argmaxable"}
