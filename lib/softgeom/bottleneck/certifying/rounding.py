"""Bounds on rounding errors, the ground on which every verdict stands.

Standard model (Higham 2002, Section 3.1): a sum of n products computed in any order, with or without fused
multiply-add, is off by at most ``gamma_n |w|.|x|`` with ``gamma_n = n u / (1 - n u)``, u the unit roundoff, plus
what underflow loses. All bounds here are inflated by a factor that covers the rounding of the bound itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

INFLATE = 1 + 1e-9  # a bound is itself a short float64 computation: its relative error is far below this


def gamma(n: int, dtype: Any = np.float64) -> float:
    """``n u / (1 - n u)`` for the dtype's unit roundoff u, inflated; infinite when n u reaches 1/2."""
    nu = n * float(np.finfo(dtype).eps) / 2
    return nu / (1 - nu) * INFLATE if nu < 0.5 else float("inf")


def underflow(n: int, dtype: Any = np.float64) -> float:
    """What n operations can lose below the normal range, even where subnormals are flushed to zero."""
    return 4.0 * n * float(np.finfo(dtype).tiny)
