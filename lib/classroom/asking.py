"""Lesson 6, ask more: who wins among candidates, and which documents come back together (001,
Section 3; scanner/docs/beyond.md).

`RIVALS` is a class D between four others, of which at most three block it; `VOCABULARY` has
classes that can win only under a mask. `INDEX` is a ring of six documents, each first for some
query; a query returns the two with the largest products.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np

from classroom import reading, recorded
from classroom.lesson import Lesson, few_or_many
from softgeom.asking import ask_among, ask_together, largest_safe_set
from softgeom.certifying.verdict import Witness
from softgeom.layer import SoftmaxLayer, Unbounded

RIVALS = SoftmaxLayer(
    [[-1.0, 2.0], [-2.0, -1.5], [2.0, -1.0], [0.25, 0.0], [1.5, 1.0]], tokens="ABCDE"
)
LOST = "D"
VOCABULARY = SoftmaxLayer(
    [[2.0, 0.25], [-1.0, 1.75], [-1.25, -1.5], [0.5, 0.25],
     [-0.25, -0.25], [0.0, 0.75], [0.75, -0.5]],
    tokens="ABCDEFG",
)  # fmt: skip
INDEX = SoftmaxLayer([[2, 0], [1, 2], [-1, 2], [-2, 0], [-1, -2], [1, -2]], tokens="ABCDEF")
WANTED = ("B", "C")  # the pair of exercise 3
APART, OTHERS = ("A", "C"), ("B", "D")  # a pair that never comes back, and whom its segment crosses

LESSON = Lesson("asking")
say = LESSON.say


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
def best_mask(name: str) -> frozenset[str]:
    """A largest candidate set of `VOCABULARY` that holds a class, and of which all can win."""
    others = sorted(frozenset(VOCABULARY.tokens or ()) - {name})
    sizes = range(len(others), 0, -1)
    candidates = (frozenset({name, *some}) for k in sizes for some in combinations(others, k))
    return next(some for some in candidates if not losers(some))


def blocks_minimally(rivals: Iterable[str]) -> bool:
    """Whether these block D, and none of them can be spared."""
    return _blocking_fault(frozenset(rivals)) is None


@LESSON.prediction("guess", reading.whole_number(0, RIVALS.classes - 1))
def _compare_left_out(guess: int) -> str:
    count, rivals = len(freeing()), RIVALS.classes - 1
    found = say("left out", guess=guess, count=count, rivals=rivals)
    thoughts = {rivals: "out all", 0: "out none", count: "out"}
    return f"{found} {say(thoughts.get(guess, 'out some'))}"


@LESSON.prediction("guess_real", reading.whole_number(0, 100))
def _compare_real(guess: int) -> str:
    found = recorded.evidence("19_beyond_one_softmax", "001-mask-frees")
    count, lost = int(found["can_win"]), int(found["lost"])
    thought = "real few" if guess <= 5 else "real some"
    if abs(guess - 100 * count / lost) <= 2:
        thought = "real"
    return f"{say('real found', guess=guess, count=count, lost=lost)} {say(thought)}"


def _other_blocking_sets(answer: frozenset[str]) -> dict[str, str]:
    others = (frozenset(some) for some in combinations("ABCE", 3))
    more = sum(some != answer and blocks_minimally(some) for some in others)
    return {"also": f" It is not the only one: there are {more} more." if more else ""}


@LESSON.exercise("1", reading.members("ABCDE"), _other_blocking_sets)
def _blocking_fault(answer: frozenset[str]) -> str | None:
    if LOST in answer:
        return say("blocking self")
    if not answer or wins(LOST, answer):
        return say("blocking none")
    spare = sum(not wins(LOST, answer - {name}) for name in answer)
    return say("blocking spare", spare=spare) if spare else None


@LESSON.exercise("2", reading.members("ABCDEFG"), lambda names: {"count": len(names)})
def _mask_fault(answer: frozenset[str]) -> str | None:
    if "E" not in answer:
        return say("mask E")
    if stuck := losers(answer):
        win = "wins" if len(stuck) == 1 else "win"
        return say("mask stuck", stuck=", ".join(sorted(stuck)), win=win)
    return say("mask more") if len(answer) < len(best_mask("E")) else None


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
    """The weights (of `APART`, then of `OTHERS`) of the point at which their segments cross."""
    (a, c), (b, d) = ([_document(name) for name in side] for side in (APART, OTHERS))
    s, t = np.linalg.solve(np.column_stack([c - a, b - d]), b - a)  # a + s (c - a) = b + t (d - b)
    return [Fraction(float(value)).limit_denominator(1000) for value in (1 - s, s, 1 - t, t)]


def smallest_dimension() -> int:
    """The smallest dimension in which some index of any size returns every pair."""
    return next(d for d in range(1, 100) if largest_safe_set(d) >= 2)


@LESSON.prediction("guess_pairs", reading.whole_number(0, 15))
def _compare_pairs(guess: int) -> str:
    count, n = pairs_together(), INDEX.classes
    total = n * (n - 1) // 2
    found = say("pairs found", guess=guess, total=total, count=count)
    thoughts = {0: "pairs none", n // 2: "pairs half", total: "pairs all", count: "pairs"}
    return f"{found} {say(thoughts.get(guess, 'pairs too'), few=few_or_many(guess, count))}"


@LESSON.exercise("3", reading.array((2,), "x"))
def _query_fault(x: np.ndarray) -> str | None:
    logits = INDEX.logits(x)
    order = np.argsort(-logits, kind="stable")
    if not np.any(x):
        return say("query zero")
    names = [INDEX.token(int(i)) for i in order]
    if set(names[:2]) != set(WANTED):
        return say("query others", names=names)
    return say("query tie", names=names) if logits[order[1]] == logits[order[2]] else None


def _mean(names: Iterable[str], weights: Iterable[Fraction]) -> list[Fraction]:
    rows = [
        [w * Fraction(float(v)) for v in _document(name)]
        for name, w in zip(names, weights, strict=True)
    ]
    return [sum(column, Fraction(0)) for column in zip(*rows, strict=True)]


@LESSON.exercise("4", reading.fractions(4, f"the weights of {', '.join(APART + OTHERS)}"))
def _shares_fault(answer: tuple[Fraction, ...]) -> str | None:
    sides = (APART, answer[:2]), (OTHERS, answer[2:])
    pairs = [" and ".join(names) for names, _ in sides]
    for pair, (_, weights) in zip(pairs, sides, strict=True):
        if min(weights) < 0:
            return say("shares negative")
        if sum(weights) != 1:
            return say("shares sum", names=pair, total=sum(weights))
    means = [_mean(names, weights) for names, weights in sides]
    if means[0] == means[1]:
        return None
    apart, there = (f"({x}, {y})" for x, y in means)
    return say("shares differ", names=pairs[0], apart=apart, others=pairs[1], there=there)


@LESSON.exercise("5", reading.whole_number(1, 10**6), right=smallest_dimension)
def _dimension_fault(answer: int, right: int) -> str:
    if answer == 3:
        return say("dimension three")
    return say("dimension less" if answer < right else "dimension more")
