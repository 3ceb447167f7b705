"""What a point reaches and what weights add up to, by the definition and in fractions."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgeom.certifying.checker import wins
from softgeom.certifying.order import Order
from softgeom.layer import SoftmaxLayer


def exact(values: Any) -> list[Any]:
    """A vector or matrix of floats as fractions."""
    array = np.asarray(values)
    if array.ndim > 1:
        return [exact(row) for row in array]
    return [Fraction(v) for v in array.astype(float if array.dtype != object else object).tolist()]


def dot(v: Iterable[Fraction], w: Iterable[Fraction]) -> Fraction:
    """The inner product."""
    return sum((p * q for p, q in zip(v, w, strict=True)), Fraction(0))


def exact_logits(layer: SoftmaxLayer, x: Any) -> list[Fraction]:
    """``W x + b`` at x (d,), floats or fractions."""
    x = exact(x)
    return [dot(row, x) + c for row, c in zip(exact(layer.W), exact(layer.bias), strict=True)]


def exact_margin(layer: SoftmaxLayer, order: Order | int, x: Any) -> Fraction:
    """The smallest difference that an order demands, or that a class has to all others."""
    order = order if isinstance(order, Order) else wins(order)
    y = exact_logits(layer, x)
    return min(y[a] - y[b] for up, low in order.steps(len(y)) for a in up for b in low)


def right_side(
    layer: SoftmaxLayer, t: int, rivals: NDArray[np.intp], weights: Any
) -> tuple[list[Fraction], Fraction]:
    """``v = sum l_i (w_t - w_i)`` and ``c = sum l_i (b_t - b_i)`` of weights l (k,) on rivals."""
    W, b, w = exact(layer.W), exact(layer.bias), exact(weights)
    v = [dot(w, (own - W[i][k] for i in rivals)) for k, own in enumerate(W[t])]
    return v, dot(w, (b[t] - b[i] for i in rivals))


def gamma(n: int, dtype: Any = np.float64) -> Fraction:
    """``n u / (1 - n u)``, exactly: what n roundings can do to a sum of products."""
    nu = n * Fraction(float(np.finfo(dtype).eps)) / 2
    return nu / (1 - nu)


def integer_layer(
    C: int, d: int, bias: bool, seed: int = 0, size: int = 30
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Rows (C, d) and biases (C,), if any, of random integers from -size to below it."""
    rng = np.random.default_rng(seed)
    return rng.integers(-size, size, (C, d)), rng.integers(-size, size, C) if bias else None
