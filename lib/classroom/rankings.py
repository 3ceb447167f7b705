"""Lesson 1, rankings and regions: which orders of its classes a layer y = W x + b can realise (001,
Sections 3.1 and 3.2, Appendix C).

Four classes A, B, C, D with two features; a ranking is written from the least to the most probable
class.
"""

from __future__ import annotations

import math

import numpy as np

from classroom import reading
from classroom.exercise import Exercise, Prediction
from softgeom.bottleneck.counting.arrangement import braid_arrangement, count_arrangement_regions
from softgeom.bottleneck.counting.rankings import rank_classes
from softgeom.bottleneck.counting.regions import count_regions, log10_factorial, log10_regions
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


def _compare_counts(b: np.ndarray | None) -> Prediction:
    def compare(guess: int) -> str:
        count, orders = realised(LAYER.W, b), math.factorial(LAYER.classes)
        lost = f"{orders - count} of {orders} orders never occur, whatever $x$ is."
        return f"You predicted {guess}; counting the regions exactly gives **{count}**. " + lost

    return Prediction(
        reading.whole_number(0), compare, _answer_count if b is None else _answer_bias
    )


def _answer_count(guess: int) -> str:
    count, lines, classes = realised(LAYER.W), len(braid_arrangement(LAYER.W) or []), LAYER.classes
    return {
        count: (
            f"You saw it: {lines} tie lines through the origin cut the plane into twice as many "
            f"wedges."
        ),
        math.factorial(classes): (
            "That is every order, as if four logits could be chosen freely; but all four are "
            "made of the same two numbers $x$."
        ),
        lines: (
            "That is the number of tie lines; walking round the origin you cross each of them "
            "twice."
        ),
        classes: (
            "That is the number of winners; below each winner the others can still stand in "
            "several orders."
        ),
        2 * classes: (
            f"That is what {classes} lines would cut; but a tie line belongs to a *pair* of "
            f"classes, and there are {lines} pairs."
        ),
        2**lines: (
            "That takes the order of each pair as a choice of its own; but whoever beats A also "
            "beats all that A beats."
        ),
        realised(
            LAYER.W, BIAS
        ): "With a bias that would be right; without one all tie lines pass through the origin.",
    }.get(
        guess,
        _too(
            "rankings: count the pairs of classes, then how often a walk round the origin "
            "crosses their lines",
            guess,
            count,
        ),
    )


def _answer_bias(guess: int) -> str:
    count, bare, lines = (
        realised(LAYER.W, BIAS),
        realised(LAYER.W),
        len(braid_arrangement(LAYER.W) or []),
    )
    return {
        count: (
            "You saw it: the lines leave their common point, and where they cross bounded "
            "regions appear."
        ),
        bare: (
            "That is the number without a bias: as long as all lines share a point there are "
            "only wedges."
        ),
        math.factorial(
            LAYER.classes
        ): "A bias moves the lines, but it adds none: all orders would take a third feature.",
        1 + lines + math.comb(lines, 2): (
            f"That is what {lines} lines in general position would cut; but the ties of A "
            f"with B, of B with C and of A with C always meet in one point."
        ),
    }.get(
        guess,
        _too(
            "rankings: the wedges stay, and each new crossing of lines adds a bounded region",
            guess,
            count,
        ),
    )


def _too(advice: str, guess: int, count: int) -> str:
    return f"Too {'few' if guess < count else 'many'} {advice}."


def digits(classes: int, features: int) -> int:
    """How many digits the number of rankings of a layer with bias has, in general position."""
    return int(log10_regions(classes, features, bias=True)) + 1


def _compare_digits(guess: int) -> str:
    classes, features = GPT2
    return (
        f"You predicted {guess:,} digits; the rankings that {features} features realise are "
        f"a number of **{digits(classes, features):,}** "
        f"digits, all orders one of {int(log10_factorial(classes)) + 1:,}."
    )


def _answer_digits(guess: int) -> str:
    classes, features = GPT2
    count, orders = digits(classes, features), int(log10_factorial(classes)) + 1
    if abs(guess - count) <= count // 10:
        return (
            "You saw it: each feature multiplies the number by some millions, and there are not "
            "many features."
        )
    if guess >= 0.9 * orders:
        return (
            f"So you expected nearly all orders; that would take {classes - 1:,} features, one "
            f"fewer than classes."
        )
    if guess == features:
        return (
            "One digit for each feature is too little: each feature multiplies the number by "
            "some millions, not by ten."
        )
    if guess <= digits(classes, 2):
        return (
            f"That is about what two features do, whose lines grow like the square of the "
            f"classes; here there are {features} features."
        )
    if 0.4 * orders <= guess <= 0.6 * orders:
        return (
            "Half of the digits would be the square root of all orders; the features allow far "
            "fewer."
        )
    return _too(
        "digits: for few features and many classes the number is about $(|C|^2 / 2)^d / d!$",
        guess,
        count,
    )


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
        return (
            "These are the right neighbours in the wrong direction: begin with the *least* "
            "probable class."
        )
    if answer[-1] != right[-1]:
        return (
            f"The last name is the winner, and {answer[-1]} does not have the largest logit at "
            f"this $x$."
        )
    return (
        "The winner is right, but two of the others stand in the wrong order: compare their "
        "logits again."
    )


def _lines_fault(answer: int) -> str | None:
    lines = len(braid_arrangement(FIVE.W) or [])
    if answer == lines:
        return None
    if answer == 2 * lines:
        return (
            "That counts every pair twice: the classes tie on the same line whichever of them "
            "you name first."
        )
    if answer == FIVE.classes:
        return "A line belongs to a *pair* of classes, not to a class."
    return (
        f"That is too {'few' if answer < lines else 'many'}: list the pairs of classes, each "
        f"pair once."
    )


def _five_fault(answer: int) -> str | None:
    count, lines = realised(FIVE.W), len(braid_arrangement(FIVE.W) or [])
    if answer == count:
        return None
    if answer == math.factorial(FIVE.classes):
        return "That is the number of all orders; two features do not reach them all."
    if answer == lines:
        return (
            "That is the number of lines. Walk round a circle about the origin: how often do you "
            "cross each line?"
        )
    return (
        f"That is too {'few' if answer < count else 'many'}: count the wedges between lines "
        f"through the origin."
    )


def _square_fault(W: np.ndarray) -> str | None:
    lines = braid_arrangement(W)
    if lines is None:
        return (
            "Two of your rows are equal, so two classes tie everywhere and nothing is ranked "
            "strictly."
        )
    count, wanted = count_arrangement_regions(lines), 8
    if count == wanted:
        return None
    detail = f"This layer has {len(lines)} different tie lines and realises {count} rankings. "
    return detail + (
        "Make more of the tie lines fall together: a line belongs to the direction of a "
        "difference of two rows."
        if count > wanted
        else "Too many tie lines fall together: the rows need not lie on one line."
    )


def _bias_fault(b: np.ndarray) -> str | None:
    count = realised(LAYER.W, b)
    if count == count_regions(LAYER.classes, 2, bias=True):
        return None
    # No two of the six lines are parallel, so they meet in four triple points and three others, or
    # all in one.
    return (
        f"The layer still realises {count} rankings, as without a bias: your lines still all "
        f"meet in one point "
        "(a bias $b_i = w_i \\cdot p + k$ only moves that point to $-p$)."
    )


def _features_fault(answer: int) -> str | None:
    orders = math.factorial(FIVE.classes)
    smallest = next(
        d
        for d in range(1, FIVE.classes + 1)
        if count_regions(FIVE.classes, d, bias=False) == orders
    )
    if answer == smallest:
        return None
    if answer > smallest:
        return "With that many features all orders occur, but fewer features suffice."
    count = count_regions(FIVE.classes, answer, bias=False)
    return (
        f"With {answer} feature{'s' * (answer > 1)} a layer in general position realises {count} "
        f"of the {orders} orders."
    )


EXERCISES = {
    "1": Exercise(
        reading.order("ABCD"),
        _order_fault,
        lambda _: "The logits decide; softmax keeps their order, so no exponential is needed.",
        (
            "Compute the four logits $y = W x$: one dot product for each row.",
            "`rankings.LAYER.logits(rankings.FEATURES)` computes them. Sort from smallest to "
            "largest.",
        ),
    ),
    "2": Exercise(
        reading.whole_number(0),
        _lines_fault,
        lambda n: f"{n} pairs, {n} lines: $|C| (|C| - 1) / 2$.",
        ("Two classes tie where $(w_i - w_j) \\cdot x = 0$: one line for each pair of classes.",),
    ),
    "3": Exercise(
        reading.whole_number(0),
        _five_fault,
        lambda n: (
            f"{n} wedges, twice the number of lines: in two features the count grows like "
            f"$C^2$, the orders like $C!$."
        ),
        (
            "Without a bias all tie lines pass through the origin, so every region is a wedge.",
            "A circle about the origin crosses each line twice, and between two crossings "
            "lies one wedge.",
        ),
    ),
    "4": Exercise(
        reading.array((4, 2), "W"),
        _square_fault,
        lambda _: (
            f"The formula's {count_regions(4, 2, bias=False)} holds in *general position*; "
            "parallel differences of rows merge tie lines."
        ),
        (
            "Two tie lines coincide when $w_i - w_j$ is parallel to $w_k - w_l$.",
            "Think of a four-sided figure with two pairs of parallel sides, and of its diagonals.",
        ),
    ),
    "5": Exercise(
        reading.array((4,), "b"),
        _bias_fault,
        lambda _: (
            "The lines no longer share a point, and bounded regions have appeared between them."
        ),
        (
            "Try a bias in the explorer first: click a class and use the keys + and -.",
            "Four numbers without a pattern will do; a constant will not.",
        ),
    ),
    "6": Exercise(
        reading.whole_number(1, 100),
        _features_fault,
        lambda d: (
            f"All orders need $d \\ge |C| - 1$, here {d}. A language model has 50,000 "
            f"classes and some hundred features."
        ),
        ("`count_regions(5, d, bias=False)` gives the count for d features; compare it with 5!.",),
    ),
}
