"""Outputs that can be cut off without changing an answer, although the runtime computes in float32.

*Argument.* Let class t be unargmaxable with certified best margin at most -g < 0: its evidence is
weights l >= 0 with sum 1 on its captors such that ``sum l_i (y_t(x) - y_i(x)) <= -g`` for every x
of the feature set. A runtime computes each logit, in any order of summation, with an error of at
most ``e_i = gamma_{d+2} (sup |w_i|.|x| + |b_i|)``, numbers that it rounds among it, and what is
lost below float32's range; a sum that may leave that range has no bound. Suppose that its answer,
the class of the largest *computed* logit, were t. Then no captor's computed logit is larger, so ``0
<= sum l_i (computed y_t - computed y_i) <= -g + e_t + sum l_i e_i``: a contradiction where ``g >
e_t + sum l_i e_i``. The captors may be cut off themselves, for the argument never uses that they
stay. So no answer of the runtime is among the classes cut off, and every answer stays. What may
change are ties of *kept* classes that lead by less than rounding, where a narrower product may sum
in another order.

The supremum over a box of radius 100 is far from what networks compute: all features at their bound
at once. Where features are known to be no *longer* than R (their norm, not each entry), ``|w|.|x|
<= R ||w||`` is smaller, and the answer is the same on the set's part within R.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softgeom.arrays import Floats, Ints
from softgeom.certifying.verdict import Captors
from softgeom.layer import Ball, Box, Ellipsoid, FeatureSet, SoftmaxLayer
from softgeom.rounding import gamma, norm_up, underflow
from softgeom.scan_result import Scan


@dataclass(frozen=True)
class Cut:
    """Which classes a pruned layer keeps: ``kept`` (K,) in their old order; ``dropped`` (C - K,),
    proven never to be the runtime's answer; ``close``, unargmaxable in exact arithmetic, but by
    less than the runtime's rounding, and kept unless asked for.
    """

    kept: Ints
    dropped: Ints
    close: Ints


def cut(scan: Scan, *, longest: float | None = None, close_too: bool = False) -> Cut:
    """The classes to keep, so that the answer is the same on features x of the set with ``||x||_2
    <= longest`` (default all). ``close_too`` also cuts classes certified unargmaxable by less
    than rounding: the same answer in exact arithmetic only. ValueError if some class was not
    scanned or is undecided, or the features have no bound, so that rounding has none either.
    """
    layer = scan.layer
    if len(scan.findings) != layer.classes:
        count = f"{len(scan.findings)} of {layer.classes} classes were scanned"
        raise ValueError(f"{count}: prune needs the verdict of each.")
    if undecided := scan.counts["undecided"]:
        raise ValueError(f"{undecided} classes are undecided: nothing can be cut off before.")
    errors = rounding_errors(layer, scan.features, longest)
    certain: list[int] = []
    close: list[int] = []
    for finding in scan.findings:
        if isinstance(finding.evidence, Captors):
            weights = np.asarray(finding.evidence.weights, dtype=float)
            theirs = weights @ errors[finding.evidence.rivals] / weights.sum()
            needed = errors[finding.index] + theirs
            (certain if -finding.margin > needed else close).append(finding.index)
    dropped = np.array(sorted(certain + close if close_too else certain), dtype=np.intp)
    kept = np.setdiff1d(np.arange(layer.classes), dropped)
    return Cut(kept, dropped, np.array(close, dtype=np.intp))


def rounding_errors(
    layer: SoftmaxLayer, features: FeatureSet, longest: float | None = None
) -> Floats:
    """``gamma_{d+2} (sup |w_i|.|x| + |b_i|)`` (C,) and what underflows, infinite where a sum may
    overflow: how far a float32 logit can be from the true one, for features of the set of norm at
    most ``longest``. ValueError without bounds, or for a norm that is no positive number.
    """
    W, root = np.abs(layer.W.astype(np.float64)), layer.dimension**0.5
    b = np.abs(layer.bias.astype(np.float64))
    if longest is not None and not (np.isfinite(longest) and longest > 0):
        raise ValueError(f"the longest feature vector must have a positive norm, not {longest}.")
    norms = norm_up(W)
    within, far = (np.inf, np.inf) if longest is None else (longest * norms, longest * root)
    if isinstance(features, Box):
        low, high = features.bounds(layer.dimension)
        largest = W @ (most := np.maximum(np.abs(low), np.abs(high)))
        far = min(far, float(most.sum()))
    elif isinstance(features, Ball):
        largest = features.radius * norms
        far = min(far, features.radius * root)
    elif isinstance(features, Ellipsoid):
        gain, shift = np.abs(features.gain), np.abs(features.bias)
        largest = W @ shift + features.radius * norm_up(W * gain)
        far = min(far, float(shift.sum() + features.radius * norm_up(gain)))
    elif longest is not None:
        largest = np.full(layer.classes, np.inf)
    else:
        raise ValueError(
            "without bounds on the features there is none on rounding: say how long they can "
            "be, or scan a box."
        )
    sizes = np.minimum(largest, within) + b
    # numbers, and products, of which nothing is left below the normal range
    lost = underflow(1, np.float32) * (far + W.sum(axis=1))
    lost += underflow(layer.dimension + 2, np.float32)
    beyond = np.maximum(sizes, np.maximum(W.max(axis=1), far)) >= np.finfo(np.float32).max / 2
    return np.where(beyond, np.inf, gamma(layer.dimension + 2, np.float32) * sizes + lost)


def pruned(layer: SoftmaxLayer, kept: Ints) -> SoftmaxLayer:
    """The layer of the kept classes alone."""
    tokens = None if layer.tokens is None else [layer.tokens[t] for t in kept]
    return SoftmaxLayer(layer.W[kept], None if layer.b is None else layer.b[kept], tokens)
