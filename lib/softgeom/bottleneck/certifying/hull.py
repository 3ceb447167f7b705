"""Certified captivity: do these weights prove that a class can never win?

For weights l >= 0 on rivals and every x of the feature set X,

    s m_t(x) <= max_{x in X} v.x + c,    v = sum_i l_i (w_t - w_i),  c = sum_i l_i (b_t - b_i),  s = sum_i l_i,

because the margin m_t(x) is the smallest of the terms averaged on the right. A right side <= 0 is a proof. The form is
homogeneous on purpose: normalising rounded weights can prove a falsehood. Three routes, each for what the one before
left open:

1. *dual*: the right side in float64 with its rounding bounds (box, ball, ellipsoid; needs room to spare);
2. *simplex*: v vanishes exactly in the coordinates K where it is tiny, for some weights near the given ones. With
   ``A = [(w_i - w_t)_K ; 1]`` and an approximate right inverse R, ``||I - A R|| < 1`` proves that A has full row rank
   and that weights ``l + delta`` solve the system with ``|delta| <= |R| ||r|| / (1 - ||I - A R||)``. If no weight turns
   negative, the combination exists. No bias and unbounded features need this: there the bound is 0, without room;
3. *exact*: the same system in fractions, for small layers whose rows are dependent.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.rounding import INFLATE, gamma, underflow
from softgeom.bottleneck.proving.exact import solve_nonnegative
from softgeom.layer import Ball, Box, Ellipsoid, FeatureSet, SoftmaxLayer

TINY = (
    1e-6  # v_k counts as zero below this fraction of sum_i l_i |w_t - w_i|_k: the LP's tolerance and float32 reach it
)
NEAR_TIE = 1e-6  # fractions are tried only when the right side is this small beside the terms that it sums
EXACT_ENTRIES = 64 * 64  # fractions take seconds at this size and minutes at twice as many rows


def certify_captivity(
    layer: SoftmaxLayer, features: FeatureSet, t: int, rivals: NDArray[np.intp], weights: NDArray[np.float64]
) -> float:
    """Return an upper bound on the best margin of class t that the weights prove; inf when they prove nothing.

    Parameters
    ----------
    layer : SoftmaxLayer
        The layer, (C, d).
    features : FeatureSet
        Where x may lie.
    t : int
        The class in question.
    rivals : (k,) integer array
        Other classes.
    weights : (k,) array
        Non-negative, not all zero; they need not sum to one.

    Notes
    -----
    A bound <= 0 proves that t never wins strictly.
    """
    rivals, weights = np.asarray(rivals, dtype=np.intp), np.asarray(weights, dtype=np.float64)
    valid = rivals.ndim == 1 and rivals.shape == weights.shape and len(rivals) > 0 and 0 <= t < layer.classes
    if not valid or rivals.min() < 0 or rivals.max() >= layer.classes or np.any(rivals == t):
        return np.inf
    if not np.all(np.isfinite(weights)) or weights.min() < 0 or not weights.max() > 0:
        return np.inf
    weights = weights / 2.0 ** np.round(np.log2(weights.sum()))  # a power of two: exact
    kept = weights > 0
    system = _System(layer, features, t, rivals[kept], weights[kept])
    bound = system.dual_bound()
    if not bound <= 0:
        bound = min(bound, system.simplex_bound())
    if not bound <= 0 and system.is_near_tie() and system.D.size <= EXACT_ENTRIES:
        bound = min(bound, system.exact_bound())
    return bound


class _System:
    """The differences ``D = w_t - w_i`` (k, d), ``c = b_t - b_i`` (k,) and v with their rounding bounds."""

    def __init__(
        self, layer: SoftmaxLayer, features: FeatureSet, t: int, rivals: NDArray[np.intp], weights: NDArray[np.float64]
    ) -> None:
        self.layer, self.features, self.t, self.rivals, self.weights = layer, features, t, rivals, weights
        k, d = len(rivals), layer.dimension
        b = layer.bias
        self.D = layer.W[t].astype(np.float64) - layer.W[rivals].astype(np.float64)
        self.c = b[t].astype(np.float64) - b[rivals].astype(np.float64)
        self.v = weights @ self.D
        self.size = weights @ np.abs(self.D)  # (d,) what |v| would be if nothing cancelled
        slip = gamma(k + 3)
        self.v_error = slip * self.size * INFLATE
        self.v_error += np.where(self.D.any(axis=0), underflow(k + 3), 0.0)
        self.total = float(weights.sum())
        self.constant = float(weights @ self.c)
        self.constant_error = slip * float(weights @ np.abs(self.c)) * INFLATE
        self.d = d

    def dual_bound(self) -> float:
        """The right side divided by s, rounded up."""
        reach, size = _support_bound(self.features, self.v, self.v_error)
        if not np.isfinite(reach):
            return np.inf
        right = reach + self.constant + self.constant_error
        right += gamma(self.d + 8) * (size + abs(self.constant) + self.constant_error) * INFLATE
        return _divide_up(right, self.total)

    def is_near_tie(self) -> bool:
        """Whether the right side is so close to 0 that rounding, not geometry, keeps the other routes from deciding."""
        if isinstance(self.features, Box):
            low, high = self.features.bounds(self.d)
            reach = np.maximum(np.abs(low), np.abs(high))
            right = _interval_support(low, high, self.v, self.v).sum() + self.constant
            return bool(right <= NEAR_TIE * (reach @ self.size + self.weights @ np.abs(self.c)))
        return bool(
            np.all(np.abs(self.v) <= TINY * self.size) and self.constant <= NEAR_TIE * (self.weights @ np.abs(self.c))
        )

    def simplex_bound(self) -> float:
        """The same with v = 0 exactly on the coordinates where it is tiny, for weights that must then exist."""
        tiny = np.abs(self.v) <= TINY * self.size
        if not isinstance(self.features, Box) and not tiny.all():
            return np.inf
        K = np.flatnonzero(tiny & self.D.any(axis=0))  # a coordinate shared by all rows vanishes by itself
        delta = self._correction(K)
        if delta is None or not np.all(delta < self.weights * (1 - 1e-9)):
            return np.inf
        constant = self._shifted_constant(delta)
        rest = ~tiny
        if not rest.any():
            return _divide_up(constant, self.total * 2) if constant <= 0 else np.inf
        moved = self.v_error + delta @ np.abs(self.D) * INFLATE
        low, high = self.features.bounds(self.d)  # type: ignore[union-attr]
        terms = _interval_support(low[rest], high[rest], self.v[rest] - moved[rest], self.v[rest] + moved[rest])
        slack = gamma(self.d + 8) * (np.abs(terms).sum() + abs(constant)) * INFLATE
        right = float(terms.sum()) + constant + (slack if terms.any() else 0.0)
        return _divide_up(right, self.total * 2) if right <= 0 else np.inf

    def _shifted_constant(self, delta: NDArray[np.float64]) -> float:
        """Upper bound on ``sum (l + delta)_i c_i``; never above 0 when no c_i is (then rounding cannot matter)."""
        moved = float(delta @ np.abs(self.c)) * INFLATE
        bound = self.constant + self.constant_error + moved
        return min(bound, 0.0) if np.all(self.c <= 0) else bound

    def _correction(self, K: NDArray[np.intp]) -> NDArray[np.float64] | None:
        """Bounds (k,) on |delta| that makes v vanish on K and keeps the sum of the weights; None if not proven."""
        k = len(self.weights)
        if len(K) + 1 > k:
            return None
        scale = np.maximum(np.abs(self.D[:, K]).max(axis=0), np.finfo(float).tiny)
        A = np.vstack([-self.D[:, K].T / scale[:, None], np.ones(k)])  # (|K| + 1, k), rows of order one
        right = np.append((np.abs(self.v[K]) + self.v_error[K]) / scale, 0.0)
        # Right inverse weighted by l: delta is then small where the weight is small.
        Q, triangle = scipy.linalg.qr((A * self.weights).T, mode="economic")
        if not np.all(np.abs(np.diag(triangle)) > 1e-14 * np.abs(triangle).max()):
            return None
        R = self.weights[:, None] * scipy.linalg.solve_triangular(triangle, Q.T).T
        product_error = (gamma(k + 2) + gamma(8)) * (np.abs(A) @ np.abs(R)) * INFLATE
        residual = (np.abs(np.eye(len(A)) - A @ R) + product_error).sum(axis=1).max() * INFLATE
        if not residual < 0.5:
            return None
        return np.abs(R).sum(axis=1) * (right.max() * (1 + gamma(8)) / (1 - residual)) * INFLATE

    def exact_bound(self) -> float:
        """The simplex route in fractions; also decides combinations on the boundary of the hull."""
        tiny = np.abs(self.v) <= TINY * self.size
        if not isinstance(self.features, Box) and not tiny.all():
            return np.inf
        D, c = self._exact_differences()
        K = np.flatnonzero(tiny)
        A = [[row[k] for row in D] for k in K] + [[Fraction(1)] * len(D)]
        near = [Fraction(float(w)) for w in self.weights]
        total = sum(near, Fraction(0))
        solution = solve_nonnegative(A, [Fraction(0)] * len(K) + [total], near)
        if solution is None:
            return np.inf
        right = sum((weight * value for weight, value in zip(solution, c, strict=True)), Fraction(0))
        if isinstance(self.features, Box):
            low, high = self.features.bounds(self.d)
            for k in np.flatnonzero(~tiny):
                v = sum((weight * row[k] for weight, row in zip(solution, D, strict=True)), Fraction(0))
                right += max(Fraction(float(low[k])) * v, Fraction(float(high[k])) * v)
        return _round_up(right / total) if right <= 0 else np.inf

    def _exact_differences(self) -> tuple[list[list[Fraction]], list[Fraction]]:
        def fractions(row: NDArray[Any]) -> list[Fraction]:
            return [Fraction(value) for value in row.astype(np.float64).tolist()]

        own, b = fractions(self.layer.W[self.t]), fractions(self.layer.bias[[self.t, *self.rivals]])
        rows = [fractions(self.layer.W[i]) for i in self.rivals]
        return [[p - q for p, q in zip(own, row, strict=True)] for row in rows], [b[0] - value for value in b[1:]]


def _support_bound(features: FeatureSet, v: NDArray[np.float64], error: NDArray[np.float64]) -> tuple[float, float]:
    """Upper bound on ``max of v.x`` for every v within ``error``, and the sum of sizes that went into it."""
    if isinstance(features, Box):
        low, high = features.bounds(len(v))
        terms = _interval_support(low, high, v - error, v + error)
        return float(terms.sum()), float(np.abs(terms).sum())
    if isinstance(features, Ball):
        reach = features.radius * _norm_up(np.abs(v) + error)
        return reach, reach
    if isinstance(features, Ellipsoid):
        scaled = features.gain * v
        slip = np.abs(features.gain) * error * INFLATE + gamma(len(v) + 4) * (np.abs(scaled) + np.abs(scaled).mean())
        centred = scaled - scaled.mean() if features.centred else scaled
        reach = features.radius * (_norm_up(np.abs(centred)) + _norm_up(slip))
        along = np.abs(features.bias) @ (np.abs(v) + error)
        return float(features.bias @ v + np.abs(features.bias) @ error + reach), float(along + reach)
    return (0.0, 0.0) if not v.any() and not error.any() else (np.inf, np.inf)


def _interval_support(
    low: NDArray[np.float64], high: NDArray[np.float64], v_low: NDArray[np.float64], v_high: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``max of v x`` over v in [v_low, v_high] and x in [low, high]: the largest of the four corner products."""
    return np.maximum.reduce([low * v_low, low * v_high, high * v_low, high * v_high])


def _norm_up(v: NDArray[np.float64]) -> float:
    return float(np.sqrt(v @ v * (1 + gamma(len(v) + 2)) + underflow(len(v)))) * INFLATE


def _divide_up(right: float, total: float) -> float:
    """``right / s`` rounded up, when s is within rounding of ``total``."""
    quotient = right / total
    return quotient * (1 - 1e-9) if quotient <= 0 else quotient * INFLATE


def _round_up(value: Fraction) -> float:
    return min(float(value) * (1 - 1e-15), 0.0)
