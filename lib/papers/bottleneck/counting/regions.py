"""How many rankings of its classes a softmax layer can realise (001, Section 3.2 and Appendix C,
Tables 2 and 3).

The layer y = W x + b, W (C, d), ranks C classes by their logits. A ranking is a region of the braid
arrangement {y_i = y_j} of R^C, and it is realisable when the affine subspace {W x + b} meets that
region. For W and b in general position the number of such rankings depends on C, on d and on the
presence of a bias only. Writing Q for it, both cases obey

    Q(C + 1, d) = Q(C, d) + C Q(C, d - 1)            (Cover 1967; Good and Tideman 1977)

because the new class adds C hyperplanes, on each of which the others trace an arrangement of the
same kind, one dimension down and with one class less. They differ where the recurrence starts: a
layer with a bias has Q(C, 0) = 1, one without has Q(C, 1) = 2 for C >= 2. With c(n, m) the unsigned
Stirling numbers of the first kind, the closed forms are

    with a bias       sum of c(C, C - k) over k = 0 ... d,
    without a bias    2 (c(C, C - d + 1) + c(C, C - d + 3) + ...),  or C! once d >= C - 1.

So the realisable fraction of the C! rankings is the probability that a random permutation of C
elements has at least C - d cycles. The difference of the two counts is the number of bounded
regions (Zaslavsky 1975).

c(n, m) counts the permutations of n elements with m cycles, and is the coefficient of x^m in the
rising factorial x (x + 1) ... (x + n - 1) = Gamma(x + n) / Gamma(x). Two routes to their sums work
for n in the hundred thousands and k in the thousands:

- exact: c(n, n - k) = sum_j a(k, j) binom(n, k + j), with a(k, j) the associated Stirling numbers,
  since such a permutation moves k + j elements in j cycles of length two or more;
- logarithms: Cauchy's integral on a circle through the saddle point (`log_stirling_tail`).

Weights in special position realise fewer: `papers.bottleneck.counting.arrangement` counts those
one by one.
"""

import math
import operator
from collections.abc import Iterable, Iterator

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, loggamma, polygamma

EXACT_DIMENSION = 256  # up to here the exact integer is quicker than the integral


def count_regions(classes: int, dimension: int, bias: bool) -> int:
    """Return the number of rankings that a softmax layer of C classes and d features in general
    position can realise, exactly; with ``bias`` one outside the span of the columns of W and the
    all-ones vector. TypeError or ValueError if the sizes are not positive integers.

    >>> count_regions(4, 2, bias=False), count_regions(4, 2, bias=True)
    (12, 18)
    """
    C, d, bias = _check_sizes(classes, dimension, bias)
    if d >= C - 1:
        return math.factorial(C)
    if bias:
        return stirling_polynomial_sum(C, range(d + 1))
    return 2 * stirling_polynomial_sum(C, range(d - 1, -1, -2))


def count_regions_by_recurrence(classes: int, dimension: int, bias: bool) -> int:
    """What `count_regions` returns, by the recurrence: C d additions of integers."""
    C, d, bias = _check_sizes(classes, dimension, bias)
    row = np.ones(d + 1, dtype=object)  # Q(1, 0) ... Q(1, d): one class has one ranking
    if not bias:
        row[0] = 0  # a linear map from a point reaches the origin only, where every class ties
    for n in range(1, C):
        row[1:] = row[1:] + n * row[:-1]
        if not bias:
            row[1] = 2  # a line through the origin: a ranking and its reverse
    return int(row[d])


def log10_regions(classes: int, dimension: int, bias: bool) -> float:
    """Return the decimal logarithm of `count_regions` for layers of any size, in milliseconds, to a
    relative error below 1e-10 (compared with the exact integers).

    >>> int(log10_regions(50257, 768, bias=True)) + 1  # digits, for GPT-2's size
    5103
    """
    C, d, bias = _check_sizes(classes, dimension, bias)
    if d >= C - 1:
        return log10_factorial(C)
    if d <= EXACT_DIMENSION:
        return math.log10(count_regions(C, d, bias))
    if bias:
        return log_stirling_tail(C, C - d) / math.log(10)
    return (math.log(2) + log_stirling_tail(C, C - d + 1, step=2)) / math.log(10)


def log10_factorial(classes: int) -> float:
    """Return log10(C!), the decimal logarithm of the number of all rankings of C classes."""
    return math.lgamma(_positive_integer("classes", classes) + 1) / math.log(10)


def _check_sizes(classes: int, dimension: int, bias: bool) -> tuple[int, int, bool]:
    if not isinstance(bias, (bool, np.bool_)):
        given = type(bias).__name__
        raise TypeError(f"bias says whether there is one: give True or False, not {given}.")
    sizes = _positive_integer("classes", classes), _positive_integer("dimension", dimension)
    return *sizes, bool(bias)


def _positive_integer(name: str, value: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a positive integer, not {value!r}.") from None
    if number < 1:
        raise ValueError(f"{name} must be a positive integer, not {number}.")
    return number


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
    """Return the sum of c(n, n - k) over distinct orders k >= 0, exactly; k >= n adds nothing."""
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
    that K = k, where K sums independent coins of success r / (r + i), i = 0 ... n - 1. The radius
    makes m the mean of K, but stays at one or above so that the weights r^(m - k) of the tail never
    grow. The trapezoidal rule with N points confuses k with k + N only; N spans more than a dozen
    standard deviations on either side, where Bernstein's inequality leaves nothing that a double
    could hold. The error of the logarithm is that of the log-gamma function, about 1e-16 r log r.
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
