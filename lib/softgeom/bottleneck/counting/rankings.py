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
is not. `decide_ranking` returns the feature vector or the weights, either of them checked in
fractions: the linear programme proposes, it does not judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import linprog

from softgeom.bottleneck.counting.arrangement import (
    Point,
    braid_arrangement,
    exact_layer,
    visit_regions,
)

__all__ = [
    "RankingVerdict", "decide_ranking", "effective_shape", "feasible_rankings", "rank_classes",
]  # fmt: skip

Ranking = tuple[int, ...]

SUPPORT = 1e-9  # share of their sum below which weights are taken for zeros, to be checked exactly


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
    """Return the ranking of equation (3): classes in increasing order of ``scores`` (C,), logits or
    probabilities, the argmax last. ValueError if two are equal: a tie lies between the regions of
    the braid arrangement.

    Examples
    --------
    The example of the paper, there numbered from 1 as 3142:

    >>> rank_classes([0.2, 0.4, 0.1, 0.3])
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
    """Decide whether a layer realises a ranking, by a linear programme whose answer is then proven
    in fractions.

    The programme maximises the smallest step, capped at one: t subject to (w[pi_k+1] - w[pi_k]).x +
    b[pi_k+1] - b[pi_k] >= t. Its dual solution names the steps that contradict each other.
    ValueError if the ranking is no permutation of the classes; ArithmeticError if neither answer
    could be proven, which needs weights that differ by little more than rounding errors.
    """
    rows, bias = exact_layer(W, b)
    order = tuple(int(c) for c in ranking)
    if sorted(order) != list(range(len(rows))):
        classes = f"the {len(rows)} classes 0 ... {len(rows) - 1}"
        raise ValueError(f"the ranking {order} is no permutation of {classes}.")
    normals, offsets = _steps(order, rows, bias)
    if not normals:
        return RankingVerdict(order, True, x=(Fraction(0),) * len(rows[0]))
    A, c = np.array(normals, dtype=float), np.array(offsets, dtype=float)
    x, duals = _largest_smallest_step(A, c)
    candidates = [RankingVerdict(order, True, x=tuple(map(Fraction, x)))]
    weights = _exact_weights(normals, duals)
    if weights is not None:
        candidates.append(RankingVerdict(order, False, weights=weights))
    for verdict in candidates:
        if verdict.verify(W, b):
            return verdict
    close = f"the ranking {order} is too close to call in floating point"
    raise ArithmeticError(f"{close}; ask feasible_rankings instead.")


def effective_shape(W: Any, b: Any = None) -> tuple[int, bool]:
    """Return the dimension and the bias that count for the rankings: (rank of W modulo ones,
    whether b adds to that span).

    Adding a multiple of the all-ones vector to the logits changes no ranking. So columns of W that
    differ by one count once, a constant column not at all, and a bias in the span of the columns of
    W and the all-ones vector only shifts the features. `count_regions` of these two is the most
    that the layer can realise, reached in general position. The ranks are exact, so a bias that was
    meant to lie in the span must do so without rounding: give integers or fractions.
    """
    rows, bias = exact_layer(W, b)
    relative = [[p - q for p, q in zip(row, rows[0], strict=True)] for row in rows[1:]]
    with_bias = [[*row, c - bias[0]] for row, c in zip(relative, bias[1:], strict=True)]
    dimension = len(_row_reduce(relative)[1])
    return dimension, len(_row_reduce(with_bias)[1]) > dimension


def _steps(ranking: Ranking, rows: Sequence[Point], bias: Point) -> tuple[list[Point], Point]:
    """Normals (C - 1, d) and offsets (C - 1,) of the half-spaces that realise the ranking."""
    pairs = list(pairwise(ranking))
    normals = [tuple(q - p for p, q in zip(rows[i], rows[j], strict=True)) for i, j in pairs]
    return normals, tuple(bias[j] - bias[i] for i, j in pairs)


def _dot(a: Sequence[Fraction], x: Sequence[Fraction]) -> Fraction:
    return sum((p * q for p, q in zip(a, x, strict=True)), Fraction(0))


def _largest_smallest_step(
    normals: np.ndarray, offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Maximise t <= 1 with normals x + offsets >= t: x (d,), dual weights (C - 1,)."""
    # the sign of a step does not depend on its length, the solver's tolerances do
    scale = np.linalg.norm(np.column_stack([normals, offsets]), axis=1)
    scale[scale == 0] = 1.0
    A, c = normals / scale[:, None], offsets / scale
    steps, d = A.shape
    solution = linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.column_stack([-A, np.ones(steps)]),
        b_ub=c,
        bounds=[(None, None)] * d + [(None, 1.0)],
        method="highs",
    )
    if solution.status != 0:
        what = "the linear programme of a ranking stopped without an optimum"
        raise ArithmeticError(f"{what}: {solution.message}")
    return solution.x[:d], np.maximum(-solution.ineqlin.marginals, 0.0) / scale


def _exact_weights(normals: Sequence[Point], duals: np.ndarray) -> Point | None:
    """The one relation between the normals on the duals' support; None if not unique."""
    support = [k for k, weight in enumerate(duals) if weight > SUPPORT * duals.sum()]
    if not support:
        return None
    columns = [[normals[k][i] for k in support] for i in range(len(normals[0]))]  # (d, support)
    reduced, pivots = _row_reduce(columns)
    free = [k for k in range(len(support)) if k not in pivots]
    if len(free) != 1:
        return None
    weights = [Fraction(0)] * len(normals)
    weights[support[free[0]]] = Fraction(1)
    for row, pivot in zip(reduced, pivots, strict=False):
        weights[support[pivot]] = -row[free[0]]
    return tuple(weights)


def _row_reduce(matrix: Sequence[Sequence[Fraction]]) -> tuple[list[list[Fraction]], list[int]]:
    """Reduced row echelon form, and the columns of its pivots."""
    rows = [list(row) for row in matrix]
    pivots: list[int] = []
    for column in range(len(rows[0]) if rows else 0):
        top = len(pivots)
        found = next((i for i in range(top, len(rows)) if rows[i][column]), None)
        if found is None:
            continue
        rows[top], rows[found] = rows[found], rows[top]
        rows[top] = [value / rows[top][column] for value in rows[top]]
        for i, row in enumerate(rows):
            if i != top and row[column]:
                pairs = zip(row, rows[top], strict=True)
                rows[i] = [value - row[column] * pivot for value, pivot in pairs]
        pivots.append(column)
    return rows, pivots
