"""The numbers of realisable rankings as polynomials in the number of classes (001, Appendix C), by
two routes.

For fixed d both counts are polynomials in C. The closed forms sum unsigned Stirling numbers of the
first kind,

    with a bias     sum_{k=0..d} c(C, C - k)          without     2 sum_{k=d-1,d-3,...} c(C, C - k),

each of which is a sum of binomial coefficients: a permutation with C - k cycles moves k + j
elements in j cycles. The recurrence Q(C + 1, d) = Q(C, d) + C Q(C, d - 1) is summed symbolically
instead. That both give the same polynomial proves them equal for that d and all C.
"""

from __future__ import annotations

import sympy

from softgeom.bottleneck.counting.stirling import associated_stirling

__all__ = ["CLASSES", "closed_form", "summed_recurrence"]

CLASSES = sympy.Symbol("C", integer=True, positive=True)


def closed_form(dimension: int, bias: bool) -> sympy.Expr:
    """The number of rankings for d features as a polynomial in `CLASSES`, valid for d < C - 1, from
    Stirling numbers.

    Examples
    --------
    >>> sympy.factor(closed_form(2, bias=False))
    C*(C - 1)
    """
    rows = list(associated_stirling(dimension))
    stirling = [
        sum(a * sympy.expand_func(sympy.binomial(CLASSES, k + j)) for j, a in enumerate(row))
        for k, row in enumerate(rows)
    ]
    total = sum(stirling) if bias else 2 * sum(stirling[k] for k in range(dimension - 1, -1, -2))
    return sympy.expand(total)


def summed_recurrence(dimension: int, bias: bool) -> sympy.Expr:
    """The same polynomial from Q(C, d) = Q(first, d) + sum of i Q(i, d - 1) over i = first ... C -
    1.

    With a bias the recurrence starts from one class, which has one ranking; without, from the two
    rankings of two classes on a line.
    """
    i = sympy.Symbol("i", integer=True, positive=True)
    first, start, lowest = (1, 1, 0) if bias else (2, 2, 1)
    polynomial = sympy.Integer(start)
    for _ in range(lowest, dimension):
        polynomial = start + sympy.summation(
            sympy.expand(i * polynomial.subs(CLASSES, i)), (i, first, CLASSES - 1)
        )
    return sympy.expand(polynomial)
