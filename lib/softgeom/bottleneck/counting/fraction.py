"""What share of all C! rankings a layer realises (001, Appendix C), read as a probability.

With a bias the number of realisable rankings is  sum_{k <= d} c(C, C - k),  and c(C, m) counts the permutations with m cycles. So the share is the
chance that a random permutation of C elements has at least C - d cycles. Random permutations have
about ln C of them: a layer realises most rankings only when d is within about ln C of C.
"""

from __future__ import annotations

import math

from softgeom.bottleneck.counting.regions import log10_factorial, log10_regions

__all__ = ["dimension_for_half", "log10_fraction"]


def log10_fraction(classes: int, dimension: int, bias: bool = True) -> float:
    """Return log10 of the share of all rankings that a layer in general position realises; 0 where
    it realises all.
    """
    return log10_regions(classes, dimension, bias) - log10_factorial(classes)


def dimension_for_half(classes: int) -> int:
    """Return the least d at which a layer with a bias realises at least half of all rankings, by
    bisection.

    Examples
    --------
    >>> dimension_for_half(50257)  # within ln C = 10.8 of the number of classes
    50246
    """
    low, high = 1, max(1, classes - 1)
    while low < high:
        middle = (low + high) // 2
        if log10_fraction(classes, middle) >= math.log10(0.5):
            high = middle
        else:
            low = middle + 1
    return low
