"""Lesson 1, rankings and regions: which orders of its classes a layer y = W x + b can realise (001,
Sections 3.1 and 3.2, Appendix C).

Four classes A, B, C, D with two features; a ranking is written from the least to the most probable
class.
"""

import math
from functools import cache

import numpy as np

from classroom import reading
from classroom.lesson import Lesson, few_or_many
from papers.bottleneck.counting.arrangement import braid_arrangement, count_arrangement_regions
from papers.bottleneck.counting.rankings import rank_classes
from papers.bottleneck.counting.regions import count_regions, log10_factorial, log10_regions
from softgeom.layer import SoftmaxLayer

LAYER = SoftmaxLayer([[1.5, 1.0], [-1.25, 1.5], [-1.5, -1.0], [0.75, -1.75]], tokens="ABCD")
# shifts the tie lines so that no three pairs meet in one point by accident
BIAS = np.array([0.5, -0.75, 1.0, 0.25])
FEATURES = np.array([0.5, 1.0])  # the x of the first exercise
FIVE = SoftmaxLayer(
    [[1.75, 0.25], [0.5, 1.5], [-1.5, 1.0], [-1.0, -1.25], [0.75, -1.5]], tokens="ABCDE"
)
GPT2 = (50257, 768)  # classes, features

LESSON = Lesson("rankings")
say = LESSON.say


def realised(W: np.ndarray, b: np.ndarray | None = None) -> int:
    """How many rankings a layer W (C, d), b (C,) realises, exactly; 0 if two classes always tie."""
    lines = braid_arrangement(W, b)
    return 0 if lines is None else count_arrangement_regions(lines)


@cache
def digits(classes: int, features: int) -> int:
    """How many digits the number of rankings of a layer with bias has, in general position."""
    return int(log10_regions(classes, features, bias=True)) + 1


def _compare_counts(b: np.ndarray | None, guess: int, thoughts: dict[int, str], too: str) -> str:
    """What a guess of the number of rankings says; `thoughts` names the known guesses."""
    count, lines, orders = realised(LAYER.W, b), _tie_lines(LAYER), math.factorial(LAYER.classes)
    found = say("counts", guess=guess, count=count, orders=orders, lost=orders - count)
    known = {"lines": lines, "classes": LAYER.classes, "few": few_or_many(guess, count)}
    return f"{found} {say(thoughts.get(guess, too), **known)}"


def _tie_lines(layer: SoftmaxLayer) -> int:
    return len(braid_arrangement(layer.W) or [])


@LESSON.prediction("guess", reading.whole_number(0))
def _compare_without_bias(guess: int) -> str:
    lines, classes = _tie_lines(LAYER), LAYER.classes
    thoughts = {
        realised(LAYER.W, BIAS): "count bias",
        2**lines: "count choices",
        2 * classes: "count two",
        classes: "count classes",
        lines: "count lines",
        math.factorial(classes): "count orders",
        realised(LAYER.W): "count",
    }
    return _compare_counts(None, guess, thoughts, "count too")


@LESSON.prediction("guess_bias", reading.whole_number(0))
def _compare_with_bias(guess: int) -> str:
    lines = _tie_lines(LAYER)
    thoughts = {
        1 + lines + math.comb(lines, 2): "bias general",
        math.factorial(LAYER.classes): "bias orders",
        realised(LAYER.W): "bias bare",
        realised(LAYER.W, BIAS): "bias",
    }
    return _compare_counts(BIAS, guess, thoughts, "bias too")


@LESSON.prediction("guess_digits", reading.whole_number(1, 10**9))
def _compare_digits(guess: int) -> str:
    (classes, features), count = GPT2, digits(*GPT2)
    orders = int(log10_factorial(classes)) + 1
    found = say("digits found", guess=guess, features=features, count=count, orders=orders)
    if abs(guess - count) <= count // 10:
        thought = "digits"
    elif guess >= 0.9 * orders:
        thought = "digits orders"
    elif guess == features:
        thought = "digits features"
    elif guess <= digits(classes, 2):
        thought = "digits two"
    elif 0.4 * orders <= guess <= 0.6 * orders:
        thought = "digits half"
    else:
        thought = "digits too"
    known = {"features": features, "most": classes - 1, "few": few_or_many(guess, count)}
    return f"{found} {say(thought, **known)}"


@LESSON.exercise("1", reading.order("ABCD"))
def _order_fault(answer: tuple[str, ...]) -> str | None:
    right = tuple(LAYER.token(i) for i in rank_classes(LAYER.logits(FEATURES)))
    if answer == right:
        return None
    if answer == right[::-1]:
        return say("order reversed")
    return say("order winner" if answer[-1] != right[-1] else "order others", last=answer[-1])


@LESSON.exercise("2", reading.whole_number(0), right=lambda: _tie_lines(FIVE))
def _lines_fault(answer: int, lines: int) -> str:
    thoughts = {FIVE.classes: "lines classes", 2 * lines: "lines twice"}
    return say(thoughts.get(answer, "lines too"), few=few_or_many(answer, lines))


@LESSON.exercise("3", reading.whole_number(0), right=lambda: realised(FIVE.W))
def _five_fault(answer: int, count: int) -> str:
    thoughts = {_tie_lines(FIVE): "five lines", math.factorial(FIVE.classes): "five orders"}
    return say(thoughts.get(answer, "five too"), few=few_or_many(answer, count))


@LESSON.exercise(
    "4", reading.array((4, 2), "W"), lambda _: {"general": count_regions(4, 2, bias=False)}
)
def _square_fault(W: np.ndarray) -> str | None:
    lines = braid_arrangement(W)
    if lines is None:
        return say("square equal")
    count, wanted = count_arrangement_regions(lines), 8
    if count == wanted:
        return None
    advice = say("square more" if count > wanted else "square fewer")
    return say("square", lines=len(lines), count=count, advice=advice)


@LESSON.exercise("5", reading.array((4,), "b"))
def _bias_fault(b: np.ndarray) -> str | None:
    # No two of the six lines are parallel, so they meet in four triple points and three others, or
    # all in one.
    count = realised(LAYER.W, b)
    whole = count == count_regions(LAYER.classes, 2, bias=True)
    return None if whole else say("shift", count=count)


@LESSON.exercise("6", reading.whole_number(1, 100))
def _features_fault(answer: int) -> str | None:
    orders, classes = math.factorial(FIVE.classes), FIVE.classes
    counts = {d: count_regions(classes, d, bias=False) for d in range(1, classes + 1)}
    smallest = next(d for d, count in counts.items() if count == orders)
    if answer == smallest:
        return None
    if answer > smallest:
        return say("features more")
    s = "s" * (answer > 1)
    return say("features", features=answer, s=s, count=counts[answer], orders=orders)
