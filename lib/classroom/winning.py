"""Lesson 2, who can win: which classes can come first for some features, and the proof when one
cannot (001, Sections 3.1 to 3.3).

`TRIANGLE` is a triangle with a class inside; `SEVEN` has five corners and two inner classes; in
`OWN_ROW` class D wins, but not at its own row.
"""

from functools import cache

import numpy as np

from classroom import reading, recorded
from classroom.lesson import Lesson, few_or_many
from softgeom.certifying.kernel import certify_evidence
from softgeom.certifying.verdict import BlockingClasses, EvidenceError
from softgeom.layer import Box, FeatureSet, SoftmaxLayer, Unbounded
from softgeom.scanner import scan

TRIANGLE = SoftmaxLayer([[0.0, 2.0], [-2.0, -2.0], [2.0, -2.0], [0.5, 0.0]], tokens="ABCD")
TRIANGLE_BIAS = (1.0, 0.0, 0.5)  # of A, B, C, when the bias of D is asked for
SEVEN = SoftmaxLayer(
    [[2.0, 0.5], [1.0, 1.125], [0.25, 2.0], [-1.75, 0.75],
     [-0.75, -0.5], [-0.75, -1.75], [1.25, -1.25]],
    tokens="ABCDEFG",
)  # fmt: skip
OWN_ROW = SoftmaxLayer([[-3.0, -1.5], [0.0, 2.0], [2.5, -1.0], [-1.5, 0.875]], tokens="ABCD")
# one feature; C wins for large x only
LATE = SoftmaxLayer([[1.0], [-1.0], [1.25]], [0, 0, -2], tokens="ABC")
CROWD = SoftmaxLayer(np.random.default_rng(0).normal(size=(100, 2)))
CODED = SoftmaxLayer(np.random.default_rng(1).normal(size=(40, 3)))  # to be decided by code

OUTPUTS, FEATURES = 6625, 120  # of the recogniser PP-OCRv4
ROUGHLY = 1e-3  # how well a convex combination, worked out by hand, must reproduce a row

LESSON = Lesson("winning")
say = LESSON.say


def winners(layer: SoftmaxLayer, features: FeatureSet | None = None) -> frozenset[str]:
    """The names of the classes that are proven to win somewhere: in R^d, or where `features` say."""
    table = scan(layer, features=features or Unbounded()).table
    return frozenset(table.loc[table["verdict"] == "argmaxable", "token"])


@cache
def _never() -> frozenset[str]:
    return frozenset(SEVEN.tokens or ()) - winners(SEVEN)


@cache
def blocking_weights() -> np.ndarray:
    """The convex weights (3,) of A, B, C that make up the row of D in `TRIANGLE`, as scanned."""
    evidence = scan(TRIANGLE, features=Unbounded()).evidence(3)
    assert isinstance(evidence, BlockingClasses)
    weights = np.zeros(3)
    weights[evidence.rivals] = evidence.weights / evidence.weights.sum()
    return weights


@cache
def smallest_half_width() -> int:
    """The smallest whole L for which class C of `LATE` wins in the box |x| <= L."""
    return next(L for L in range(1, 1000) if "C" in winners(LATE, Box(float(L))))


@LESSON.prediction("guess", reading.truth())
def _compare_inner(guess: bool) -> str:
    can = "D" in winners(TRIANGLE)
    verdict = "D wins somewhere" if can else "**no features let D win**"
    found = say("inner found", guess=guess, verdict=verdict)
    return f"{found} {say('inner' if guess == can else 'inner wrong')}"


@cache
def _crowd() -> int:
    return len(winners(CROWD))


@LESSON.prediction("guess_crowd", reading.whole_number(0, CROWD.classes))
def _compare_crowd(guess: int) -> str:
    count, n = _crowd(), CROWD.classes
    found = say("crowd found", guess=guess, classes=n, count=count)
    if abs(guess - count) <= 2:
        thought = "crowd"
    elif guess == n:
        thought = "crowd all"
    elif guess <= 1:
        thought = "crowd one"
    elif guess <= 4:
        thought = "crowd four"
    elif 2 * guess == n:
        thought = "crowd half"
    else:
        thought = "crowd too"
    return f"{found} {say(thought, few=few_or_many(guess, count))}"


@LESSON.prediction("guess_real", reading.whole_number(0, OUTPUTS))
def _compare_real(guess: int) -> str:
    scanned, lost = (
        int(recorded.value("12_first_scan", f"ppocr_{name}"))
        for name in ("scanned", "unargmaxable")
    )
    found = say("real found", guess=guess, scanned=scanned, lost=lost)
    if abs(guess - lost) <= lost // 5:
        thought = "real"
    elif guess == 0:
        thought = "real none"
    elif guess > OUTPUTS // 2:
        thought = "real most"
    else:
        thought = "real too"
    return f"{found} {say(thought, features=FEATURES, few=few_or_many(guess, lost))}"


@LESSON.exercise("1", reading.members("ABCDEFG"))
def _never_fault(answer: frozenset[str]) -> str | None:
    never = _never()
    if wrong := answer - never:
        return say("never wrong", named=f"{len(wrong)} class{'es' * (len(wrong) > 1)}")
    if never - answer:
        return say("never more" if answer else "never some")
    return None


def winner_at_the_row_of_d(_: object = None) -> dict[str, str]:
    """Which class wins in `OWN_ROW` at the row of D, as `first`."""
    return {"first": OWN_ROW.token(int(np.argmax(OWN_ROW.logits(OWN_ROW.W[3]))))}


@LESSON.exercise("2", reading.array((2,), "x"), winner_at_the_row_of_d)
def _witness_fault(x: np.ndarray) -> str | None:
    logits = OWN_ROW.logits(x)
    best = logits.max()
    if logits[3] < best:
        first = OWN_ROW.token(int(np.argmax(logits)))
        return say("witness", first=first, behind=best - logits[3])
    return say("witness tie") if np.sum(logits == best) > 1 else None


@LESSON.exercise("3", reading.array((3,), "the weights"))
def _weights_fault(weights: np.ndarray) -> str | None:
    if weights.min() < 0:
        return say("weights negative")
    if abs(weights.sum() - 1) > ROUGHLY:
        return say("weights sum", total=weights.sum())
    u, v = mixture = weights @ TRIANGLE.W[:3]
    if np.abs(mixture - TRIANGLE.W[3]).max() > ROUGHLY:
        return say("weights miss", u=u, v=v)
    try:
        certify_evidence(TRIANGLE, Unbounded(), 3, BlockingClasses(np.arange(3), weights))
    except EvidenceError:
        return say("weights near")
    return None


@LESSON.exercise("4", reading.number("the bias"))
def _threshold_fault(answer: float) -> str | None:
    if abs(answer - float(blocking_weights() @ TRIANGLE_BIAS)) <= ROUGHLY:
        return None
    if abs(answer - max(TRIANGLE_BIAS)) <= ROUGHLY:
        return say("bias best")
    if abs(answer - np.mean(TRIANGLE_BIAS)) <= ROUGHLY:
        return say("bias mean")
    can = "D" in winners(SoftmaxLayer(TRIANGLE.W, [*TRIANGLE_BIAS, answer], TRIANGLE.tokens))
    return say("bias more" if can else "bias less")


@LESSON.exercise("5", reading.array((7,), "b"))
def _all_fault(b: np.ndarray) -> str | None:
    stuck = sorted(frozenset(SEVEN.tokens or ()) - winners(SoftmaxLayer(SEVEN.W, b, SEVEN.tokens)))
    return say("all", stuck=", ".join(stuck)) if stuck else None


@LESSON.exercise("6", reading.whole_number(1, 10**6), right=smallest_half_width)
def _box_fault(answer: int, right: int) -> str:
    if answer > right:
        return say("box more")
    ties = any(row[2] == row.max() for row in LATE.logits([[-answer], [answer]]))
    return say("box tie" if ties else "box less")


@cache
def never_in(features: FeatureSet) -> int:
    """How many classes of `CODED` win for none of the features."""
    return CODED.classes - len(winners(CODED, features))


@LESSON.exercise("7", reading.whole_number(0, CODED.classes), right=lambda: never_in(Unbounded()))
def _coded_fault(answer: int, right: int) -> str:
    # without a bias a class that wins at x wins at every multiple of x: the size of a box is free
    thoughts = {
        CODED.classes - right: "coded winners",
        never_in(Box(1.0, low=0.0)): "coded positive",
        0: "coded unbounded",
        CODED.classes: "coded equal",
    }
    return say(thoughts.get(answer, "coded"))
