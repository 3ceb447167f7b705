"""How high can a class that never wins be ranked? Bounds on its best rank, both certified.

*Lower bound.* Captors prove that at every x at least one of them has a logit at least the class's
own. Take them away and scan the class again: a second, disjoint set of captors proves a second
class ahead of it. k disjoint sets give rank >= k + 1. *Upper bound.* Once the class wins in the
remaining layer, its witness shows the rank that it has there among all classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.checker import Checker
from softgeom.bottleneck.certifying.verdict import Captors, Evidence, Witness
from softgeom.bottleneck.problem import make_problem
from softgeom.bottleneck.proving.decide import decide
from softgeom.bottleneck.searching.ascent import climb
from softgeom.bottleneck.searching.twins import find_twins
from softgeom.layer import Box, FeatureSet, SoftmaxLayer


@dataclass(frozen=True, eq=False)
class RankBounds:
    """The best rank of a class (1 = wins) lies between ``at_least`` and ``at_most``; ``point``
    shows the latter.
    """

    at_least: int
    at_most: int
    point: NDArray[np.floating] | None


def bound_rank(
    layer: SoftmaxLayer,
    t: int,
    features: FeatureSet = Box(100.0),  # noqa: B008 - frozen
) -> RankBounds:
    """Bound the best rank of class t over the feature set.

    Parameters
    ----------
    layer : SoftmaxLayer
        The layer, (C, d).
    t : int
        The class.
    features : FeatureSet
        Where x may lie.

    Notes
    -----
    The rank counts classes with a logit that is not certainly smaller. Undecided classes end with
    the trivial bound C.
    """
    kept, ahead = np.arange(layer.classes), 0
    while True:
        rest = SoftmaxLayer(layer.W[kept], None if layer.b is None else layer.b[kept])
        here = int(np.searchsorted(kept, t))
        evidence = _sparse_evidence(rest, here, features)
        if isinstance(evidence, Witness):
            return RankBounds(
                ahead + 1, _rank_at(layer, features, t, evidence.point), evidence.point
            )
        if isinstance(evidence, Captors):
            gone = evidence.rivals[evidence.weights > 0]
        else:
            return RankBounds(ahead + 1, layer.classes, None)
        kept, ahead = np.delete(kept, gone), ahead + 1


def _sparse_evidence(layer: SoftmaxLayer, t: int, features: FeatureSet) -> Evidence:
    """Evidence by a programme, whose captors are few: each set that is taken away should be as
    small as possible.
    """
    tied, dominated = find_twins(layer, features)
    if t in tied or t in dominated:
        return Captors(np.array([{**tied, **dominated}[t]]), np.ones(1))
    problem, checker = make_problem(layer, features), Checker(layer, features)
    found = climb(problem, np.array([t]))
    witness = Witness(problem.lift(found.Z[0], max(float(found.margin[0]), 0.0)))
    if found.margin[0] > 0 and checker.certify(witness.point[None], np.array([t]))[0] > 0:
        return witness
    return decide(problem, checker, t, found.Z[0], found.rivals[0])[0]


def _rank_at(layer: SoftmaxLayer, features: FeatureSet, t: int, point: NDArray[np.floating]) -> int:
    """One more than the number of rivals that float64 with its rounding bounds does not put below
    t.
    """
    checker = Checker(layer, features)
    x = features.features_at(np.asarray(point, dtype=np.float64)[None])[0][0]
    logits = layer.logits(x)
    slack = checker.rounding_slack(point)
    return 1 + int((np.delete(logits, t) > logits[t] - slack).sum())
