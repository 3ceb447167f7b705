"""Lesson 6, its first half and its end: who wins among candidates (001, Section 3; scanner/docs/beyond.md).

`RIVALS` is a class D between four others, of which at most three block it; `VOCABULARY` has
classes that can win only under a mask.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import combinations

from classroom import reading, recorded
from classroom.exercise import Prediction
from classroom.words import Words
from softgeom.asking import ask_among
from softgeom.layer import SoftmaxLayer, Unbounded

RIVALS = SoftmaxLayer(
    [[-1.0, 2.0], [-2.0, -1.5], [2.0, -1.0], [0.25, 0.0], [1.5, 1.0]], tokens="ABCDE"
)
LOST = "D"
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


SAY = Words("""
left out: You predicted {guess}; leaving out one rival frees D in **{count} of {rivals} cases**.
out: You saw it: where two rivals stand guard on the same side, each can be spared, but not both.
out none: The thought is that a lost class stays lost; but its proof names rivals, and without a
  rival that every proof needs it falls.
out all: With three rivals that would be so, for each corner of the triangle is needed; with a
  fourth, one may stand in for another.
out some: Find the triangles of rivals that hold D: a rival frees it only if it is a corner of all
  of them.
real found: You predicted {guess}%; of {lost} lost readings **{count} can win** among those of their
  character, each with a feature vector that shows it.
real: You saw it: with two or three candidates and many features nobody is surrounded. The model's
  choice of a softmax over everything lost them, not its features.
real few: The thought is that rows which training hardly moved stay lost; but a lost class
  needs captors, and two or three candidates in that many dimensions surround nobody.
real some: To block a class takes captors all around it, up to one more than there are features;
  a character's other readings are two or three.
blocking self: D cannot block itself: name rivals.
blocking none: Against these alone D wins for some features: they do not surround it.
blocking spare: They block D, but {spare} of them can be spared, one at a time.
right 1: Without any one of them D escapes, so nobody here is idle.{also} In d features such a set
  never needs more than d + 1 members (Helly).
mask E: E is to be among the candidates.
mask stuck: Among these {stuck} never {win}.
mask more: Everybody here can win, but a larger set of candidates with E does it, too.
hint 1: Which triangles of rivals hold D inside?
hint 1b: If no corner of the triangle can be left out, you have one.
right 2: With {count} candidates everybody has a chance, although among all seven several have none:
  a mask changes what a layer can say, and no weight was touched.
hint 2: Everybody can win exactly when every candidate is a corner of the hull of the candidates.
hint 2b: Keep E, and ask which two or three others leave it on the outside; then add whom you can.
""")


@cache
def wins(t: str, rivals: frozenset[str]) -> bool:
    """Whether class t of `RIVALS` wins somewhere in the plane when only it and these compete."""
    (answer,) = ask_among(RIVALS, [t, *sorted(rivals)], [t], features=Unbounded()).answers
    return answer.verdict == "possible"


def freeing() -> frozenset[str]:
    """The rivals of D without any one of whom it wins."""
    others = frozenset(RIVALS.tokens or ()) - {LOST}
    return frozenset(name for name in others if wins(LOST, others - {name}))


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


def blocks_minimally(rivals: Iterable[str]) -> bool:
    """Whether these block D, and none of them can be spared."""
    return _blocking_fault(frozenset(rivals)) is None


def _compare_left_out(guess: int) -> str:
    return SAY("left out", guess=guess, count=len(freeing()), rivals=RIVALS.classes - 1)


def _answer_left_out(guess: int) -> str:
    thoughts = {RIVALS.classes - 1: "out all", 0: "out none", len(freeing()): "out"}
    return SAY(thoughts.get(guess, "out some"))


def _can_win() -> tuple[int, int]:
    found = recorded.evidence("19_beyond_one_softmax", "001-mask-frees")
    return int(found["can_win"]), int(found["lost"])


def _compare_real(guess: int) -> str:
    count, lost = _can_win()
    return SAY("real found", guess=guess, count=count, lost=lost)


def _answer_real(guess: int) -> str:
    count, lost = _can_win()
    if abs(guess - 100 * count / lost) <= 2:
        return SAY("real")
    return SAY("real few" if guess <= 5 else "real some")


PREDICTIONS = {
    "guess": Prediction(
        reading.whole_number(0, RIVALS.classes - 1), _compare_left_out, _answer_left_out
    ),
    "guess_real": Prediction(reading.whole_number(0, 100), _compare_real, _answer_real),
}


def _blocking_fault(answer: frozenset[str]) -> str | None:
    if LOST in answer:
        return SAY("blocking self")
    if not answer or wins(LOST, answer):
        return SAY("blocking none")
    spare = sum(not wins(LOST, answer - {name}) for name in answer)
    return SAY("blocking spare", spare=spare) if spare else None


def _blocking_remark(answer: frozenset[str]) -> str:
    others = (frozenset(some) for some in combinations("ABCE", 3))
    more = sum(some != answer and _blocking_fault(some) is None for some in others)
    also = f" It is not the only one: there are {more} more." if more else ""
    return SAY("right 1", also=also)


def _mask_fault(answer: frozenset[str]) -> str | None:
    if "E" not in answer:
        return SAY("mask E")
    if stuck := losers(answer):
        win = "wins" if len(stuck) == 1 else "win"
        return SAY("mask stuck", stuck=", ".join(sorted(stuck)), win=win)
    return SAY("mask more") if len(answer) < largest_with("E") else None


EXERCISES = {
    "1": SAY.exercise(1, reading.members("ABCDE"), _blocking_fault, _blocking_remark),
    "2": SAY.exercise(
        2, reading.members("ABCDEFG"), _mask_fault, lambda names: SAY("right 2", count=len(names))
    ),
}
