"""The counting theory tried on actual layers: every function draws or takes layers, decides them
exactly, and returns one table.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import numpy as np
import pandas as pd
import sympy

from softgeom.bottleneck.counting import positions
from softgeom.bottleneck.counting.arrangement import braid_arrangement, count_arrangement_regions
from softgeom.bottleneck.counting.lowrank import log_probabilities
from softgeom.bottleneck.counting.output_space import meets_region
from softgeom.bottleneck.counting.polynomials import closed_form, summed_recurrence
from softgeom.bottleneck.counting.rankings import decide_ranking, effective_shape, feasible_rankings
from softgeom.bottleneck.counting.regions import count_regions, count_regions_by_recurrence

__all__ = [
    "braid_sizes",
    "count_by_formulas",
    "count_one_by_one",
    "decide_all_rankings",
    "polynomial_table",
    "rank_table",
    "realised_in_any_position",
    "try_positions",
]

SIZES = [(C, d) for C in range(2, 11) for d in range(1, 11)]  # of Tables 2 and 3 of paper 001
_RANK_GAP = 1e-10  # singular values below this share of the first count as zeros


def braid_sizes(numbers: Iterable[int]) -> pd.DataFrame:
    """Hyperplanes and regions of the braid arrangement of n classes, by visiting (001, Appendix B):
    n (n - 1) / 2 and n!.
    """
    rows = []
    for n in numbers:
        identity = np.eye(n, dtype=int)
        planes = len(braid_arrangement(identity) or [])
        rows.append(
            (n, planes, len(feasible_rankings(identity)), math.comb(n, 2), math.factorial(n))
        )
    return pd.DataFrame(
        rows, columns=["classes", "hyperplanes", "regions", "pairs", "permutations"]
    )


def count_by_formulas(bias: bool) -> pd.DataFrame:
    """Tables 2 (no bias) and 3 by the closed form and by the recurrence: columns classes,
    dimension, regions, by_recurrence.
    """
    rows = [
        (C, d, count_regions(C, d, bias), count_regions_by_recurrence(C, d, bias)) for C, d in SIZES
    ]
    return pd.DataFrame(rows, columns=["classes", "dimension", "regions", "by_recurrence"])


def count_one_by_one(rng: np.random.Generator, bias: bool, limit: int) -> pd.DataFrame:
    """Regions of one random layer of every size whose formula stays below a limit, counted by
    deletion and restriction.
    """
    rows = []
    for C, d in SIZES:
        formula = count_regions(C, d, bias)
        if d <= C and formula <= limit:
            layer = positions.random_layer(rng, C, d, bias)
            rows.append(
                (C, d, bias, count_arrangement_regions(braid_arrangement(*layer) or []), formula)
            )
    return pd.DataFrame(rows, columns=["classes", "dimension", "bias", "counted", "formula"])


def polynomial_table(dimension: int) -> pd.DataFrame:
    """For every d up to `dimension`: whether both symbolic routes give one polynomial in the number
    of classes, and which.
    """
    rows = [
        (
            d,
            bias,
            closed_form(d, bias) == summed_recurrence(d, bias),
            str(sympy.factor(closed_form(d, bias))),
        )
        for bias in (False, True)
        for d in range(1, dimension + 1)
    ]
    return pd.DataFrame(rows, columns=["dimension", "bias", "equal", "regions"])


def try_positions() -> pd.DataFrame:
    """Rankings realised by the layers of `positions.SPECIAL_LAYERS`, beside the formula for their
    size.
    """
    rows = [
        (
            name,
            len(feasible_rankings(W, b)),
            count_regions(4, 2, b is not None),
            *effective_shape(W, b),
        )
        for name, (W, b) in positions.SPECIAL_LAYERS.items()
    ]
    return pd.DataFrame(
        rows,
        columns=[
            "layer",
            "realised",
            "formula_for_its_size",
            "effective_dimension",
            "effective_bias",
        ],
    )


def realised_in_any_position(rng: np.random.Generator, layers: int, size: int = 3) -> pd.DataFrame:
    """Rankings of 24 realised by layers of four classes with d < C - 1 and entries so small that
    special positions are common.
    """
    rows = [
        (d, bias, len(feasible_rankings(*positions.random_layer(rng, 4, d, bias, size=size))))
        for d in (1, 2)
        for bias in (False, True)
        for _ in range(layers)
    ]
    return pd.DataFrame(rows, columns=["dimension", "bias", "realised"])


def decide_all_rankings(rng: np.random.Generator, classes: int) -> pd.DataFrame:
    """All rankings of four random layers, decided in the feature space, in the output space and
    with exact evidence (Corollary 1).
    """
    rows = []
    for d, bias in ((1, True), (2, False), (2, True), (classes - 1, False)):
        W, b = positions.random_layer(rng, classes, d, bias, size=100)
        regions = feasible_rankings(W, b)
        for ranking in itertools.permutations(range(classes)):
            verdict = decide_ranking(ranking, W, b)
            row = (
                ranking in regions,
                meets_region(ranking, W, b),
                verdict.feasible,
                verdict.verify(W, b),
            )
            rows.append((d, bias, *row))
    return pd.DataFrame(
        rows, columns=["dimension", "bias", "realised", "meets_region", "decided", "proven"]
    )


def rank_table(
    rng: np.random.Generator, dimension: int, contexts: int = 40, classes: int = 20
) -> pd.DataFrame:
    """Ranks of tables (contexts, classes) of logits, of the same less one of their rows, and of the
    log-probabilities (Section 2.1).
    """
    rows = []
    for d, bias in itertools.product(range(1, dimension + 1), (False, True)):
        X, W, b = (
            rng.normal(size=(contexts, d)),
            rng.normal(size=(classes, d)),
            rng.normal(size=classes) * bias,
        )
        logits = X @ W.T + b
        tables = (logits, logits - logits[0], log_probabilities(X, W, b))
        rows.append((d, bias, *(int(np.linalg.matrix_rank(A, rtol=_RANK_GAP)) for A in tables)))
    return pd.DataFrame(
        rows, columns=["dimension", "bias", "logits", "differences", "log_probabilities"]
    )
