"""The answer to "can the logits obey this order?", its evidence, and the check of that evidence
without a solver.

===========  ===========================================================  ============================================
verdict      evidence                                                     checked by
===========  ===========================================================  ============================================
possible     ``Witness``: features x at which every comparison is strict  rounding bounds, else fractions
impossible   ``Comparisons``: weights l >= 0 on comparisons (a, b)        ``max_x v.x + c <= 0``: hull.py
undecided    ``Unknown``: the best bound and the reason                   nothing is claimed
===========  ===========================================================  ============================================

With ``v = sum l_ab (w_a - w_b)`` and ``c = sum l_ab (b_a - b_b)`` the smallest of the differences
``y_a - y_b``, times ``sum l``, is at most ``v.x + c``. By linear programming duality such weights
exist whenever the order is impossible over a convex closed bounded set, and by Caratheodory's
theorem d + 1 comparisons suffice, however many classes there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.asking.order import Order
from softgeom.bottleneck.certifying.hull import certify_comparisons, exact_row
from softgeom.bottleneck.certifying.verdict import EvidenceError, Unknown, Witness
from softgeom.bottleneck.certifying.witness import WitnessChecker
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.rounding import underflow

Reply = Literal["possible", "impossible", "undecided"]
BLOCK = 32 * 2**20  # bytes of rows that are widened at once


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Comparisons (k,) that an order demands, and weights (k,) >= 0 whose mean of them is never
    positive.

    Floats, or Fractions (dtype object) where an equality must hold to the last bit.
    """

    above: NDArray[np.intp]
    below: NDArray[np.intp]
    weights: NDArray[Any]


Proof = Witness | Comparisons | Unknown


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


class OrderChecker:
    """Checks evidence about orders of one layer's logits over one feature set."""

    def __init__(self, layer: SoftmaxLayer, features: FeatureSet) -> None:
        features.check(layer.dimension)
        self.layer, self.features = layer, features
        self._bounds = WitnessChecker(layer, features)

    def check(self, answer: Answer) -> float:
        """The margin or bound that the evidence certifies.

        Raises
        ------
        EvidenceError
            If it does not prove the verdict; the message names the order.
        """
        evidence = answer.evidence
        if isinstance(evidence, Unknown):
            return evidence.bound
        if isinstance(evidence, Witness):
            margin = self.margin(answer.order, evidence.point)
            if margin > 0:
                return margin
        else:
            margin = self.bound(answer.order, evidence)
            if margin <= 0:
                return margin
        raise EvidenceError(
            f"{answer.order.describe(self.layer)}: the evidence does not prove {answer.verdict}."
        )

    def bound(self, order: Order, evidence: Comparisons) -> float:
        """Upper bound on the order's best margin that comparisons prove; inf when they prove
        nothing about it.
        """
        above, below = (
            np.asarray(side, dtype=np.intp) for side in (evidence.above, evidence.below)
        )
        inside = (
            len(above)
            and min(above.min(), below.min()) >= 0
            and max(above.max(), below.max()) < self.layer.classes
        )
        if not inside or not order.holds(above, below, self.layer.classes):
            return np.inf
        return certify_comparisons(self.layer, self.features, above, below, evidence.weights)

    def margin(self, order: Order, point: NDArray[Any]) -> float:
        """Lower bound on the order's margin at a point (d,) of floats or fractions; -inf outside
        the feature set.

        Logits in float64 with their rounding bounds; where those do not separate two blocks, the
        ones in doubt in fractions.
        """
        point = np.asarray(point)
        if point.shape != (self.layer.dimension,) or not self._inside(point):
            return -np.inf
        rounded = point.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            x = self.features.features_at(rounded[None])[0][0]
            logits = self.logits(x)
            # Twice, for a point of fractions was rounded too; and what products below the normal
            # range lose.
            slack = 2 * float(self._bounds.tolerance(rounded[None])[0]) + underflow(len(x) + 2)
        if not np.isfinite(slack) or not np.isfinite(logits).all():
            return -np.inf
        margin = order.margin(logits) - slack
        if margin > 0:
            return margin * (1 - 1e-15) if np.isfinite(margin) else margin
        return self._exactly(order, logits, slack, point)

    def logits(self, x: NDArray[Any]) -> NDArray[np.float64]:
        """``W x + b`` (C,) in float64, by blocks of rows."""
        size = max(1, BLOCK // (8 * self.layer.dimension))
        W = self.layer.W
        blocks = [
            W[i : i + size].astype(np.float64) @ x.astype(np.float64)
            for i in range(0, len(W), size)
        ]
        return np.concatenate(blocks) + self.layer.bias.astype(np.float64)

    def _inside(self, point: NDArray[Any]) -> bool:
        if point.dtype == object:
            return all(
                isinstance(value, Fraction) for value in point
            ) and self.features.contains_exactly(point.tolist())
        if not np.isfinite(point).all():
            return False
        certain = self.features.contains(point.astype(np.float64)[None])[0]
        return bool(certain) or self.features.contains_exactly(
            [Fraction(float(value)) for value in point]
        )

    def _exactly(
        self, order: Order, logits: NDArray[np.float64], slack: float, point: NDArray[Any]
    ) -> float:
        z = [value if isinstance(value, Fraction) else Fraction(float(value)) for value in point]
        x = self.features.features_exactly(z)
        known: dict[int, Fraction] = {}

        def exact(i: int) -> Fraction:
            if i not in known:
                row, bias = exact_row(self.layer, i)
                known[i] = sum((w * v for w, v in zip(row, x, strict=True) if w and v), bias)
            return known[i]

        smallest = None
        for upper, lower in order.steps(len(logits)):
            low, high = logits[upper].min(), logits[lower].max()
            if low - high <= -slack:
                return -np.inf  # broken beyond rounding
            # Only these can be the lowest of the upper block and the highest of the lower one.
            ups = upper[logits[upper] <= low + slack].tolist()
            downs = lower[logits[lower] >= high - slack].tolist()
            lead = min(map(exact, ups)) - max(map(exact, downs))
            if lead <= 0:
                return -np.inf
            smallest = lead if smallest is None else min(smallest, lead)
        if smallest is None:
            return np.inf
        try:
            return max(float(smallest) * (1 - 1e-15), 5e-324)
        except OverflowError:
            return float(np.finfo(float).max)


__all__ = ["Answer", "Comparisons", "EvidenceError", "OrderChecker", "Proof", "Unknown", "Witness"]
