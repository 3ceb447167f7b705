"""Unsigned Stirling numbers of the first kind, exactly and in logarithms.

c(n, m) counts the permutations of n elements with m cycles, and is the coefficient of x^m in the
rising factorial

    x (x + 1) ... (x + n - 1) = Gamma(x + n) / Gamma(x).

The counts of softmax rankings (001, Appendix C) are sums of c(n, n - k) over k up to the bottleneck
dimension, so both routes here are made for n in the hundred thousands and k in the thousands:

- exact: a permutation with n - k cycles moves k + j elements in j cycles of length two or more,
  hence c(n, n - k) = sum_j a(k, j) binom(n, k + j), with a(k, j) the associated Stirling numbers.
  That is a polynomial in n of degree 2 k, and its coefficients cost k^2 / 2 additions whatever n
  is;
- logarithms: Cauchy's integral on a circle through the saddle point. There the coefficients c(n, m)
  r^m / F(r) are the probabilities of a sum of independent coin flips, which one Fourier transform
  reads off without cancellation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, loggamma, polygamma

__all__ = [
    "associated_stirling", "log_stirling_tail", "stirling_polynomial_sum",
]  # fmt: skip


def associated_stirling(order: int) -> Iterator[list[int]]:
    """Yield, for k = 0 ... order, the row a(k, 0) ... a(k, k) of associated Stirling numbers of the
    first kind.

    a(k, j) counts the permutations of k + j elements that consist of j cycles, none of them a fixed
    point: a(k, j) = (k + j - 1) (a(k - 1, j) + a(k - 1, j - 1)), because the last element either
    enters a cycle of a smaller such permutation or pairs with one of the others in a cycle of two.
    """
    row = [1]
    yield row
    for k in range(1, order + 1):
        above = [*row, 0]
        row = [0] + [(k + j - 1) * (above[j] + above[j - 1]) for j in range(1, k + 1)]
        yield row


def stirling_polynomial_sum(n: int, orders: Iterable[int]) -> int:
    """Return the sum of c(n, n - k) over distinct orders k >= 0, exactly; those above n - 1 add
    nothing.
    """
    chosen = {k for k in orders if k < n}
    highest = max(chosen, default=-1)
    weights = [0] * (2 * highest + 2)  # of binom(n, m), m = k + j
    for k, row in enumerate(associated_stirling(highest)):
        if k in chosen:
            for j, a in enumerate(row[: n - k + 1]):  # binom(n, k + j) vanishes beyond
                weights[k + j] += a
    total, binomial = 0, 1
    for m, weight in enumerate(weights[: n + 1]):
        total += weight * binomial
        binomial = binomial * (n - m) // (m + 1)
    return total if highest >= 0 else 0


def log_stirling_tail(n: int, m: int, step: int = 1) -> float:
    """Return the natural logarithm of c(n, m) + c(n, m + step) + c(n, m + 2 step) + ..., 1 <= m <=
    n, in floating point; the step is 1 or 2.

    Notes
    -----
    On the circle |x| = r, c(n, k) r^k / F(r) with F(x) = Gamma(x + n) / Gamma(x) is the probability
    that K = k, where K sums independent coins of success r / (r + i), i = 0 ... n - 1 (all terms
    are positive and add up to one). The radius makes m the mean of K, but stays at one or above so
    that the weights r^(m - k) of the tail never grow. The trapezoidal rule with N points confuses k
    with k + N only; N spans more than a dozen standard deviations on either side, where Bernstein's
    inequality leaves nothing that a double could hold. The error of the logarithm is that of the
    log-gamma function, about 1e-16 r log r, with r below n^2 / (2 (n - m)).
    """
    if m == n:
        return 0.0
    r = _saddle_radius(n, m)
    mean, variance = _moments(n, r)
    # odd: no point on the negative axis
    points = int(2 * (14 * math.sqrt(variance) + 64 + abs(mean - m))) | 1
    theta = 2 * np.pi * np.arange(points) / points
    x = r * np.exp(1j * theta)
    log_F = loggamma(x + n) - loggamma(x)
    terms = np.exp(log_F - log_F[0].real - 1j * theta * (m % points))
    probabilities = np.fft.fft(terms).real / points  # of K = m + s
    s = np.arange(0, min(points // 2, n - m + 1), step)
    tail = np.sum(probabilities[s] * r ** -s.astype(float))
    return float(log_F[0].real - m * math.log(r) + math.log(tail))


def _moments(n: int, r: float) -> tuple[float, float]:
    """Mean and variance of the sum of coins with success r / (r + i), i = 0 ... n - 1."""
    mean = r * (digamma(r + n) - digamma(r))
    return float(mean), float(mean + r**2 * (polygamma(1, r + n) - polygamma(1, r)))


def _saddle_radius(n: int, m: int) -> float:
    """The radius at which the mean of K is m, or 1 when that is smaller."""

    def excess(log_r: float) -> float:
        return _moments(n, math.exp(log_r))[0] - m

    if excess(0.0) >= 0:
        return 1.0
    return math.exp(brentq(excess, 0.0, math.log(n) * 2 + 1, xtol=1e-6))
