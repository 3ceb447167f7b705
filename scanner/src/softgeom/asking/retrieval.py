"""Retrieval: which documents can no query rank first, and which sets can none return together?

An index of inner products ranks document i by ``w_i.q``: a layer without bias, in which the query
is the feature. Scaling a query changes no ranking, so every ball asks the same question.

*First.* A document that lies in the convex hull of others is never first, whatever is asked.
Vectors of one length are all vertices: each is the first for itself as the query, unless it has a
twin.

*Together.* S are the k first of some query iff ``S > everybody else`` can be obeyed: iff a
hyperplane cuts S off (a *k-set*). For that, length does not help. Radon's theorem splits any d + 2
documents into two sides whose hulls meet, and the smaller has at most ``floor(d/2) + 1``: no query
puts all of it above the other side. So with n >= d + 2 documents some set of k is never returned as
soon as

    k >= floor(d/2) + 1    (and n - k >= ceil(d/2) + 1, so that the other side fits),

and this is sharp: on the trigonometric moment curve, unit vectors in d = 2 k dimensions, every set
of k documents is returned, however many there are (the neighbourly polytopes of Gale
1963). The bound by counting or by the sign rank of a matrix of relevances (Weller et al. 2025,
"On the Theoretical Limitations of Embedding-Based Retrieval") says that some set is missing; here
each set is asked about, with a proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from numpy.typing import ArrayLike

from softgeom.asking.ask import Answers, ask
from softgeom.certifying.order import Order
from softgeom.layer import Ball, SoftmaxLayer
from softgeom.names import Names
from softgeom.scan_result import Scan
from softgeom.scanner import scan

QUERIES = Ball(1.0)


def make_index(vectors: ArrayLike, documents: Sequence[str] | None = None) -> SoftmaxLayer:
    """The index as a layer: one row per document, no bias; ``documents`` are their names."""
    return SoftmaxLayer(vectors, tokens=documents)


def never_first(index: SoftmaxLayer, *, n_jobs: int = 1) -> Scan:
    """Decide for each document whether some query ranks it first: a scan over the unit ball."""
    return scan(_unbiased(index), features=QUERIES, n_jobs=n_jobs)


def ask_together(
    index: SoftmaxLayer, sets: Iterable[Iterable[int | str]], *, n_jobs: int = 1
) -> Answers:
    """For each set of documents, whether some query ranks exactly these before all others.
    ValueError if a set is empty, names a document twice, or one that the index does not have.
    """
    names = Names(index)
    orders = [Order([names.find_all(some, "documents of a set")], rest=True) for some in sets]
    return ask(_unbiased(index), orders, features=QUERIES, n_jobs=n_jobs)


def largest_safe_set(dimension: int) -> int:
    """The largest k of which any index can return every set of k documents: ``floor(d/2)``."""
    if dimension < 1:
        raise ValueError(f"An index has at least one dimension, not {dimension}.")
    return dimension // 2


def _unbiased(index: SoftmaxLayer) -> SoftmaxLayer:
    if index.b is not None:
        raise ValueError("An index of inner products has no bias: give the vectors alone.")
    return index
