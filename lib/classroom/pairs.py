"""Lesson 6, its middle: which documents come back together (001, Section 3; scanner/docs/beyond.md).

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
from classroom.exercise import Prediction
from classroom.words import Words
from softgeom.asking import ask_together, largest_safe_set
from softgeom.certifying.verdict import Witness
from softgeom.layer import SoftmaxLayer

INDEX = SoftmaxLayer([[2, 0], [1, 2], [-1, 2], [-2, 0], [-1, -2], [1, -2]], tokens="ABCDEF")
WANTED = ("B", "C")  # the pair of exercise 3
APART, OTHERS = ("A", "C"), ("B", "D")  # a pair that never comes back, and whom its segment crosses

SAY = Words("""
pairs found: You predicted {guess} of {total}; some query returns **{count} pairs** as its first
  two.
pairs: You saw it: a line cuts two corners of a ring off only where they are neighbours.
pairs all: The thought is that a query between two documents finds both; but it finds first whoever
  lies between them, and on a ring somebody does.
pairs half: Neighbours it is; but each document has two of them.
pairs none: Turn a query slowly from one document to the next: halfway both are ahead of all others.
pairs too: Too {few}: turn the query once around, and write down the first two wherever they change.
query zero: A query of length zero scores every document alike: give it a direction.
query others: That query returns {names[0]} and {names[1]} first.
query tie: There {names[1]} and {names[2]} tie for the second place: turn x a little.
shares negative: A weight is negative: a mean has none.
shares sum: The weights of {names} sum to {total}; those of a mean sum to one.
shares differ: The mean of {names} is {apart}, that of {others} {there}: they differ.
dimension three: In three dimensions any five documents split into two sides whose hulls meet, and
  the smaller side has at most two: no query returns that pair before the others.
dimension less: In the plane you saw pairs that never come back; fewer dimensions do not help.
dimension more: There it works, but fewer dimensions will do.
right 3: Such a query is the whole proof that the pair can be returned together: compute six
  products, and look.
hint 3: B and C are neighbours: which direction lies between them?
right 4: This is a proof: whatever the query, the mean score of the one pair is the mean score of
  the other, so the better half of the others is never behind both. That two sides of any d + 2
  points meet so is Radon's theorem.
hint 4: Where does the segment from A to C cross the one from B to D?
hint 4b: Two weights are s and 1 - s, the two others t and 1 - t: two coordinates, two equations.
right 5: In {answer} dimensions points on the curve (cos t, sin t, cos 2t, sin 2t) have this
  property, however many they are; for sets of k it takes 2 k dimensions. Which sets an index of
  yours never returns, `softgeom ask INDEX --together` says one by one.
hint 5: Exercise 4 used four points in two dimensions. How many points does Radon's theorem need in
  d, and how large can the smaller side be?
hint 5b: d + 2 points, so that the smaller side has at most d/2 + 1, rounded down: when is a pair
  too small for it?
""")


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
    return SAY("pairs found", guess=guess, total=total, count=pairs_together())


def _answer_pairs(guess: int) -> str:
    count, n = pairs_together(), INDEX.classes
    thoughts = {0: "pairs none", n // 2: "pairs half", n * (n - 1) // 2: "pairs all"}
    name = (thoughts | {count: "pairs"}).get(guess, "pairs too")
    return SAY(name, few="few" if guess < count else "many")


PREDICTIONS = {
    "guess_pairs": Prediction(reading.whole_number(0, 15), _compare_pairs, _answer_pairs)
}


def _query_fault(x: np.ndarray) -> str | None:
    logits = INDEX.logits(x)
    order = np.argsort(-logits, kind="stable")
    if not np.any(x):
        return SAY("query zero")
    names = [INDEX.token(int(i)) for i in order]
    if set(names[:2]) != set(WANTED):
        return SAY("query others", names=names)
    return SAY("query tie", names=names) if logits[order[1]] == logits[order[2]] else None


def _mean(names: Iterable[str], weights: Iterable[Fraction]) -> list[Fraction]:
    rows = [
        [w * Fraction(float(v)) for v in _document(name)]
        for name, w in zip(names, weights, strict=True)
    ]
    return [sum(column, Fraction(0)) for column in zip(*rows, strict=True)]


def _shares_fault(answer: tuple[Fraction, ...]) -> str | None:
    sides = (APART, answer[:2]), (OTHERS, answer[2:])
    pairs = [" and ".join(names) for names, _ in sides]
    for pair, (_, weights) in zip(pairs, sides, strict=True):
        if min(weights) < 0:
            return SAY("shares negative")
        if sum(weights) != 1:
            return SAY("shares sum", names=pair, total=sum(weights))
    means = [_mean(names, weights) for names, weights in sides]
    if means[0] == means[1]:
        return None
    apart, there = (f"({x}, {y})" for x, y in means)
    return SAY("shares differ", names=pairs[0], apart=apart, others=pairs[1], there=there)


def _dimension_fault(answer: int) -> str | None:
    right = smallest_dimension()
    if answer == right:
        return None
    if answer == 3:
        return SAY("dimension three")
    return SAY("dimension less" if answer < right else "dimension more")


EXERCISES = {
    "3": SAY.exercise(3, reading.array((2,), "x"), _query_fault),
    "4": SAY.exercise(
        4, reading.fractions(4, f"the weights of {', '.join(APART + OTHERS)}"), _shares_fault
    ),
    "5": SAY.exercise(5, reading.whole_number(1, 10**6), _dimension_fault),
}
