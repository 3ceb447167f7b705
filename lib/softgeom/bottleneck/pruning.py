"""Outputs that can be cut off without changing an answer, although the runtime computes in float32.

*Argument.* Let class t be unargmaxable with certified best margin at most -g < 0: weights l >= 0 with sum 1 on its captors prove
``max over captors i of y_i(x) >= y_t(x) + g`` for every x of the feature set. A runtime computes each logit, in any order of summation, with an
error of at most ``e_i = gamma_{d+1} (sup |w_i|.|x| + |b_i|)``. Suppose that its answer, the class of the largest *computed*
logit, were t. Some captor i has ``computed y_i >= y_i - e_i >= y_t + g - e_i >= computed y_t + g - e_i - e_t``, so for ``g > e_t + max e_i``
it is larger: a contradiction. The captors may be cut off themselves, for the argument never uses that they stay. So no answer of the runtime is
among the classes cut off, and every answer stays. What may change are ties of *kept* classes that lead by less than rounding, where a
narrower product may sum in another order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.verdict import Captors
from softgeom.bottleneck.scanner import Scan
from softgeom.layer import Ball, Box, Ellipsoid, FeatureSet, SoftmaxLayer
from softgeom.rounding import gamma


@dataclass(frozen=True)
class Cut:
    """Which classes a pruned layer keeps.

    Attributes
    ----------
    kept : (K,) integers
        In their old order.
    dropped : (C - K,) integers
        Proven never to be the runtime's answer.
    close : integers
        Unargmaxable in exact arithmetic, but by less than the runtime's rounding: kept unless asked for.
    """

    kept: NDArray[np.intp]
    dropped: NDArray[np.intp]
    close: NDArray[np.intp]


def cut(scan: Scan, *, close_too: bool = False) -> Cut:
    """The classes to keep.

    Parameters
    ----------
    scan : Scan
        Of all classes.
    close_too : bool
        Also cut classes whose captivity is certified by less than rounding: the same answer in exact arithmetic only.

    Raises
    ------
    ValueError
        When some class was not scanned or is undecided, or the features have no bound, so that rounding has none either.
    """
    layer = scan.layer
    if len(scan.findings) != layer.classes:
        raise ValueError(
            f"{len(scan.findings)} of {layer.classes} classes were scanned: prune needs the verdict of each."
        )
    if undecided := scan.counts["undecided"]:
        raise ValueError(f"{undecided} classes are undecided: nothing can be cut off before they are.")
    errors = rounding_errors(layer, scan.features)
    certain, close = [], []
    for finding in scan.findings:
        if isinstance(finding.evidence, Captors):
            rivals = finding.evidence.rivals[finding.evidence.weights > 0]
            needed = errors[finding.index] + errors[rivals].max()
            (certain if -finding.margin > needed else close).append(finding.index)
    dropped = np.array(sorted(certain + close if close_too else certain), dtype=np.intp)
    kept = np.setdiff1d(np.arange(layer.classes), dropped)
    return Cut(kept, dropped, np.array(close, dtype=np.intp))


def rounding_errors(layer: SoftmaxLayer, features: FeatureSet) -> NDArray[np.float64]:
    """``gamma_{d+1} (sup over the set of |w_i|.|x| + |b_i|)`` (C,): how far a float32 logit can be from the true one.

    Raises
    ------
    ValueError
        For a set without bounds.
    """
    W = np.abs(layer.W.astype(np.float64))
    if isinstance(features, Box):
        low, high = features.bounds(layer.dimension)
        largest = W @ np.maximum(np.abs(low), np.abs(high))
    elif isinstance(features, Ball):
        largest = features.radius * np.linalg.norm(W, axis=1)
    elif isinstance(features, Ellipsoid):
        largest = W @ np.abs(features.bias) + features.radius * np.linalg.norm(W * np.abs(features.gain), axis=1)
    else:
        raise ValueError(
            "without bounds on the features there is none on rounding: scan a box, a ball or an ellipsoid."
        )
    return gamma(layer.dimension + 1, np.float32) * (largest + np.abs(layer.bias.astype(np.float64)))


def pruned(layer: SoftmaxLayer, kept: NDArray[np.intp]) -> SoftmaxLayer:
    """The layer of the kept classes alone."""
    tokens = None if layer.tokens is None else [layer.tokens[t] for t in kept]
    return SoftmaxLayer(layer.W[kept], None if layer.b is None else layer.b[kept], tokens)
