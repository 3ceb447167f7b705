"""Lesson 6, its middle: which documents come back together (001, Section 3; docs/beyond.md).

`INDEX` is a ring of six documents, each first for some query; a query returns the two with the
largest products.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np

from classroom import reading
from classroom.exercise import Exercise, Prediction
from softgeom.bottleneck import Witness
from softgeom.bottleneck.asking import ask_together, largest_safe_set
from softgeom.layer import SoftmaxLayer

INDEX = SoftmaxLayer([[2, 0], [1, 2], [-1, 2], [-2, 0], [-1, -2], [1, -2]], tokens="ABCDEF")
WANTED = ("B", "C")  # the pair of exercise 3
APART, OTHERS = ("A", "C"), ("B", "D")  # a pair that never comes back, and whom its segment crosses


def _document(name: str) -> np.ndarray:
    return INDEX.W[(INDEX.tokens or ()).index(name)]


def query() -> np.ndarray:
    """A query (2,) that returns `WANTED`, from the library's evidence."""
    (answer,) = ask_together(INDEX, [WANTED]).answers
    assert isinstance(answer.evidence, Witness)
    return answer.evidence.point


@cache
def pairs_together() -> int:
    """How many pairs of `INDEX` are the first two of some query."""
    found = ask_together(INDEX, combinations(range(INDEX.classes), 2)).answers
    return sum(answer.verdict == "possible" for answer in found)


def shares() -> list[Fraction]:
    """The weights (of `APART`, then of `OTHERS`) with which the means of both pairs are one point:
    where their segments cross.
    """
    (a, c), (b, d) = ([_document(name) for name in side] for side in (APART, OTHERS))
    s, t = np.linalg.solve(np.column_stack([c - a, b - d]), b - a)  # a + s (c - a) = b + t (d - b)
    return [Fraction(float(value)).limit_denominator(1000) for value in (1 - s, s, 1 - t, t)]


def smallest_dimension() -> int:
    """The smallest dimension in which some index of any size returns every pair."""
    return next(d for d in range(1, 100) if largest_safe_set(d) >= 2)


def _compare_pairs(guess: int) -> str:
    total = INDEX.classes * (INDEX.classes - 1) // 2
    return (
        f"You predicted {guess} of {total}; some query returns **{pairs_together()} pairs** as "
        f"its first two."
    )


def _answer_pairs(guess: int) -> str:
    count, n = pairs_together(), INDEX.classes
    if guess == count:
        return "You saw it: a line cuts two corners of a ring off only where they are neighbours."
    if guess == n * (n - 1) // 2:
        return (
            "The thought is that a query between two documents finds both; but it finds first "
            "whoever lies between them, and on a ring somebody does."
        )
    if guess == n // 2:
        return "Neighbours it is; but each document has two of them."
    if guess == 0:
        return (
            "Turn a query slowly from one document to the next: halfway both are ahead of all "
            "others."
        )
    return (
        f"Too {'few' if guess < count else 'many'}: turn the query once around, and write down "
        f"the first two wherever they change."
    )


PREDICTIONS = {
    "guess_pairs": Prediction(reading.whole_number(0, 15), _compare_pairs, _answer_pairs)
}


def _query_fault(x: np.ndarray) -> str | None:
    logits = INDEX.logits(x)
    order = np.argsort(-logits, kind="stable")
    if not np.any(x):
        return "A query of length zero scores every document alike: give it a direction."
    names = [INDEX.token(int(i)) for i in order]
    if set(names[:2]) != set(WANTED):
        return f"That query returns {names[0]} and {names[1]} first."
    if logits[order[1]] == logits[order[2]]:
        return f"There {names[1]} and {names[2]} tie for the second place: turn x a little."
    return None


def _mean(names: Iterable[str], weights: Iterable[Fraction]) -> list[Fraction]:
    rows = [
        [w * Fraction(float(v)) for v in _document(name)]
        for name, w in zip(names, weights, strict=True)
    ]
    return [sum(column, Fraction(0)) for column in zip(*rows, strict=True)]


def _shares_fault(answer: tuple[Fraction, ...]) -> str | None:
    sides = (APART, answer[:2]), (OTHERS, answer[2:])
    for names, weights in sides:
        if min(weights) < 0:
            return "A weight is negative: a mean has none."
        if sum(weights) != 1:
            return (
                f"The weights of {' and '.join(names)} sum to {sum(weights)}; those of a mean "
                f"sum to one."
            )
    means = [_mean(names, weights) for names, weights in sides]
    if means[0] != means[1]:
        apart, others = (f"({x}, {y})" for x, y in means)
        return (
            f"The mean of {' and '.join(APART)} is {apart}, that of {' and '.join(OTHERS)} "
            f"{others}: they differ."
        )
    return None


def _dimension_fault(answer: int) -> str | None:
    right = smallest_dimension()
    if answer == right:
        return None
    if answer == 3:
        return (
            "In three dimensions any five documents split into two sides whose hulls meet, and "
            "the smaller side has at most two: no query returns that pair before the others."
        )
    if answer < right:
        return "In the plane you saw pairs that never come back; fewer dimensions do not help."
    return "There it works, but fewer dimensions will do."


EXERCISES = {
    "3": Exercise(
        reading.array((2,), "x"),
        _query_fault,
        lambda _: (
            "Such a query is the whole proof that the pair can be returned together: compute "
            "six products, and look."
        ),
        (f"{WANTED[0]} and {WANTED[1]} are neighbours: which direction lies between them?",),
    ),
    "4": Exercise(
        reading.fractions(4, f"the weights of {', '.join(APART + OTHERS)}"),
        _shares_fault,
        lambda _: (
            "This is a proof: whatever the query, the mean score of the one pair is the mean "
            "score of the other, so the better half of the others is never behind both. That "
            "two sides "
            "of any d + 2 points meet so is Radon's theorem."
        ),
        (
            f"Where does the segment from {APART[0]} to {APART[1]} cross the one from "
            f"{OTHERS[0]} to {OTHERS[1]}?",
            "Two weights are s and 1 - s, the two others t and 1 - t: two coordinates, two "
            "equations.",
        ),
    ),
    "5": Exercise(
        reading.whole_number(1, 10**6),
        _dimension_fault,
        lambda d: (
            f"In {d} dimensions points on the curve (cos t, sin t, cos 2t, sin 2t) have this "
            f"property, however many they are; for sets of k it takes 2 k dimensions. Which "
            f"sets an index of "
            "yours never returns, `softgeom ask INDEX --together` says one by one."
        ),
        (
            "Exercise 4 used four points in two dimensions. How many points does Radon's "
            "theorem need in d, and how large can the smaller side be?",
            "d + 2 points, so that the smaller side has at most d/2 + 1, rounded down: when "
            "is a pair too small for it?",
        ),
    ),
}
