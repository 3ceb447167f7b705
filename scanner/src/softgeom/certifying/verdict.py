"""Verdicts and the evidence that each of them carries (paper 001, Sections 3.2 and 3.3).

About a class:

=============  ================================================================
verdict        evidence
=============  ================================================================
argmaxable     ``Witness``: features x at which the class wins strictly
unargmaxable   ``BlockingClasses``: weights l >= 0 on rivals that are never all behind
tied           ``Twin``: a class with equal logits on the whole set
undecided      ``Unknown``: the best bound and the reason; nothing is claimed
=============  ================================================================

*argmaxable* means winning strictly. A tied class never does, although ``numpy.argmax`` returns the
first of twins. About an order of classes (order.py): *possible*, with a ``Witness``; *impossible*,
with ``Comparisons``; *undecided*.

With ``v = sum l_ab (w_a - w_b)`` and ``c = sum l_ab (b_a - b_b)`` the smallest of the differences
``y_a - y_b``, times ``sum l``, is at most ``v.x + c``. By linear programming duality such weights
exist whenever the order is impossible over a convex closed bounded set, and by Caratheodory's
theorem d + 1 comparisons suffice, however many classes there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from softgeom.arrays import Array, Ints
from softgeom.certifying.order import Order

Verdict = Literal["argmaxable", "unargmaxable", "tied", "undecided"]
Reply = Literal["possible", "impossible", "undecided"]


@dataclass(frozen=True, eq=False)
class Witness:
    """A feature vector at which the class wins: x (d,), or u (d,) with x = bias + gain u for an
    ellipsoid.

    Floats, or Fractions (dtype object) where no float wins.
    """

    point: Array
    verdict: ClassVar[Verdict] = "argmaxable"


@dataclass(frozen=True, eq=False)
class BlockingClasses:
    """Rivals (k,) and weights (k,) >= 0: whatever x is, their weighted mean logit is at least the
    class's own.

    Floats, or Fractions (dtype object) where an equality must hold to the last bit.
    """

    rivals: Ints
    weights: Array
    verdict: ClassVar[Verdict] = "unargmaxable"


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Comparisons (k,) that an order demands, and weights (k,) >= 0 whose mean of them is never
    positive.

    Floats, or Fractions (dtype object) where an equality must hold to the last bit.
    """

    above: Ints
    below: Ints
    weights: Array


@dataclass(frozen=True, eq=False)
class Twin:
    """Another class with the same logit at every x of the feature set."""

    twin: int
    verdict: ClassVar[Verdict] = "tied"


@dataclass(frozen=True, eq=False)
class Unknown:
    """No proof either way; ``bound`` is where the best margin was seen last, no claim."""

    bound: float
    reason: str
    verdict: ClassVar[Verdict] = "undecided"


Evidence = Witness | BlockingClasses | Twin | Unknown
Proof = Witness | Comparisons | Unknown


@dataclass(frozen=True, eq=False)
class Finding:
    """The evidence for one class, the method and steps that found it, the margin or bound that it
    certifies.
    """

    index: int
    evidence: Evidence
    method: str
    steps: int
    margin: float
    radius: float

    @property
    def verdict(self) -> str:
        """argmaxable, tied, unargmaxable or undecided."""
        return self.evidence.verdict


@dataclass(frozen=True, eq=False)
class Answer:
    """One order, the evidence for its verdict, how that was found, and the margin or bound that it
    certifies.
    """

    order: Order
    evidence: Proof
    method: str
    steps: int
    margin: float

    @property
    def verdict(self) -> Reply:
        """What the evidence proves."""
        if isinstance(self.evidence, Unknown):
            return "undecided"
        return "possible" if isinstance(self.evidence, Witness) else "impossible"


class EvidenceError(ValueError):
    """Evidence that does not prove the verdict or the number it is filed under."""
