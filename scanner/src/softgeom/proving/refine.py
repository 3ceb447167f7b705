"""Weights that a sceptic can use: few, with a residual at rounding, or exactly rational.

Where room absorbs the residual v of rounded weights, they are a certificate as they are. Where an
equality must hold (no bias, or unbounded features) floats cannot, and the proof is that weights
near them exist: blocking classes whose simplex holds the class with room. That argument (hull.py,
route 2) is the shorter the fewer blocking classes there are and the smaller v is beside the least
weight:

* *reduce*: non-negative least squares picks at most |K| + 1 of the blocking classes (Caratheodory);
* *refine*: Newton's correction ``l - R v`` until v is what float64 leaves;
* *exact* (on request): the same system solved in rationals by p-adic lifting (Dixon 1982).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray

from softgeom.arrays import Floats, Ints
from softgeom.certifying import hull
from softgeom.certifying.hull import certify_unargmaxable, exact_row
from softgeom.certifying.verdict import BlockingClasses
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.proving.lp import CORRECTIONS

PRIME = 2**26 - 5  # sums of 512 products of residues fit into 64 bits


def refine(
    layer: SoftmaxLayer, features: FeatureSet, t: int, blocking: BlockingClasses
) -> tuple[BlockingClasses, float]:
    """Thinner and sharper weights where an equality has to hold, and the bound that they certify.

    Blocking classes that prove with room, or in fractions, come back as they are, and so do those
    that only get worse.
    """
    given = (layer, features, t, blocking.rivals, blocking.weights)
    if blocking.weights.dtype != object and not hull.has_slack(*given):
        finer = _finer(layer, features, t, blocking)
        if finer is not None:
            bound = certify_unargmaxable(layer, features, t, finer.rivals, finer.weights)
            if bound <= 0:
                return finer, bound
    return blocking, certify_unargmaxable(*given)


def _finer(
    layer: SoftmaxLayer, features: FeatureSet, t: int, blocking: BlockingClasses
) -> BlockingClasses | None:
    """The corrected weights; None where there is no system to solve."""
    A = _system(layer, features, t, blocking)
    if not np.isfinite(A).all():
        return None
    target = np.append(np.zeros(len(A) - 1), float(blocking.weights.sum()))
    rivals, weights = blocking.rivals, blocking.weights.astype(np.float64)
    if len(rivals) > len(A):
        try:
            weights = scipy.optimize.nnls(A, target)[0]
        except RuntimeError:
            return None  # not converged
        kept = weights > 0
        rivals, weights, A = rivals[kept], weights[kept], A[:, kept]
    scaled = A * weights
    Q, R = scipy.linalg.qr(scaled.T, mode="economic", check_finite=False)
    least = len(A) * np.finfo(float).eps * np.abs(R).max()
    depends = len(R) < len(A) or np.abs(np.diag(R)).min() <= least
    for _ in range(CORRECTIONS):
        miss = target - A @ weights
        if depends:
            correction = scipy.linalg.lstsq(scaled, miss, check_finite=False)[0]
        else:
            correction = Q @ scipy.linalg.solve_triangular(R, miss, trans="T", check_finite=False)
        weights = np.maximum(weights + weights * correction, 0.0)
    return BlockingClasses(rivals[weights > 0], weights[weights > 0])


def make_exact(
    layer: SoftmaxLayer, features: FeatureSet, t: int, blocking: BlockingClasses
) -> BlockingClasses:
    """The same blocking classes with rational weights that hold the equality to the last bit.

    A class with d blocking classes needs about ``d (24 + log2 d)`` bits for each numerator from a
    float32 layer: some 200 kilobytes a class for d = 256. ValueError if the blocking classes' rows
    are dependent, or some rational weight is negative.
    """
    if blocking.weights.dtype == object:
        return blocking
    finer = refine(layer, features, t, blocking)[0]
    as_they_are = [Fraction(w) for w in finer.weights.tolist()]
    own = np.full(len(finer.rivals), t)
    if hull.exact_comparisons(layer, features, own, finer.rivals, as_they_are):
        return BlockingClasses(finer.rivals, np.array(as_they_are, dtype=object))
    K = _equalities(layer, features, t, finer)[1]
    row, others = exact_row(layer, t)[0], [exact_row(layer, int(i))[0] for i in finer.rivals]
    leads = ([p - q for p, q in zip(row, other, strict=True)] for other in others)
    rows = [features.equalities_exactly(lead) for lead in leads]
    A = [[row[k] for row in rows] for k in K] + [[Fraction(1)] * len(rows)]
    if len(A) != len(rows):
        told = f"{len(rows)} blocking classes for {len(A)} equations have no unique weights."
        raise ValueError(f"Class {t}: {told}")
    solution = solve_by_lifting(A, [Fraction(0)] * len(K) + [Fraction(1)])
    exact = BlockingClasses(finer.rivals, np.array(solution, dtype=object))
    bound = certify_unargmaxable(layer, features, t, exact.rivals, exact.weights)
    if min(solution) < 0 or not bound <= 0:
        raise ValueError(
            f"Class {t}: the rational weights of these blocking classes prove nothing."
        )
    return exact


def _equalities(
    layer: SoftmaxLayer, features: FeatureSet, t: int, blocking: BlockingClasses
) -> tuple[Floats, Ints]:
    """Columns E (k, m) whose weighted sums must vanish, and which of them are not zero anyway."""
    D = layer.W[t].astype(np.float64) - layer.W[blocking.rivals].astype(np.float64)
    E = features.equalities(D, np.zeros(len(D)))[0]
    weights = blocking.weights.astype(np.float64)
    tiny = np.abs(weights @ E) <= hull.TINY * (weights @ np.abs(E))
    return E, np.flatnonzero(tiny & E.any(axis=0))


def _system(layer: SoftmaxLayer, features: FeatureSet, t: int, blocking: BlockingClasses) -> Floats:
    """Rows of order one: the differences that must vanish, and ones (|K| + 1, k)."""
    E, K = _equalities(layer, features, t, blocking)
    return np.vstack([E[:, K].T / np.abs(E[:, K]).max(axis=0)[:, None], np.ones(len(E))])


def solve_by_lifting(A: Sequence[Sequence[Fraction]], y: Sequence[Fraction]) -> list[Fraction]:
    """Solve ``A x = y`` exactly, A (n, n), n <= 512, by p-adic lifting (Dixon 1982): one inverse
    modulo a prime, then digit by digit. ValueError if A is singular (or its determinant is a
    multiple of the prime).

    With ``A`` integer and B its inverse modulo p, the digits ``x_j = B r_j mod p`` and ``r_{j+1} =
    (r_j - A x_j) / p`` give ``x = sum x_j p^j`` modulo any power of p; by Cramer's rule x has one
    denominator, and numerators and denominator are bounded by Hadamard's inequality, so that enough
    digits determine them (rational reconstruction, Wang 1981).
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
