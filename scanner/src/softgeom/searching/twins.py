"""Twins, and copies with a smaller bias, which always lose (certifying/twins.py says when)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from softgeom.arrays import Ints
from softgeom.certifying.hull import effective
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.rounding import gamma

Bias = Fraction | float  # of effective rows, or as the layer has it


def find_twins(layer: SoftmaxLayer, features: FeatureSet) -> tuple[dict[int, int], dict[int, int]]:
    """Find classes that another with the same logits, up to a constant, stops: ``tied``, class ->
    the first other with the same effective row and bias; ``dominated``, class -> the one with the
    same row and the largest bias. A class is in at most one: having a better copy wins over having
    a twin.
    """
    tied: dict[int, int] = {}
    dominated: dict[int, int] = {}
    plain = not features.own_coordinates
    groups = _groups_of_equal_rows(layer) if plain else _near_groups(layer, features)
    for group, bias in groups:
        most = max(bias)
        top = [i for i, b in zip(group, bias, strict=True) if b == most]
        dominated.update((i, top[0]) for i, b in zip(group, bias, strict=True) if b < most)
        if len(top) > 1:
            tied.update((i, top[0] if i != top[0] else top[1]) for i in top)
    return tied, dominated


def _groups_of_equal_rows(layer: SoftmaxLayer) -> list[tuple[list[int], list[Bias]]]:
    """Two or more equal rows with their biases, found by hash and confirmed entry by entry."""
    buckets: dict[int, list[int]] = {}
    for start in range(0, layer.classes, 4096):
        # -0.0 becomes 0.0, which equals it
        rows = layer.W[start : start + 4096] + layer.W.dtype.type(0)
        for n, row in enumerate(np.ascontiguousarray(rows)):
            buckets.setdefault(hash(row.tobytes()), []).append(start + n)
    groups: list[tuple[list[int], list[Bias]]] = []
    for bucket in buckets.values():
        while len(bucket) > 1:
            equal = [i for i in bucket if np.array_equal(layer.W[i], layer.W[bucket[0]])]
            if len(equal) > 1:
                groups.append((equal, [float(b) for b in layer.bias[equal]]))
            bucket = [i for i in bucket if i not in set(equal)]
    return groups


def _near_groups(layer: SoftmaxLayer, features: FeatureSet) -> list[tuple[list[int], list[Bias]]]:
    """Equal effective rows with biases: neighbours in one direction, compared exactly."""
    direction = np.random.default_rng(0).normal(size=layer.dimension)
    place, slip = np.zeros(layer.classes), 0.0
    # what leaves float64 is not apart: compared exactly
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, layer.classes, 4096):
            W = layer.W[start : start + 4096].astype(np.float64)
            rows, error = features.equalities(W, np.zeros(len(W)))[:2]
            along = direction[: rows.shape[1]]
            place[start : start + 4096] = rows @ along
            error = error + gamma(layer.dimension) * np.abs(rows)
            slip = max(slip, float((error @ np.abs(along)).max()))
        order = np.argsort(place, kind="stable")
        apart = np.diff(place[order]) > 2 * slip
    groups: list[tuple[list[int], list[Bias]]] = []
    for near in np.split(order, np.flatnonzero(apart) + 1):
        if len(near) > 1:
            groups += _equal_within(layer, features, near)
    return groups


def _equal_within(
    layer: SoftmaxLayer, features: FeatureSet, near: Ints
) -> list[tuple[list[int], list[Bias]]]:
    found: dict[tuple[Fraction, ...], tuple[list[int], list[Bias]]] = {}
    for i in sorted(near.tolist()):
        row, bias = effective(layer, features, i)
        group = found.setdefault(tuple(row), ([], []))
        group[0].append(i)
        group[1].append(bias)
    return [group for group in found.values() if len(group[0]) > 1]
