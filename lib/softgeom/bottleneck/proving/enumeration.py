"""Verdicts on tiny integer layers by enumeration: an oracle that shares nothing with the search, the solvers or the checkers.

A class is captive iff some weights prove it (duality, hull.py), that is iff a system ``A l = y``, ``l >= 0`` has a solution; by
Caratheodory's theorem it then has one on independent columns, so trying all sets of them decides. Over a ball the nearest
point of ``{z : D z >= h}`` is ``D_S^T (D_S D_S^T)^-1 h_S`` for some independent active set S: squared norms and radii are
rational. All sets are tried at once in 64-bit integers, fraction-free (Bareiss 1968), or in Python's where minors might not fit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Region = tuple[Literal["box"], Integers, Integers] | tuple[Literal["ball"], Fraction] | tuple[Literal["unbounded"]]
PRIME = 2**31 - 1
CHUNK = 2000  # sets of columns tried together: most captives end at the first


def enumerate_verdict(W: Integers, b: Integers, t: int, region: Region) -> str:
    """The verdict on class t of the layer ``W z + b``, z in the region.

    Parameters
    ----------
    W, b : (C, d) and (C,) int64
        Rows and biases; for a normalisation the effective ones.
    t : int
        The class.
    region : ("box", low, high), ("ball", squared radius) or ("unbounded",)
        Where z may lie; low, high (d,) int64.

    Returns
    -------
    str
        "argmaxable", "unargmaxable" or "tied".
    """
    others = np.delete(np.arange(len(W)), t)
    D, c = W[t] - W[others], b[t] - b[others]
    same = ~D.any(axis=1)
    if np.any(same & (c < 0)):
        return "unargmaxable"
    if np.any(same & (c == 0)):
        return "tied"
    if not len(others):
        return "argmaxable"
    captive = _captive_in_ball(D, c, region[1]) if region[0] == "ball" else _captive(D, c, region)
    return "unargmaxable" if captive else "argmaxable"


def _captive(D: Integers, c: Integers, region: Region) -> bool:
    """Whether ``l >= 0``, sum 1, exist with ``support(D^T l) + c.l <= 0``."""
    k, d = D.shape
    eye, zero = np.eye(d, dtype=np.int64), np.zeros((d, 1), np.int64)
    one, slack = np.ones((1, k), np.int64), np.ones((1, 1), np.int64)
    if region[0] == "unbounded":
        A = np.block([[D.T, zero], [c[None], slack], [one, 0 * slack]])
    else:
        _, low, high = region  # type: ignore[misc]
        lowest = (c + D @ low)[None]
        A = np.block(
            [
                [D.T, -eye, eye, zero],
                [lowest, (high - low)[None], zero.T, slack],
                [one, zero.T, zero.T, 0 * slack],
            ]
        )
    y = np.zeros(len(A), np.int64)
    y[-1] = 1
    return has_nonnegative_solution(A, y)


def _captive_in_ball(D: Integers, c: Integers, square: Fraction) -> bool:
    """Whether no z wins in ``||z||^2 <= square``: none at all, or the nearest point of the closed set is not nearer."""
    if _captive(D, c, ("unbounded",)):
        return True
    if np.all(c > 0):
        return False  # the origin wins
    k, d = D.shape
    h = -c
    for size in range(1, min(k, d) + 1):
        for sets in _chunks(k, size):
            B = D[sets]  # (n, size, d)
            G = B @ B.transpose(0, 2, 1)
            det, u = _solve(G, h[sets])  # u / det are the multipliers
            z = (u[:, :, None] * B).sum(axis=1)  # times det
            good = (det > 0) & (u >= 0).all(axis=1) & (z @ D.T >= det[:, None] * h).all(axis=1)
            for n in np.flatnonzero(good):
                return Fraction(int((u[n] * h[sets[n]]).sum()), int(det[n])) >= square
    raise AssertionError("a non-empty polyhedron has a nearest point")


def has_nonnegative_solution(A: Integers, y: Integers) -> bool:
    """Whether ``A x = y`` has a solution x >= 0, A (m, n) and y (m,) integers."""
    rows = _independent_rows(A)
    if len(_independent_rows(np.column_stack([A, y]))) > len(rows):
        return False
    A, y = A[rows], y[rows]
    for sets in _chunks(A.shape[1], len(rows)):
        det, x = _solve(A[:, sets].transpose(1, 0, 2), np.broadcast_to(y, (len(sets), len(y))))
        if np.any((det != 0) & (x * np.sign(det)[:, None] >= 0).all(axis=1)):
            return True
    return False


def _solve(B: Integers, y: Integers) -> tuple[Integers, Integers]:
    """Determinants (n,) of B (n, m, m), and ``det B^-1 y`` (n, m): Gauss and Jordan without fractions."""
    n, m = y.shape
    lengths = np.sqrt((np.append(B.astype(float), y[..., None], axis=2) ** 2).sum(axis=2)).max(axis=0)
    fits = 2 * m * float(np.prod(lengths)) ** 2 < 2.0**62  # Hadamard, and products of two minors
    M = np.concatenate([B, y[..., None]], axis=2).astype(np.int64 if fits else object)
    previous, index = np.ones(n, M.dtype), np.arange(n)
    singular, sign = np.zeros(n, bool), np.ones(n, np.int64)
    for k in range(m):
        pivot = k + (M[:, k:, k] != 0).argmax(axis=1)
        M[index, k], M[index, pivot] = M[index, pivot].copy(), M[index, k].copy()
        sign[pivot != k] *= -1
        p = M[:, k, k].copy()
        singular |= p == 0
        p[singular] = 1
        top = M[:, k].copy()
        M = (p[:, None, None] * M - M[:, :, k, None] * top[:, None, :]) // previous[:, None, None]
        M[:, k] = top
        previous = p
    det = np.where(singular, 0, previous) * sign
    return det, M[:, :, m] * sign[:, None]


def _independent_rows(A: Integers) -> list[int]:
    """Indices of a maximal set of independent rows."""
    kept = _independent_modulo(A.tolist(), PRIME)
    return kept if len(kept) == len(A) else _independent_modulo(A.tolist(), None)


def _independent_modulo(rows: list[list[int]], prime: int | None) -> list[int]:
    """The same modulo a prime, where what is independent is so over the rationals too; or over the rationals."""
    basis: list[tuple[int, list[Any]]] = []
    kept = []
    for i, row in enumerate(rows):
        rest: list[Any] = (
            [Fraction(value) for value in row] if prime is None else row
        )  # fractions, or integers modulo the prime
        for lead, other in basis:
            if factor := rest[lead]:
                rest = [a - factor * b for a, b in zip(rest, other, strict=True)]
                rest = rest if prime is None else [value % prime for value in rest]
        first = next((j for j, value in enumerate(rest) if value), None)
        if first is not None:
            inverse = 1 / rest[first] if prime is None else pow(rest[first], -1, prime)
            rest = [value * inverse for value in rest]
            basis.append((first, rest if prime is None else [value % prime for value in rest]))
            kept.append(i)
    return kept


@lru_cache(maxsize=64)
def _all_sets(n: int, size: int) -> Integers:
    return np.array(list(itertools.combinations(range(n), size)), dtype=np.int64).reshape(-1, size)


def _chunks(n: int, size: int) -> Iterator[Integers]:
    sets = _all_sets(n, size)
    for start in range(0, len(sets), CHUNK):
        yield sets[start : start + CHUNK]
