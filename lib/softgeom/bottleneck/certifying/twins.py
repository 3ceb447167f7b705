"""Classes with equal rows: exact twins, which tie everywhere, and copies with a smaller bias, which always lose."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softgeom.layer import SoftmaxLayer


def find_twins(layer: SoftmaxLayer) -> tuple[dict[int, int], dict[int, int]]:
    """Find classes that another class with the same row stops.

    Returns
    -------
    tied, dominated : dict
        Class -> the first other class with the same row and the same bias, and class -> a class with the same row and
        the largest bias. A class is in at most one of them: having a better copy wins over having a twin.
    """
    tied: dict[int, int] = {}
    dominated: dict[int, int] = {}
    bias = layer.bias
    for group in _groups_of_equal_rows(layer):
        top = group[bias[group] == bias[group].max()]
        dominated.update((int(i), int(top[0])) for i in group if bias[i] < bias[top[0]])
        if len(top) > 1:
            tied.update((int(i), int(top[0] if i != top[0] else top[1])) for i in top)
    return tied, dominated


def _groups_of_equal_rows(layer: SoftmaxLayer) -> list[NDArray[np.intp]]:
    """Index arrays of two or more equal rows, found by hash and confirmed entry by entry."""
    buckets: dict[int, list[int]] = {}
    for start in range(0, layer.classes, 4096):
        rows = layer.W[start : start + 4096] + layer.W.dtype.type(0)  # -0.0 becomes 0.0, which equals it
        for n, row in enumerate(np.ascontiguousarray(rows)):
            buckets.setdefault(hash(row.tobytes()), []).append(start + n)
    groups = []
    for bucket in buckets.values():
        while len(bucket) > 1:
            equal = [i for i in bucket if np.array_equal(layer.W[i], layer.W[bucket[0]])]
            if len(equal) > 1:
                groups.append(np.array(equal))
            bucket = [i for i in bucket if i not in set(equal)]
    return groups
