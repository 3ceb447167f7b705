"""Lesson 1, rankings and regions: which orders of its classes a layer y = W x + b can realise (001,
Sections 3.1 and 3.2, Appendix C).

Four classes A, B, C, D with two features; a ranking is written from the least to the most probable
class.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from classroom import reading
from classroom.exercise import Prediction
from classroom.words import Words
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


def realised(W: np.ndarray, b: np.ndarray | None = None) -> int:
    """How many rankings a layer W (C, d), b (C,) realises, counted exactly; 0 when two classes
    always tie.
    """
    lines = braid_arrangement(W, b)
    return 0 if lines is None else count_arrangement_regions(lines)


SAY = Words(r"""
counts: You predicted {guess}; counting the regions exactly gives **{count}**. {lost} of {orders}
  orders never occur, whatever $x$ is.
count: You saw it: {lines} tie lines through the origin cut the plane into twice as many wedges.
count orders: That is every order, as if four logits could be chosen freely; but all four are made
  of the same two numbers $x$.
count lines: That is the number of tie lines; walking round the origin you cross each of them twice.
count classes: That is the number of winners; below each winner the others can still stand in
  several orders.
count two: That is what {classes} lines would cut; but a tie line belongs to a *pair* of classes,
  and there are {lines} pairs.
count choices: That takes the order of each pair as a choice of its own; but whoever beats A also
  beats all that A beats.
count bias: With a bias that would be right; without one all tie lines pass through the origin.
count too: rankings: count the pairs of classes, then how often a walk round the origin crosses
  their lines
bias: You saw it: the lines leave their common point, and where they cross bounded regions appear.
bias bare: That is the number without a bias: as long as all lines share a point there are only
  wedges.
bias orders: A bias moves the lines, but it adds none: all orders would take a third feature.
bias general: That is what {lines} lines in general position would cut; but the ties of A with B,
  of B with C and of A with C always meet in one point.
bias too: rankings: the wedges stay, and each new crossing of lines adds a bounded region
digits found: You predicted {guess:,} digits; the rankings that {features} features realise are a
  number of **{count:,}** digits, all orders one of {orders:,}.
digits: You saw it: each feature multiplies the number by some millions, and there are not many
  features.
digits orders: So you expected nearly all orders; that would take {most:,} features, one fewer than
  classes.
digits features: One digit for each feature is too little: each feature multiplies the number by
  some millions, not by ten.
digits two: That is about what two features do, whose lines grow like the square of the classes;
  here there are {features} features.
digits half: Half of the digits would be the square root of all orders; the features allow far
  fewer.
digits too: digits: for few features and many classes the number is about $(|C|^2 / 2)^d / d!$
order reversed: These are the right neighbours in the wrong direction: begin with the *least*
  probable class.
order winner: The last name is the winner, and {last} does not have the largest logit at this $x$.
order others: The winner is right, but two of the others stand in the wrong order: compare their
  logits again.
lines twice: That counts every pair twice: the classes tie on the same line whichever of them you
  name first.
lines classes: A line belongs to a *pair* of classes, not to a class.
lines too: That is too {few}: list the pairs of classes, each pair once.
five orders: That is the number of all orders; two features do not reach them all.
five lines: That is the number of lines. Walk round a circle about the origin: how often do you
  cross each line?
five too: That is too {few}: count the wedges between lines through the origin.
square equal: Two of your rows are equal, so two classes tie everywhere and nothing is ranked
  strictly.
square: This layer has {lines} different tie lines and realises {count} rankings. {advice}
square more: Make more of the tie lines fall together: a line belongs to the direction of a
  difference of two rows.
square fewer: Too many tie lines fall together: the rows need not lie on one line.
shift: The layer still realises {count} rankings, as without a bias: your lines still all meet in
  one point (a bias $b_i = w_i \cdot p + k$ only moves that point to $-p$).
features more: With that many features all orders occur, but fewer features suffice.
features: With {features} feature{s} a layer in general position realises {count} of the {orders}
  orders.
right 1: The logits decide; softmax keeps their order, so no exponential is needed.
hint 1: Compute the four logits $y = W x$: one dot product for each row.
hint 1b: `rankings.LAYER.logits(rankings.FEATURES)` computes them. Sort from smallest to largest.
right 2: {answer} pairs, {answer} lines: $|C| (|C| - 1) / 2$.
hint 2: Two classes tie where $(w_i - w_j) \cdot x = 0$: one line for each pair of classes.
right 3: {answer} wedges, twice the number of lines: in two features the count grows like $C^2$,
  the orders like $C!$.
hint 3: Without a bias all tie lines pass through the origin, so every region is a wedge.
hint 3b: A circle about the origin crosses each line twice, and between two crossings lies one
  wedge.
right 4: The formula's {general} holds in *general position*; parallel differences of rows merge
  tie lines.
hint 4: Two tie lines coincide when $w_i - w_j$ is parallel to $w_k - w_l$.
hint 4b: Think of a four-sided figure with two pairs of parallel sides, and of its diagonals.
right 5: The lines no longer share a point, and bounded regions have appeared between them.
hint 5: Try a bias in the explorer first: click a class and use the keys + and -.
hint 5b: Four numbers without a pattern will do; a constant will not.
right 6: All orders need $d \ge |C| - 1$, here {answer}. A language model has 50,000 classes and
  some hundred features.
hint 6: `count_regions(5, d, bias=False)` gives the count for d features; compare it with 5!.
""")


def _compare_counts(b: np.ndarray | None) -> Prediction:
    def compare(guess: int) -> str:
        count, orders = realised(LAYER.W, b), math.factorial(LAYER.classes)
        return SAY("counts", guess=guess, count=count, orders=orders, lost=orders - count)

    answer = _answer_count if b is None else _answer_bias
    return Prediction(reading.whole_number(0), compare, answer)


def _too(name: str, guess: int, count: int) -> str:
    return f"Too {_few(guess, count)} {SAY(name)}."


def _few(guess: int, count: int) -> str:
    return "few" if guess < count else "many"


def _answer_count(guess: int) -> str:
    count, lines, classes = realised(LAYER.W), len(braid_arrangement(LAYER.W) or []), LAYER.classes
    thoughts = {
        realised(LAYER.W, BIAS): "count bias",
        2**lines: "count choices",
        2 * classes: "count two",
        classes: "count classes",
        lines: "count lines",
        math.factorial(classes): "count orders",
        count: "count",
    }
    if guess not in thoughts:
        return _too("count too", guess, count)
    return SAY(thoughts[guess], lines=lines, classes=classes)


def _answer_bias(guess: int) -> str:
    count, lines = realised(LAYER.W, BIAS), len(braid_arrangement(LAYER.W) or [])
    thoughts = {
        1 + lines + math.comb(lines, 2): "bias general",
        math.factorial(LAYER.classes): "bias orders",
        realised(LAYER.W): "bias bare",
        count: "bias",
    }
    if guess not in thoughts:
        return _too("bias too", guess, count)
    return SAY(thoughts[guess], lines=lines)


@cache
def digits(classes: int, features: int) -> int:
    """How many digits the number of rankings of a layer with bias has, in general position."""
    return int(log10_regions(classes, features, bias=True)) + 1


def _compare_digits(guess: int) -> str:
    (classes, features), count = GPT2, digits(*GPT2)
    orders = int(log10_factorial(classes)) + 1
    return SAY("digits found", guess=guess, features=features, count=count, orders=orders)


def _answer_digits(guess: int) -> str:
    classes, features = GPT2
    count, orders = digits(classes, features), int(log10_factorial(classes)) + 1
    if abs(guess - count) <= count // 10:
        return SAY("digits")
    if guess >= 0.9 * orders:
        return SAY("digits orders", most=classes - 1)
    if guess == features:
        return SAY("digits features")
    if guess <= digits(classes, 2):
        return SAY("digits two", features=features)
    if 0.4 * orders <= guess <= 0.6 * orders:
        return SAY("digits half")
    return _too("digits too", guess, count)


PREDICTIONS = {
    "guess": _compare_counts(None),
    "guess_bias": _compare_counts(BIAS),
    "guess_digits": Prediction(reading.whole_number(1, 10**9), _compare_digits, _answer_digits),
}


def _order_fault(answer: tuple[str, ...]) -> str | None:
    right = tuple(LAYER.token(i) for i in rank_classes(LAYER.logits(FEATURES)))
    if answer == right:
        return None
    if answer == right[::-1]:
        return SAY("order reversed")
    return SAY("order winner" if answer[-1] != right[-1] else "order others", last=answer[-1])


def _lines_fault(answer: int) -> str | None:
    lines = len(braid_arrangement(FIVE.W) or [])
    if answer == lines:
        return None
    thoughts = {FIVE.classes: "lines classes", 2 * lines: "lines twice"}
    return SAY(thoughts.get(answer, "lines too"), few=_few(answer, lines))


def _five_fault(answer: int) -> str | None:
    count, lines = realised(FIVE.W), len(braid_arrangement(FIVE.W) or [])
    if answer == count:
        return None
    thoughts = {lines: "five lines", math.factorial(FIVE.classes): "five orders"}
    return SAY(thoughts.get(answer, "five too"), few=_few(answer, count))


def _square_fault(W: np.ndarray) -> str | None:
    lines = braid_arrangement(W)
    if lines is None:
        return SAY("square equal")
    count, wanted = count_arrangement_regions(lines), 8
    if count == wanted:
        return None
    advice = SAY("square more" if count > wanted else "square fewer")
    return SAY("square", lines=len(lines), count=count, advice=advice)


def _bias_fault(b: np.ndarray) -> str | None:
    # No two of the six lines are parallel, so they meet in four triple points and three others, or
    # all in one.
    count = realised(LAYER.W, b)
    whole = count == count_regions(LAYER.classes, 2, bias=True)
    return None if whole else SAY("shift", count=count)


def _features_fault(answer: int) -> str | None:
    orders, classes = math.factorial(FIVE.classes), FIVE.classes
    counts = {d: count_regions(classes, d, bias=False) for d in range(1, classes + 1)}
    smallest = next(d for d, count in counts.items() if count == orders)
    if answer == smallest:
        return None
    if answer > smallest:
        return SAY("features more")
    s = "s" * (answer > 1)
    return SAY("features", features=answer, s=s, count=counts[answer], orders=orders)


EXERCISES = {
    "1": SAY.exercise(1, reading.order("ABCD"), _order_fault),
    "2": SAY.exercise(2, reading.whole_number(0), _lines_fault),
    "3": SAY.exercise(3, reading.whole_number(0), _five_fault),
    "4": SAY.exercise(
        4,
        reading.array((4, 2), "W"),
        _square_fault,
        lambda _: SAY("right 4", general=count_regions(4, 2, bias=False)),
    ),
    "5": SAY.exercise(5, reading.array((4,), "b"), _bias_fault),
    "6": SAY.exercise(6, reading.whole_number(1, 100), _features_fault),
}
