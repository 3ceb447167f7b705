"""How close the rows of a layer lie to one another: rows that training told apart are far from each
other, copies are not.

An imprisoned class needs others around it, and a row that is a copy of another up to rounding was,
most likely, never asked for: such classes are moved by the softmax and by weight decay alone, in
the same direction as every other of their kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["nearest_row"]

# rows that are looked at again: the expansion of a square cancels, so the nearest may come second
# or third
_CANDIDATES = 8
_BLOCK = 512


def nearest_row(W: NDArray[Any], classes: ArrayLike | None = None) -> NDArray[np.float64]:
    """Distance (n,) from each of the chosen rows of W (C, d) to the nearest other row of W; default
    all.

    Raises
    ------
    ValueError
        When there is no other row.
    """
    rows = np.asarray(W, dtype=np.float64)
    if len(rows) < 2:
        raise ValueError("a nearest other row needs two classes at least.")
    chosen = np.arange(len(rows)) if classes is None else np.asarray(classes, dtype=np.intp)
    squares = np.einsum("cd,cd->c", rows, rows)
    count = min(_CANDIDATES, len(rows) - 1)
    distance = np.empty(len(chosen))
    for start in range(0, len(chosen), _BLOCK):
        block = chosen[start : start + _BLOCK]
        near = squares - 2 * rows[block] @ rows.T  # (n, C), up to a constant of each row
        near[np.arange(len(block)), block] = np.inf
        candidates = np.argpartition(near, count - 1, axis=1)[:, :count]
        exact = np.linalg.norm(rows[candidates] - rows[block][:, None], axis=2)
        distance[start : start + _BLOCK] = exact.min(axis=1)
    return distance
