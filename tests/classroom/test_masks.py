"""Lesson 6 on candidates: right answers pass, each typical mistake gets its own sentence, and what
the lesson says of its layers is true.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from enumeration import enumerate_verdicts

import classroom
from classroom import masks
from softgeom.bottleneck import scan
from softgeom.layer import SoftmaxLayer, Unbounded


@pytest.mark.parametrize(
    ("number", "answer"), [("1", {"A", "B", "C"}), ("1", "BCE"), ("2", {"A", "C", "D", "E", "G"})]
)
def test_right_answers(number, answer):
    feedback = classroom.check(f"asking-{number}", answer)
    assert feedback.right is True, feedback


@pytest.mark.parametrize(
    ("number", "answer", "says"),
    [
        ("1", {"A", "C", "E"}, "D wins for some features"),
        ("1", {"A", "B", "C", "E"}, "2 of them can be spared"),
        ("1", {"A", "D"}, "cannot block itself"),
        ("2", {"A", "B"}, "E is to be among"),
        ("2", set("ABCDEFG"), "D, E, F never win"),
        ("2", {"A", "C", "D", "E"}, "a larger set"),
    ],
)
def test_mistakes_are_named(number, answer, says):
    feedback = classroom.check(f"asking-{number}", answer)
    assert feedback.right is False
    assert says.lower() in feedback.text.lower()


def test_which_rivals_free_and_imprison_is_true():
    """By enumeration of all subsets, with nothing of the answers' own search."""
    W = masks.RIVALS.W * 4
    others = [i for i in range(5) if i != 3]

    def wins(rivals) -> bool:
        rows = W[[3, *rivals]].astype(np.int64)
        return (
            enumerate_verdicts(rows, np.zeros(len(rows), np.int64), ("unbounded",))[0].verdict
            == "argmaxable"
        )

    assert not wins(others)
    assert {"ABCDE"[i] for i in others if wins([k for k in others if k != i])} == masks.freeing()
    for k in range(1, 5):
        for some in itertools.combinations(others, k):
            least = not wins(some) and all(wins([i for i in some if i != r]) for r in some)
            assert masks.imprison("ABCDE"[i] for i in some) == least


def test_the_largest_mask_is_the_largest():
    layer = masks.VOCABULARY
    sizes = []
    for k in range(1, 8):
        for some in itertools.combinations(range(7), k):
            part = scan(SoftmaxLayer(layer.W[list(some)]), features=Unbounded()).counts
            if 4 in some and part["argmaxable"] == k:
                sizes.append(k)
    assert max(sizes) == masks.largest_with("E") == len(masks.best_mask("E"))
