"""Layers of four classes and two features in general and in special position: where the counts of
001, Tables 2 and 3, are only upper bounds.

The counts hold in general position. What counts for any position is the rank of W modulo the
all-ones vector, and whether b adds to that span (`effective_shape`); even then special weights may
realise fewer rankings, as the corners of a square do.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["GENERIC", "SPECIAL_LAYERS", "SQUARE", "WITH_ONES", "random_layer"]

GENERIC = [[1, 2], [3, -1], [-2, 5], [-4, -4]]
SQUARE = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
# d = C - 1, but the columns add up to the all-ones vector
WITH_ONES = [[u, v, 1 - u - v] for u, v in GENERIC]

SPECIAL_LAYERS: dict[str, tuple[list, list | None]] = {
    "general position": (GENERIC, None),
    "general position, bias": (GENERIC, [3, 10, -3, -1]),
    "corners of a square": (SQUARE, None),
    "corners of a square, bias": (SQUARE, [3, 7, 11, 100]),
    "constant bias": (GENERIC, [5, 5, 5, 5]),
    "bias in the column space": (GENERIC, [2 * u - 3 * v for u, v in GENERIC]),
    "bias in the span of columns and ones": (GENERIC, [2 * u - 3 * v + 7 for u, v in GENERIC]),
    "one row the midpoint of two": ([*GENERIC[:3], [2, Fraction(1, 2)]], None),
    "one column constant": ([[u, 3] for u, _ in GENERIC], None),
    "two equal rows": ([*GENERIC[:3], GENERIC[0]], None),
}


def random_layer(
    rng: np.random.Generator, classes: int, dimension: int, bias: bool, size: int = 10**6
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Integer weights (C, d) and biases (C,) or None, uniform on -size ... size - 1: in general
    position when size is large.
    """
    W = rng.integers(-size, size, (classes, dimension))
    return W, rng.integers(-size, size, classes) if bias else None
