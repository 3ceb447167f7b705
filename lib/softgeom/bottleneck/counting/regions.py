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

Weights in special position realise fewer: `softgeom.bottleneck.counting.arrangement` counts those
one by one.
"""

from __future__ import annotations

import math
import operator

import numpy as np

from softgeom.bottleneck.counting.stirling import log_stirling_tail, stirling_polynomial_sum

__all__ = ["count_regions", "count_regions_by_recurrence", "log10_factorial", "log10_regions"]

EXACT_DIMENSION = 256  # up to here the exact integer is quicker than the integral


def count_regions(classes: int, dimension: int, bias: bool) -> int:
    """Return the number of rankings that a softmax layer of C classes and d features in general
    position can realise, exactly, in d^2 / 2 additions of integers; with ``bias`` one outside the
    span of the columns of W and the all-ones vector. TypeError or ValueError if the sizes are not
    positive integers.

    Examples
    --------
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
    """Return what `count_regions` returns, by the recurrence: C d additions of integers and no
    Stirling number.

    Parameters and errors as in `count_regions`.
    """
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

    Examples
    --------
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
