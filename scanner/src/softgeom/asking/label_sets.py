"""Label sets: which combinations can a sigmoid layer predict? (Grivas, Vergari and Lopez 2024,
"Taming the Sigmoid Bottleneck".)

A multi-label layer predicts label j at x when ``w_j.x + b_j > 0``. The set P of labels is
predicted, and no other label, iff the logits obey ``P > {zero} > N`` with a class *zero* whose row
and bias are 0: sign patterns are orders with a threshold in them.

*How many.* n labels in general position have as many patterns as n hyperplanes have regions
(Schläfli 1901; Cover 1965): ``2 sum_{k<d} C(n-1, k)`` without a bias, ``sum_{k<=d} C(n, k)`` with
one, out of 2^n: a vanishing share once n is well above 2 d.

*Which.* Counting says nothing about the sets that matter, those with few labels: each is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

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


def _pattern(names: Names, labels: Iterable[int | str]) -> Order:
    listed, classes = labels if isinstance(labels, str) else list(labels), names.layer.classes
    on = names.find_all(listed, "labels of a set") if listed else []
    off = sorted(set(range(classes)) - set(on))
    return Order([block for block in (on, [classes], off) if block])
