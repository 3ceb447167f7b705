"""Whether a layer's logits meet the region of a ranking, decided in the output space (001,
Corollary 1).

The region of a ranking pi is the open cone  {t 1 + sum_k s_k u_k : s > 0},  with u_k the indicator of the classes that pi ranks k-th or higher
and t free. A layer realises pi iff that cone meets the affine subspace {W x + b}: a linear
programme in t, s and x without an objective. It shares no code with `decide_ranking`, which looks
for x alone, in the feature space.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linprog

__all__ = ["meets_region"]

# Cones are open, programmes are closed, so each step must exceed something: without a bias regions
# are cones and any number does;
# with one a region may be small, and this is far below those of layers with integer entries of some
# hundreds.
SMALLEST_STEP = 1e-6


def meets_region(ranking: Sequence[int], W: Any, b: Any = None) -> bool:
    """Return whether some W x + b, W (C, d) and b (C,), lies in the region of a ranking of the
    classes 0 ... C - 1.

    Parameters
    ----------
    ranking : sequence of int
        The classes in increasing order of probability.
    W, b : array_like
        The layer; meant for entries of ordinary size, since the programme is solved in floating
        point.

    Raises
    ------
    ArithmeticError
        When the programme stops without an answer.
    """
    weights = np.asarray(W, dtype=float)
    classes, d = weights.shape
    offset = np.zeros(classes) if b is None else np.asarray(b, dtype=float)
    rays = np.array(
        [[float(c in ranking[k:]) for c in range(classes)] for k in range(classes)]
    )  # u_0 is the ones vector
    bounds = [(None, None)] + [(SMALLEST_STEP, None)] * (classes - 1) + [(None, None)] * d
    found = linprog(
        np.zeros(classes + d), A_eq=np.hstack([rays.T, -weights]), b_eq=offset, bounds=bounds
    )
    if found.status not in (0, 2):
        raise ArithmeticError(
            f"the programme of the ranking {tuple(ranking)} stopped without an answer: "
            f"{found.message}"
        )
    return bool(found.status == 0)
