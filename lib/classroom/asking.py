"""Lesson 6, ask more: who wins among candidates, and which documents come back together (001, Section 3; docs/beyond.md).

`RIVALS` is a class D between four others, of which three at most imprison it; `VOCABULARY` has captives that a mask can free. `INDEX` is a ring of six
documents, each first for some query.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np

from classroom import reading, recorded
from classroom.exercise import Exercise, Prediction
from softgeom.bottleneck import Witness
from softgeom.bottleneck.asking import Answers, ask_among, ask_together, largest_safe_set
from softgeom.layer import SoftmaxLayer, Unbounded

RIVALS = SoftmaxLayer([[-1.0, 2.0], [-2.0, -1.5], [2.0, -1.0], [0.25, 0.0], [1.5, 1.0]], tokens="ABCDE")
CAPTIVE = "D"
VOCABULARY = SoftmaxLayer(
    [[2.0, 0.25], [-1.0, 1.75], [-1.25, -1.5], [0.5, 0.25], [-0.25, -0.25], [0.0, 0.75], [0.75, -0.5]], tokens="ABCDEFG"
)
INDEX = SoftmaxLayer([[2, 0], [1, 2], [-1, 2], [-2, 0], [-1, -2], [1, -2]], tokens="ABCDEF")
WANTED, APART, OTHERS = (
    ("B", "C"),
    ("A", "C"),
    ("B", "D"),
)  # a pair for exercise 3; a pair, and whom its segment crosses


def _possible(found: Answers) -> list[bool]:
    return [answer.verdict == "possible" for answer in found.answers]


@cache
def wins(t: str, rivals: frozenset[str]) -> bool:
    """Whether class t of `RIVALS` wins somewhere in the plane when only it and these compete."""
    return _possible(ask_among(RIVALS, [t, *sorted(rivals)], [t], features=Unbounded()))[0]


def freeing() -> frozenset[str]:
    """The rivals of D without any one of whom it wins."""
    others = frozenset(RIVALS.tokens or ()) - {CAPTIVE}
    return frozenset(name for name in others if wins(CAPTIVE, others - {name}))


@cache
def losers(names: frozenset[str]) -> frozenset[str]:
    """The candidates of `VOCABULARY` that never win among these."""
    listed = sorted(names)
    return frozenset(
        n
        for n, wins in zip(listed, _possible(ask_among(VOCABULARY, listed, features=Unbounded())), strict=True)
        if not wins
    )


@cache
def largest_with(name: str) -> int:
    """The size of the largest candidate set of `VOCABULARY` that holds a class, and of which everybody can win."""
    others = sorted(frozenset(VOCABULARY.tokens or ()) - {name})
    sizes = range(len(others), 0, -1)
    return 1 + next(k for k in sizes if any(not losers(frozenset({name, *some})) for some in combinations(others, k)))


def best_mask(name: str) -> frozenset[str]:
    """A largest candidate set of `VOCABULARY` that holds a class, and of which everybody can win."""
    others = sorted(frozenset(VOCABULARY.tokens or ()) - {name})
    candidates = (frozenset({name, *some}) for some in combinations(others, largest_with(name) - 1))
    return next(some for some in candidates if not losers(some))


def imprison(rivals: Iterable[str]) -> bool:
    """Whether these imprison D, and none of them can be spared."""
    return _jailers_fault(frozenset(rivals)) is None


def query() -> np.ndarray:
    """A query (2,) that returns `WANTED`, from the library's evidence."""
    (answer,) = ask_together(INDEX, [WANTED]).answers
    assert isinstance(answer.evidence, Witness)
    return answer.evidence.point


@cache
def pairs_together() -> int:
    """How many pairs of `INDEX` are the first two of some query."""
    return sum(_possible(ask_together(INDEX, combinations(range(INDEX.classes), 2))))


def shares() -> list[Fraction]:
    """The weights (of `APART`, then of `OTHERS`) with which the means of both pairs are one point: where their segments cross."""
    (a, c), (b, d) = ([INDEX.W[(INDEX.tokens or ()).index(name)] for name in side] for side in (APART, OTHERS))
    s, t = np.linalg.solve(np.column_stack([c - a, b - d]), b - a)  # a + s (c - a) = b + t (d - b)
    found = [Fraction(float(value)).limit_denominator(1000) for value in (1 - s, s, 1 - t, t)]
    return found


def smallest_dimension() -> int:
    """The smallest dimension in which some index of any size returns every pair."""
    return next(d for d in range(1, 100) if largest_safe_set(d) >= 2)


def _compare_left_out(guess: int) -> str:
    return (
        f"You predicted {guess}; leaving out one rival frees D in **{len(freeing())} of {RIVALS.classes - 1} cases**."
    )


def _answer_left_out(guess: int) -> str:
    count, rivals = len(freeing()), RIVALS.classes - 1
    if guess == count:
        return "You saw it: where two rivals stand guard on the same side, each can be spared, but not both."
    if guess == 0:
        return "The thought is that a dead class stays dead; but its proof names rivals, and without a rival that every proof needs it falls."
    if guess == rivals:
        return "With three rivals that would be so, for each corner of the triangle is needed; with a fourth, one may stand in for another."
    return "Find the triangles of rivals that hold D: a rival frees it only if it is a corner of all of them."


def _compare_pairs(guess: int) -> str:
    total = INDEX.classes * (INDEX.classes - 1) // 2
    return f"You predicted {guess} of {total}; some query returns **{pairs_together()} pairs** as its first two."


def _answer_pairs(guess: int) -> str:
    count, n = pairs_together(), INDEX.classes
    if guess == count:
        return "You saw it: a line cuts two corners of a ring off only where they are neighbours."
    if guess == n * (n - 1) // 2:
        return "The thought is that a query between two documents finds both; but it finds first whoever lies between them, and on a ring somebody does."
    if guess == n // 2:
        return "Neighbours it is; but each document has two of them."
    if guess == 0:
        return "Turn a query slowly from one document to the next: halfway both are ahead of all others."
    return f"Too {'few' if guess < count else 'many'}: turn the query once around, and write down the first two wherever they change."


def _freed() -> tuple[int, int]:
    found = recorded.evidence("19_beyond_one_softmax", "001-mask-frees")
    return int(found["freed"]), int(found["lost"])


def _compare_real(guess: int) -> str:
    freed, lost = _freed()
    return f"You predicted {guess}%; of {lost} lost readings **{freed} can win** among those of their character, each with a feature vector that shows it."


def _answer_real(guess: int) -> str:
    freed, lost = _freed()
    right = 100 * freed / lost
    if abs(guess - right) <= 2:
        return "You saw it: with two or three candidates and many features nobody is surrounded. The model's choice of a softmax over everything lost them, not its features."
    if guess <= 5:
        return "The thought is that rows which training hardly moved stay lost; but a captive needs captors, and two or three candidates in that many dimensions surround nobody."
    return "To imprison a class takes captors all around it, up to one more than there are features; a character's other readings are two or three."


PREDICTIONS = {
    "guess": Prediction(reading.whole_number(0, RIVALS.classes - 1), _compare_left_out, _answer_left_out),
    "guess_pairs": Prediction(reading.whole_number(0, 15), _compare_pairs, _answer_pairs),
    "guess_real": Prediction(reading.whole_number(0, 100), _compare_real, _answer_real),
}


def _jailers_fault(answer: frozenset[str]) -> str | None:
    if CAPTIVE in answer:
        return "D cannot be its own jailer: name rivals."
    if not answer or wins(CAPTIVE, answer):
        return "Against these alone D wins for some features: they do not surround it."
    spare = sorted(name for name in answer if not wins(CAPTIVE, answer - {name}))
    return f"They imprison D, but {len(spare)} of them can be spared, one at a time." if spare else None


def _jailers_remark(answer: frozenset[str]) -> str:
    others = [
        set(some) for some in combinations("ABCE", 3) if set(some) != answer and _jailers_fault(frozenset(some)) is None
    ]
    also = f" It is not the only one: there are {len(others)} more." if others else ""
    return f"Without any one of them D escapes, so nobody here is idle.{also} In d features such a set never needs more than d + 1 members (Helly)."


def _mask_fault(answer: frozenset[str]) -> str | None:
    if "E" not in answer:
        return "E is to be among the candidates."
    if stuck := losers(answer):
        return f"Among these {', '.join(sorted(stuck))} never {'wins' if len(stuck) == 1 else 'win'}."
    if len(answer) < largest_with("E"):
        return "Everybody here can win, but a larger set of candidates with E does it, too."
    return None


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


def _shares_fault(answer: tuple[Fraction, ...]) -> str | None:
    sides = (APART, answer[:2]), (OTHERS, answer[2:])
    for names, weights in sides:
        if min(weights) < 0:
            return "A weight is negative: a mean has none."
        if sum(weights) != 1:
            return f"The weights of {' and '.join(names)} sum to {sum(weights)}; those of a mean sum to one."
    means = [
        tuple(
            sum(
                (w * Fraction(INDEX.W[(INDEX.tokens or ()).index(n), k]) for n, w in zip(names, weights, strict=True)),
                Fraction(0),
            )
            for k in (0, 1)
        )
        for names, weights in sides
    ]
    if means[0] != means[1]:
        return f"The mean of {' and '.join(APART)} is ({means[0][0]}, {means[0][1]}), that of {' and '.join(OTHERS)} ({means[1][0]}, {means[1][1]}): they differ."
    return None


def _dimension_fault(answer: int) -> str | None:
    right = smallest_dimension()
    if answer == right:
        return None
    if answer == 3:
        return "In three dimensions any five documents split into two sides whose hulls meet, and the smaller side has at most two: no query returns that pair before the others."
    if answer < right:
        return "In the plane you saw pairs that never come back; fewer dimensions do not help."
    return "There it works, but fewer dimensions will do."


EXERCISES = {
    "1": Exercise(
        reading.members("ABCDE"),
        _jailers_fault,
        _jailers_remark,
        ("Which triangles of rivals hold D inside?", "If no corner of the triangle can be left out, you have one."),
    ),
    "2": Exercise(
        reading.members("ABCDEFG"),
        _mask_fault,
        lambda names: (
            f"With {len(names)} candidates everybody has a chance, although among all seven several have none: a mask changes what a layer can say, and no weight was touched."
        ),
        (
            "Everybody can win exactly when every candidate is a corner of the hull of the candidates.",
            "Keep E, and ask which two or three others leave it on the outside; then add whom you can.",
        ),
    ),
    "3": Exercise(
        reading.array((2,), "x"),
        _query_fault,
        lambda _: (
            "Such a query is the whole proof that the pair can be returned together: compute six products, and look."
        ),
        (f"{WANTED[0]} and {WANTED[1]} are neighbours: which direction lies between them?",),
    ),
    "4": Exercise(
        reading.fractions(4, f"the weights of {', '.join(APART + OTHERS)}"),
        _shares_fault,
        lambda _: (
            "This is a proof: whatever the query, the mean score of the one pair is the mean score of the other, so the better half of the others is never behind both. That two sides "
            "of any d + 2 points meet so is Radon's theorem."
        ),
        (
            f"Where does the segment from {APART[0]} to {APART[1]} cross the one from {OTHERS[0]} to {OTHERS[1]}?",
            "Two weights are s and 1 - s, the two others t and 1 - t: two coordinates, two equations.",
        ),
    ),
    "5": Exercise(
        reading.whole_number(1, 10**6),
        _dimension_fault,
        lambda d: (
            f"In {d} dimensions points on the curve (cos t, sin t, cos 2t, sin 2t) have this property, however many they are; for sets of k it takes 2 k dimensions. Which sets an index of "
            "yours never returns, `softgeom ask INDEX --together` says one by one."
        ),
        (
            "Exercise 4 used four points in two dimensions. How many points does Radon's theorem need in d, and how large can the smaller side be?",
            "d + 2 points, so that the smaller side has at most d/2 + 1, rounded down: when is a pair too small for it?",
        ),
    ),
}
