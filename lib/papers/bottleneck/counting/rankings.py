"""Rankings of the classes that a softmax layer can and cannot realise (001, Section 3.1.2 and
Corollaries 1 and 2).

A feature vector x ranks the classes by y = W x + b, W (C, d), b (C,): the ranking pi lists them in
increasing order of probability,

    y[pi_1] < y[pi_2] < ... < y[pi_C]            (3)

and its last entry is the argmax. Classes are numbered from 0 here, from 1 in the paper. The C - 1
inequalities say that y lies in one region of the braid arrangement, so that pi is realisable iff
the affine subspace {W x + b} meets that region (Corollary 1). Motzkin's theorem gives the other
side: pi is not realisable iff some weights l >= 0, not all zero, combine the steps of the ranking
into

    sum_k l_k (w[pi_k+1] - w[pi_k]) = 0   with   sum_k l_k (b[pi_k+1] - b[pi_k]) <= 0,

for then the increases of y along the ranking, all positive by (3), would combine to a number that
is not. `decide_ranking` returns the feature vector or the weights, either of them in fractions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from papers.bottleneck.counting.arrangement import (
    Point,
    braid_arrangement,
    exact_layer,
    visit_regions,
)
from softgeom.layer import Unbounded
from softgeom.proving.exact import decide_region

Ranking = tuple[int, ...]

SECONDS = 60.0  # of one ranking


@dataclass(frozen=True)
class RankingVerdict:
    """Whether a layer realises a ranking (classes in increasing order of probability): features x
    (d,) that rank the classes so, or the weights (C - 1,) of Motzkin's theorem, one for each step
    of the ranking; both in fractions.
    """

    ranking: Ranking
    feasible: bool
    x: Point | None = None
    weights: Point | None = None

    def verify(self, W: Any, b: Any = None) -> bool:
        """Whether the evidence proves the verdict, in exact arithmetic without a solver."""
        normals, offsets = _steps(self.ranking, *exact_layer(W, b))
        if self.feasible:
            steps = zip(normals, offsets, strict=True)
            return self.x is not None and all(_dot(a, self.x) + c > 0 for a, c in steps)
        if self.weights is None or min(self.weights) < 0 or not any(self.weights):
            return False
        balanced = not any(_dot(column, self.weights) for column in zip(*normals, strict=True))
        return balanced and _dot(offsets, self.weights) <= 0


def rank_classes(scores: Any) -> Ranking:
    """The ranking of equation (3): classes in increasing order of ``scores`` (C,), logits or
    probabilities, the argmax last. ValueError if two are equal: a tie is no ranking.

    >>> rank_classes([0.2, 0.4, 0.1, 0.3])  # the example of the paper, there numbered from 1
    (2, 0, 3, 1)
    """
    values = list(scores)
    order = sorted(range(len(values)), key=values.__getitem__)
    for i, j in pairwise(order):
        if not values[i] < values[j]:
            scores_of = f"classes {i} and {j} have scores {values[i]} and {values[j]}"
            raise ValueError(f"{scores_of}, which do not rank strictly.")
    return tuple(order)


def feasible_rankings(W: Any, b: Any = None) -> dict[Ranking, Point]:
    """Return every ranking that the layer W (C, d), b (C,) realises, each with features that do so;
    none when two classes have equal rows and biases. Exact whatever the position of the weights;
    meant for a dozen classes in a few dimensions.
    """
    rows, bias = exact_layer(W, b)
    hyperplanes = braid_arrangement(W, b)
    if hyperplanes is None:
        return {}
    logits = {
        x: [_dot(w, x) + c for w, c in zip(rows, bias, strict=True)]
        for x in visit_regions(hyperplanes, len(rows[0]))
    }
    return {rank_classes(scores): x for x, scores in logits.items()}


def decide_ranking(ranking: Sequence[int], W: Any, b: Any = None) -> RankingVerdict:
    """Decide whether a layer realises a ranking, by the simplex method in fractions: features at
    which every step rises, or the weights with which the steps contradict each other. ValueError if
    the ranking is not a permutation of the classes; TooLargeError where fractions take too long.
    """
    rows, bias = exact_layer(W, b)
    order = tuple(int(c) for c in ranking)
    if sorted(order) != list(range(len(rows))):
        classes = f"the {len(rows)} classes 0 ... {len(rows) - 1}"
        raise ValueError(f"the ranking {order} is not a permutation of {classes}.")
    if len(order) == 1:  # nothing to compare
        return RankingVerdict(order, True, x=(Fraction(0),) * len(rows[0]))
    normals, offsets = _steps(order, rows, bias)
    steps = [list(normal) for normal in normals]
    x, weights = decide_region(Unbounded(), steps, list(offsets), True, SECONDS)
    if x is None:
        return RankingVerdict(order, False, weights=tuple(weights))
    return RankingVerdict(order, True, x=tuple(x))


def effective_shape(W: Any, b: Any = None) -> tuple[int, bool]:
    """The dimension and the bias that count for the rankings: (rank of W modulo the all-ones
    vector, whether b adds to that span).

    A multiple of the all-ones vector, added to the logits, changes no ranking, and a bias in the
    span only shifts the features. `count_regions` of these two is the most that the layer can
    realise, reached in general position. The ranks are exact: give integers or fractions for a
    bias that is meant to lie in the span.
    """
    rows, bias = exact_layer(W, b)
    relative = [[p - q for p, q in zip(row, rows[0], strict=True)] for row in rows[1:]]
    with_bias = [[*row, c - bias[0]] for row, c in zip(relative, bias[1:], strict=True)]
    dimension = _rank(relative)
    return dimension, _rank(with_bias) > dimension


def _steps(ranking: Ranking, rows: Sequence[Point], bias: Point) -> tuple[list[Point], Point]:
    """Normals (C - 1, d) and offsets (C - 1,) of the half-spaces that realise the ranking."""
    pairs = list(pairwise(ranking))
    normals = [tuple(q - p for p, q in zip(rows[i], rows[j], strict=True)) for i, j in pairs]
    return normals, tuple(bias[j] - bias[i] for i, j in pairs)


def _dot(a: Sequence[Fraction], x: Sequence[Fraction]) -> Fraction:
    return sum((p * q for p, q in zip(a, x, strict=True)), Fraction(0))


def _rank(matrix: Sequence[Sequence[Fraction]]) -> int:
    """The exact rank of a matrix of fractions, 0 without rows."""
    from sympy import QQ
    from sympy.polys.matrices import DomainMatrix

    if not matrix:
        return 0
    rows = [[QQ(x.numerator, x.denominator) for x in row] for row in matrix]
    return int(DomainMatrix(rows, (len(rows), len(rows[0])), QQ).rank())
