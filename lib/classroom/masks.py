"""Lesson 6, its first half and its end: who wins among candidates (001, Section 3; docs/beyond.md).

`RIVALS` is a class D between four others, of which three at most imprison it; `VOCABULARY` has
captives that a mask can free.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import combinations

from classroom import reading, recorded
from classroom.exercise import Exercise, Prediction
from softgeom.bottleneck.asking import ask_among
from softgeom.layer import SoftmaxLayer, Unbounded

RIVALS = SoftmaxLayer(
    [[-1.0, 2.0], [-2.0, -1.5], [2.0, -1.0], [0.25, 0.0], [1.5, 1.0]], tokens="ABCDE"
)
CAPTIVE = "D"
VOCABULARY = SoftmaxLayer(
    [
        [2.0, 0.25],
        [-1.0, 1.75],
        [-1.25, -1.5],
        [0.5, 0.25],
        [-0.25, -0.25],
        [0.0, 0.75],
        [0.75, -0.5],
    ],
    tokens="ABCDEFG",
)


@cache
def wins(t: str, rivals: frozenset[str]) -> bool:
    """Whether class t of `RIVALS` wins somewhere in the plane when only it and these compete."""
    (answer,) = ask_among(RIVALS, [t, *sorted(rivals)], [t], features=Unbounded()).answers
    return answer.verdict == "possible"


def freeing() -> frozenset[str]:
    """The rivals of D without any one of whom it wins."""
    others = frozenset(RIVALS.tokens or ()) - {CAPTIVE}
    return frozenset(name for name in others if wins(CAPTIVE, others - {name}))


@cache
def losers(names: frozenset[str]) -> frozenset[str]:
    """The candidates of `VOCABULARY` that never win among these."""
    listed = sorted(names)
    found = ask_among(VOCABULARY, listed, features=Unbounded()).answers
    return frozenset(
        name for name, answer in zip(listed, found, strict=True) if answer.verdict != "possible"
    )


@cache
def largest_with(name: str) -> int:
    """The size of the largest candidate set of `VOCABULARY` that holds a class, and of which
    everybody can win.
    """
    others = sorted(frozenset(VOCABULARY.tokens or ()) - {name})
    sizes = range(len(others), 0, -1)
    return 1 + next(
        k
        for k in sizes
        if any(not losers(frozenset({name, *some})) for some in combinations(others, k))
    )


def best_mask(name: str) -> frozenset[str]:
    """A largest candidate set of `VOCABULARY` that holds a class, and of which everybody can
    win.
    """
    others = sorted(frozenset(VOCABULARY.tokens or ()) - {name})
    candidates = (frozenset({name, *some}) for some in combinations(others, largest_with(name) - 1))
    return next(some for some in candidates if not losers(some))


def imprison(rivals: Iterable[str]) -> bool:
    """Whether these imprison D, and none of them can be spared."""
    return _blocking_fault(frozenset(rivals)) is None


def _compare_left_out(guess: int) -> str:
    return (
        f"You predicted {guess}; leaving out one rival frees D in **{len(freeing())} of "
        f"{RIVALS.classes - 1} cases**."
    )


def _answer_left_out(guess: int) -> str:
    count, rivals = len(freeing()), RIVALS.classes - 1
    if guess == count:
        return (
            "You saw it: where two rivals stand guard on the same side, each can be spared, but "
            "not both."
        )
    if guess == 0:
        return (
            "The thought is that a dead class stays dead; but its proof names rivals, and "
            "without a rival that every proof needs it falls."
        )
    if guess == rivals:
        return (
            "With three rivals that would be so, for each corner of the triangle is needed; with "
            "a fourth, one may stand in for another."
        )
    return (
        "Find the triangles of rivals that hold D: a rival frees it only if it is a corner of "
        "all of them."
    )


def _freed() -> tuple[int, int]:
    found = recorded.evidence("19_beyond_one_softmax", "001-mask-frees")
    return int(found["freed"]), int(found["lost"])


def _compare_real(guess: int) -> str:
    freed, lost = _freed()
    return (
        f"You predicted {guess}%; of {lost} lost readings **{freed} can win** among those of "
        f"their character, each with a feature vector that shows it."
    )


def _answer_real(guess: int) -> str:
    freed, lost = _freed()
    right = 100 * freed / lost
    if abs(guess - right) <= 2:
        return (
            "You saw it: with two or three candidates and many features nobody is surrounded. "
            "The model's choice of a softmax over everything lost them, not its features."
        )
    if guess <= 5:
        return (
            "The thought is that rows which training hardly moved stay lost; but a captive needs "
            "captors, and two or three candidates in that many dimensions surround nobody."
        )
    return (
        "To imprison a class takes captors all around it, up to one more than there are "
        "features; a character's other readings are two or three."
    )


PREDICTIONS = {
    "guess": Prediction(
        reading.whole_number(0, RIVALS.classes - 1), _compare_left_out, _answer_left_out
    ),
    "guess_real": Prediction(reading.whole_number(0, 100), _compare_real, _answer_real),
}


def _blocking_fault(answer: frozenset[str]) -> str | None:
    if CAPTIVE in answer:
        return "D cannot block itself: name rivals."
    if not answer or wins(CAPTIVE, answer):
        return "Against these alone D wins for some features: they do not surround it."
    spare = sorted(name for name in answer if not wins(CAPTIVE, answer - {name}))
    return (
        f"They imprison D, but {len(spare)} of them can be spared, one at a time."
        if spare
        else None
    )


def _blocking_remark(answer: frozenset[str]) -> str:
    others = [
        set(some)
        for some in combinations("ABCE", 3)
        if set(some) != answer and _blocking_fault(frozenset(some)) is None
    ]
    also = f" It is not the only one: there are {len(others)} more." if others else ""
    return (
        f"Without any one of them D escapes, so nobody here is idle.{also} In d features such a "
        f"set never needs more than d + 1 members (Helly)."
    )


def _mask_fault(answer: frozenset[str]) -> str | None:
    if "E" not in answer:
        return "E is to be among the candidates."
    if stuck := losers(answer):
        return (
            f"Among these {', '.join(sorted(stuck))} never {'wins' if len(stuck) == 1 else 'win'}."
        )
    if len(answer) < largest_with("E"):
        return "Everybody here can win, but a larger set of candidates with E does it, too."
    return None


EXERCISES = {
    "1": Exercise(
        reading.members("ABCDE"),
        _blocking_fault,
        _blocking_remark,
        (
            "Which triangles of rivals hold D inside?",
            "If no corner of the triangle can be left out, you have one.",
        ),
    ),
    "2": Exercise(
        reading.members("ABCDEFG"),
        _mask_fault,
        lambda names: (
            f"With {len(names)} candidates everybody has a chance, although among all seven "
            f"several have none: a mask changes what a layer can say, and no weight was "
            f"touched."
        ),
        (
            "Everybody can win exactly when every candidate is a corner of the hull of the "
            "candidates.",
            "Keep E, and ask which two or three others leave it on the outside; then add "
            "whom you can.",
        ),
    ),
}
