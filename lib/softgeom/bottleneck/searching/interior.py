"""Demeter, Kimmel and Downey (2020): interior classes, what bounds them, and an approximate test
for them.

*Inequality.* In a layer without bias, if ``w_t = sum_i l_i w_i`` with convex weights l, then for
every x the logit of t is the weighted mean of its captors' and so at most the largest of them;
softmax is monotone, hence at every x some class on the hull is at least as probable as an interior
one.

*Approximate test.* Paper 001 reports of their test only that it is approximate, with "a precision
approaching 100% but 68% recall" against Qhull on ten dimensions. The test here is a reconstruction
with that one-sided error: a class is declared to be on the hull when it wins in one of a fixed list
of directions (its own row from the mean, and random ones). A win is a proof, so the precision is
exact; hull classes that win in none of the directions are missed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softgeom.layer import SoftmaxLayer


@dataclass(frozen=True)
class Quality:
    """Agreement of a test with the truth: shares in [0, 1], NaN where there is nothing to count."""

    precision: float
    recall: float


def declare_on_hull(
    layer: SoftmaxLayer, directions: int = 1000, *, seed: int = 0
) -> NDArray[np.bool_]:
    """Whether each class (C,) wins in its own direction from the mean row or in one of
    ``directions`` random ones.
    """
    W = layer.W.astype(np.float64)
    declared = np.zeros(layer.classes, dtype=bool)
    own = W - W.mean(axis=0)
    for start in range(0, layer.classes, 1024):
        block = np.arange(start, min(start + 1024, layer.classes))
        declared[block] |= (own[block] @ W.T).argmax(axis=1) == block
    X = np.random.default_rng(seed).normal(size=(directions, layer.dimension))
    declared[np.unique((X @ W.T).argmax(axis=1))] = True
    return declared


def quality(declared: NDArray[np.bool_], truth: NDArray[np.bool_]) -> Quality:
    """Precision and recall of a declared set against the true one, both (C,) boolean."""
    hits = int((declared & truth).sum())
    claimed, present = int(declared.sum()), int(truth.sum())
    return Quality(
        hits / claimed if claimed else float("nan"), hits / present if present else float("nan")
    )
