"""Bounds on rounding errors, the ground on which every verdict stands, and conversions that change
nothing.

Standard model (Higham 2002, Section 3.1): a sum of n products computed in any order, with or
without fused multiply-add, is off by at most ``gamma_n |w|.|x|`` with ``gamma_n = n u / (1 - n
u)``, u the unit roundoff, plus what underflow loses. All bounds here are inflated by a factor that
covers the rounding of the bound itself.
"""

from __future__ import annotations

import os
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softgeom.threads import lasting_threads

# a bound is itself a short float64 computation: its relative error is far below this
INFLATE = 1 + 1e-9
LEAST = 5e-324  # the smallest float
HAIR = 2.0**-60  # 1 and so much more or less is 1


def gamma(n: int, dtype: Any = np.float64) -> float:
    """``n u / (1 - n u)`` for the dtype's unit roundoff u, inflated; inf from n u = 1/2 on."""
    nu = n * float(np.finfo(dtype).eps) / 2
    return nu / (1 - nu) * INFLATE if nu < 0.5 else float("inf")


def underflow(n: int, dtype: Any = np.float64) -> float:
    """What n operations can lose below the normal range, flushed to zero or not."""
    return 4.0 * n * float(np.finfo(dtype).tiny)


def demand_standard_model() -> None:
    """ValueError where this process does not compute as all bounds suppose: two layers would then
    read alike, a margin's sign be lost, or an error be larger than its bound.
    """
    if not LEAST + LEAST:
        raise ValueError(
            "Nothing can be proven in this process: it takes denormal numbers for zero. Call "
            "torch.set_flush_denormal(False), or do without the library built with -ffast-math."
        )
    if 1 + HAIR != 1 or 1 - HAIR != 1:
        raise ValueError(
            "Nothing can be proven in this process: it does not round to the nearest number. Call "
            "fesetround(FE_TONEAREST), or do without the library that changed this."
        )
    threads = lasting_threads()
    right = _products_are_right if threads else _products_are_right.__wrapped__
    if not right(threads):
        raise ValueError(
            "Nothing can be proven in this process: its matrix products take denormal numbers for "
            "zero, do not round to the nearest number, or keep fewer digits. Threads keep the mode "
            "in which they start: import numpy before a library built with -ffast-math."
        )


@cache
def _products_are_right(threads: tuple[int, ...]) -> bool:
    """Whether matrix products keep the standard model, when each BLAS takes so many threads: with
    more of them others take part.
    """
    return _multiplies_well(np.float32) and _multiplies_well(np.float64)


if hasattr(os, "register_at_fork"):  # after it the threads of both processes are new ones
    os.register_at_fork(before=_products_are_right.cache_clear)


def _multiplies_well(dtype: Any) -> bool:
    """Whether matrix products keep a number's last digit and denormals, and round to the nearest:
    in every thread, of which BLAS starts more, and none in the mode of the one that asks.
    """
    info, n = np.finfo(dtype), 256  # a size that up to 64 threads share
    terms = [(1 + info.eps, 0), (1, info.eps / 8), (1, -info.eps / 8), (info.tiny / 8, 0)]
    left, right = np.zeros((n, n), dtype), np.zeros((n, n), dtype)
    left[:, :2], right[:2] = np.tile(terms, (n // 4, 1)), 1
    return bool((left @ right == left[:, :1]).all())


def exponent(size: float) -> int:
    """The e with ``2^(e-1) <= size < 2^e``; 0 for zero and for what is not finite."""
    return int(np.frexp(size)[1]) if np.isfinite(size) else 0


def shrink(values: ArrayLike, power: int) -> NDArray[np.float64]:
    """``2^power values``, towards zero where float64 does not hold that."""
    given = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        moved = np.ldexp(given, power)
        grown = np.abs(np.ldexp(moved, -power)) > np.abs(given)
    return np.where(grown, np.nextafter(moved, 0.0), moved)


def norm_up(V: NDArray[np.float64]) -> NDArray[np.float64]:
    """Upper bounds on the 2-norms of V (..., n), infinite for a NaN: squares neither overflow nor
    vanish.
    """
    largest = np.abs(V).max(axis=-1, initial=0.0)
    power = np.frexp(np.where(np.isfinite(largest), largest, 0.0))[1]
    # exact, or off by an underflow that the last term covers
    scaled = np.ldexp(V, -power[..., None])
    n = V.shape[-1]
    squares = np.einsum("...n,...n->...", scaled, scaled) * (1 + gamma(n + 2)) + underflow(n)
    with np.errstate(over="ignore"):  # infinity is an upper bound, too
        bound = np.ldexp(np.sqrt(squares) * INFLATE, power) + underflow(1)
    return np.where(largest == 0, 0.0, np.where(np.isnan(largest), np.inf, bound))


def widened(array: NDArray[Any]) -> NDArray[Any]:
    """bfloat16 (of ml_dtypes, as JAX has it) as float32, which holds each of its numbers."""
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def as_floats(given: ArrayLike, name: str) -> NDArray[np.float64]:
    """Numbers as float64 where each is one exactly. ValueError if an entry is no real number, or
    would change: int64 2^53 + 1, most longdoubles, Fraction(1, 3).
    """
    array = np.asarray(given)
    if array.dtype.kind not in "biufO":
        other = {"c": "complex ones", "U": "text", "S": "text"}.get(array.dtype.kind, array.dtype)
        raise ValueError(f"{name} must be an array of real numbers, not {other}.")
    try:
        floats = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be an array of real numbers: {error}.") from None
    for place in np.argwhere(_may_change(array, floats)):
        value, kept = array[tuple(place)], float(floats[tuple(place)])
        if np.isfinite(kept) and _fraction(value) != Fraction(kept):
            where = f" at {[int(i) for i in place]}" if array.ndim else ""
            raise ValueError(
                f"{name} holds {value}{where}, which float64 would round to {kept!r}: "
                "a proof about rounded numbers would be about another layer; round it "
                "yourself first."
            )
    return floats


def _may_change(array: NDArray[Any], floats: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Entries whose conversion to float64 may have changed them."""
    if array.dtype.kind in "iu":
        return np.asarray(np.abs(floats) >= 2.0**53)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return np.asarray(floats.astype(array.dtype) != array)
    return np.full(array.shape, array.dtype.kind == "O")


def _fraction(value: Any) -> Fraction:
    if isinstance(value, np.floating):
        return Fraction(*value.as_integer_ratio())
    return Fraction(int(value)) if isinstance(value, np.integer) else Fraction(value)
