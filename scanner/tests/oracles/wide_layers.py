"""Layers of 65 to 400 classes whose verdicts are known exactly, so that an oracle reaches every
route.

Enumeration follows a dozen classes. *Padded* layers have more: each class that joins is a convex
combination of rows with a bias at or below the combination of biases, or a copy with a lower bias.
At every x it is at most level with a class that is there already, so it never wins, and whoever won
before wins on. The combinations are made in fractions and kept only where the layer's dtype holds
them.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from enumeration import Truth
from tiny_layers import TinyLayer

from softgeom.layer import SoftmaxLayer

Row = tuple[Fraction, ...]
DENOMINATORS = (2, 4, 16, 64)
UNARGMAXABLE = Truth("unargmaxable", None)


@dataclass(frozen=True, eq=False)
class WideLayer:
    """A tiny layer and the classes that joined it."""

    tiny: TinyLayer
    layer: SoftmaxLayer
    order: np.ndarray  # (C,) class of the tiny layer at each place, or one beyond it

    def truths(self) -> list[Truth]:
        """The verdict on each class; margins are upper bounds on those of winners."""
        known = self.tiny.truths()
        return [known[i] if i < len(known) else UNARGMAXABLE for i in self.order.tolist()]


def padded(rng: np.random.Generator, tiny: TinyLayer, classes: int) -> WideLayer | None:
    """The tiny layer with others, up to so many classes in all, shuffled; None where too few
    fit.
    """
    rows, bias = _exact(tiny.layer.W), None
    if tiny.layer.b is not None:
        bias = [row[0] for row in _exact(tiny.layer.b[:, None])]
    effective = [tuple(map(Fraction, row)) for row in tiny.rows.tolist()]
    taken = set(effective)
    fresh: list[tuple[Row, Fraction | None]] = []
    for _ in range(4 * classes):
        if len(fresh) + len(rows) >= classes:
            break
        joined = _combination(rng, rows, bias, effective, tiny.layer.W.dtype)
        if joined is not None and (joined[2] is None or joined[2] not in taken):
            fresh.append(joined[:2])
            taken.add(joined[2] or effective[0])
    C = len(rows) + len(fresh)
    order = rng.permutation(C)
    W = np.concatenate([tiny.layer.W, _stored([row for row, _ in fresh], tiny.layer.W)])
    b = None
    if bias is not None:
        extra = np.array([float(value) for _, value in fresh], tiny.layer.b.dtype)
        b = np.concatenate([tiny.layer.b, extra])[order]
    return WideLayer(tiny, SoftmaxLayer(W[order], b), order) if C > 64 else None


def _exact(values: np.ndarray) -> list[Row]:
    return [tuple(map(Fraction, row)) for row in values.astype(np.float64).tolist()]


def _stored(rows: list[Row], like: np.ndarray) -> np.ndarray:
    exact = np.array([[float(value) for value in row] for row in rows]).reshape(-1, like.shape[1])
    return exact.astype(like.dtype)


def _combination(
    rng: np.random.Generator,
    rows: list[Row],
    bias: list[Fraction] | None,
    effective: list[Row],
    dtype: np.dtype,
) -> tuple[Row, Fraction | None, Row | None] | None:
    """A row, its bias and its effective row; None where the dtype does not hold it. A copy has no
    effective row of its own.
    """
    if bias is not None and rng.random() < 0.15:
        i = int(rng.integers(len(rows)))
        lower = _below(bias[i], dtype, int(rng.integers(1, 4)))
        return None if lower is None or lower >= bias[i] else (rows[i], lower, None)
    unit = int(rng.choice(DENOMINATORS))
    few = rng.choice(len(rows), min(len(rows), int(rng.integers(2, 5))), replace=False).tolist()
    cuts = np.sort(rng.integers(0, unit + 1, len(few) - 1))
    shares = [Fraction(int(n), unit) for n in np.diff(cuts, prepend=0, append=unit)]

    def mean(of: list[Row]) -> Row:
        return tuple(
            sum((s * of[i][k] for s, i in zip(shares, few, strict=True)), Fraction(0))
            for k in range(len(of[0]))
        )

    row = mean(rows)
    if any(not _holds(value, dtype) for value in row):
        return None
    level = None
    if bias is not None:
        level = _below(mean([(value,) for value in bias])[0], dtype, int(rng.choice([0, 0, 1, 40])))
        if level is None:
            return None
    return row, level, mean(effective)


def _holds(value: Fraction, dtype: np.dtype) -> bool:
    with np.errstate(over="ignore"):
        return Fraction(float(dtype.type(float(value)))) == value if abs(value) < 2**1000 else False


def _below(value: Fraction, dtype: np.dtype, steps: int) -> Fraction | None:
    """The largest number of the dtype that is at most the value, and so many further down."""
    with np.errstate(over="ignore"):
        near = dtype.type(float(value))
        if not np.isfinite(near):
            return None
        while Fraction(float(near)) > value:
            near = np.nextafter(near, dtype.type(-np.inf))
        for _ in range(steps):
            near = np.nextafter(near, dtype.type(-np.inf))
    return Fraction(float(near)) if np.isfinite(near) else None
