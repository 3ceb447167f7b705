"""Label sets: which combinations can a sigmoid layer predict? (Grivas, Vergari and Lopez 2024,
"Taming the Sigmoid Bottleneck".)

A multi-label layer predicts label j at x when ``w_j.x + b_j > 0``. The set P of labels is
predicted, and no other label, iff the logits obey ``P > {zero} > N`` with a class *zero* whose row
and bias are 0: sign patterns are orders with a threshold in them.

*How many.* n labels in general position have as many patterns as n hyperplanes have regions
(Schläfli 1901; Cover 1965): ``2 sum_{k<d} C(n-1, k)`` without a bias, ``sum_{k<=d} C(n, k)`` with
one, out of 2^n: a vanishing share once n is well above 2 d.

*Which.* Counting says nothing about the sets that matter, those with few labels. The discrete
Fourier layer of the 2024 paper has rows ``(1, cos t_j, sin t_j, ..., cos k t_j, sin k t_j)`` at n
equidistant angles: a logit is a trigonometric polynomial of degree k at t_j, which changes its sign
at most 2 k times around the circle and can do so anywhere. So a pattern is possible iff it changes
at most 2 k times around (`changes`): every set of at most k labels is, and no pattern with more
changes is. The rows are the vertices of a cyclic polytope, neighbourly (Gale 1963). Columns of
*slack* beside them leave all of these possible, where the features may be zero there, and can only
add others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softgeom.arrays import Ints
from softgeom.asking.ask import BOX, Answers, ask
from softgeom.certifying.order import Order
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.names import Names

THRESHOLD = "(threshold)"


def with_threshold(layer: SoftmaxLayer) -> SoftmaxLayer:
    """The layer with one more class, the last, whose logit is 0 everywhere."""
    W = np.concatenate([layer.W, np.zeros((1, layer.dimension), layer.W.dtype)])
    b = None if layer.b is None else np.append(layer.b, layer.b.dtype.type(0))
    return SoftmaxLayer(W, b, None if layer.tokens is None else [*layer.tokens, THRESHOLD])


def ask_label_sets(
    layer: SoftmaxLayer,
    sets: Iterable[Iterable[int | str]],
    *,
    features: FeatureSet = BOX,
    n_jobs: int = 1,
) -> Answers:
    """For each set of labels, by number or name, whether some x switches on exactly these; the
    empty set is one. Answers are about ``with_threshold(layer)``, in which class n is the
    threshold; options are those of ``ask``.
    """
    names = Names(layer)
    orders = [_pattern(names, labels) for labels in sets]
    return ask(with_threshold(layer), orders, features=features, n_jobs=n_jobs)


def ask_labels(
    layer: SoftmaxLayer,
    labels: Iterable[int | str] | None = None,
    *,
    features: FeatureSet = BOX,
    n_jobs: int = 1,
    progress: bool = False,
) -> Answers:
    """For each label (default all), by number or name, whether its score exceeds 0 at some x,
    whatever the others do; about ``with_threshold(layer)``, options as of ``ask``.
    """
    asked = range(layer.classes) if labels is None else Names(layer).find_all(labels, "labels")
    orders = [Order([[int(t)], [layer.classes]]) for t in asked]
    how: Any = {"features": features, "n_jobs": n_jobs, "progress": progress}
    return ask(with_threshold(layer), orders, **how)


def fourier_layer(labels: int, k: int, slack: ArrayLike | None = None) -> SoftmaxLayer:
    """The discrete Fourier layer (n, 2 k + 1 + s), without bias: every set of at most k of its n >
    2 k labels can be predicted. Its Fourier columns are orthonormal; ``slack`` (n, s) are more
    columns, as training would add them. ValueError if k is not between 1 and (n - 1) / 2, or slack
    has another number of rows.
    """
    if not 1 <= 2 * k < labels:
        raise ValueError(f"{labels} labels allow 1 <= k <= {(labels - 1) // 2}, not {k}.")
    t = 2 * np.pi * np.arange(labels) / labels
    angles = [wave(j * t) for j in range(1, k + 1) for wave in (np.cos, np.sin)]
    waves = [wave * np.sqrt(2 / labels) for wave in angles]
    W = np.column_stack([np.full(labels, 1 / np.sqrt(labels)), *waves])
    if slack is not None:
        more = np.asarray(slack, dtype=float)
        if more.ndim != 2 or len(more) != labels:
            shape = f"({labels}), not shape {more.shape}"
            raise ValueError(f"Slack must have one row per label {shape}.")
        W = np.column_stack([W, more])
    return SoftmaxLayer(W)


def changes(pattern: ArrayLike) -> int | Ints:
    """How often patterns (..., n) of on and off change around the circle: even numbers (...,)."""
    on = np.asarray(pattern, dtype=bool)
    return (on != np.roll(on, 1, axis=-1)).sum(axis=-1)


def _pattern(names: Names, labels: Iterable[int | str]) -> Order:
    listed, classes = labels if isinstance(labels, str) else list(labels), names.layer.classes
    on = names.find_all(listed, "labels of a set") if listed else []
    off = sorted(set(range(classes)) - set(on))
    return Order([block for block in (on, [classes], off) if block])
