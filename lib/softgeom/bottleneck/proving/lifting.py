"""Exact solutions of square rational systems by p-adic lifting (Dixon 1982): one inverse modulo a
prime, then digit by digit.

With ``A`` integer and B its inverse modulo p, the digits ``x_j = B r_j mod p`` and ``r_{j+1} = (r_j
- A x_j) / p`` give ``x = sum x_j p^j`` modulo any power of p; by Cramer's rule x has one
denominator, and numerators and denominator are bounded by Hadamard's inequality, so that enough
digits determine them (rational reconstruction, Wang 1981).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

PRIME = 2**26 - 5  # sums of 512 products of residues fit into 64 bits


def solve_by_lifting(A: Sequence[Sequence[Fraction]], y: Sequence[Fraction]) -> list[Fraction]:
    """Solve ``A x = y`` exactly, A (n, n), n <= 512. ValueError if A is singular (or its
    determinant is a multiple of the prime).
    """
    n = len(A)
    if n > 512 or any(len(row) != n for row in A):
        raise ValueError(f"Lifting solves square systems of up to 512 unknowns, not {n}.")
    rows, right = [], []
    for row, value in zip(A, y, strict=True):
        unit = math.lcm(*(v.denominator for v in row), value.denominator)
        whole = [int(v * unit) for v in row] + [int(value * unit)]
        common = math.gcd(*whole) or 1
        rows.append([v // common for v in whole[:n]])
        right.append(whole[n] // common)
    inverse = _inverse_modulo(np.array([[v % PRIME for v in row] for row in rows], dtype=np.int64))
    # Hadamard: |det| <= product of the norms of the rows of [A, y]; so is every Cramer numerator
    squares = (sum(v * v for v in row) + b * b for row, b in zip(rows, right, strict=True))
    bits = sum(math.isqrt(square).bit_length() + 1 for square in squares)
    matrix, residual = np.array(rows, dtype=object), np.array(right, dtype=object)
    total, power = np.zeros(n, dtype=object), 1
    for _ in range(2 * bits // (PRIME.bit_length() - 1) + 2):
        digit = inverse @ np.array([int(v) % PRIME for v in residual], dtype=np.int64) % PRIME
        digits = digit.astype(object)
        total += digits * power
        power *= PRIME
        residual = (residual - matrix @ digits) // PRIME
    return _reconstruct(total.tolist(), power, 1 << bits)


def _inverse_modulo(A: NDArray[np.int64]) -> NDArray[np.int64]:
    """The inverse of A (n, n) modulo the prime, by Gauss and Jordan."""
    n = len(A)
    M = np.concatenate([A, np.eye(n, dtype=np.int64)], axis=1)
    for k in range(n):
        pivots = np.flatnonzero(M[k:, k])
        if not len(pivots):
            raise ValueError("The system is singular modulo the prime of the lifting.")
        M[[k, k + pivots[0]]] = M[[k + pivots[0], k]]
        M[k] = M[k] * pow(int(M[k, k]), -1, PRIME) % PRIME
        factor = M[:, k].copy()
        factor[k] = 0
        M = (M - factor[:, None] * M[k] % PRIME) % PRIME
    return M[:, n:]


def _reconstruct(residues: list[Any], modulus: int, most: int) -> list[Fraction]:
    """Fractions with one denominator up to ``most`` that have these residues."""
    denominator, found = 1, []
    for residue in residues:
        # the numerator, if this entry needs no further factor
        value = residue * denominator % modulus
        value = value - modulus if value > modulus // 2 else value
        if abs(value) > most:
            fraction = _rational(residue * denominator % modulus, modulus, most)
            denominator *= fraction.denominator
            value = fraction.numerator
        found.append((value, denominator))
    return [Fraction(value, unit) for value, unit in found]


def _rational(residue: int, modulus: int, most: int) -> Fraction:
    """Numerator up to ``most`` over a small denominator: Euclid, stopped half-way."""
    a, b, p, q = modulus, residue, 0, 1
    while b > most:
        quotient = a // b
        a, b, p, q = b, a - quotient * b, q, p - quotient * q
    return Fraction(b, q)
