"""Verdicts and the evidence that each of them carries (paper 001, Sections 3.2 and 3.3).

=============  ==========================================================  ==========================================
verdict        evidence                                                    checked by, without a solver
=============  ==========================================================  ==========================================
argmaxable     ``Witness``: features x at which the class wins strictly    rounding bounds, else fractions: witness.py
unargmaxable   ``Captors``: weights l >= 0 on the rivals that imprison it  the duality bound is <= 0: hull.py
tied           ``Twin``: a class with equal logits on the whole set        equality, entry by entry: twins.py
undecided      ``Unknown``: the best bound and the reason                  nothing is claimed
=============  ==========================================================  ==========================================

*argmaxable* means winning strictly. A tied class never does, although ``numpy.argmax`` returns the
first of twins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.hull import certify_captivity
from softgeom.bottleneck.certifying.twins import are_twins
from softgeom.bottleneck.certifying.witness import WitnessChecker
from softgeom.layer import FeatureSet, SoftmaxLayer

Verdict = Literal["argmaxable", "unargmaxable", "tied", "undecided"]


@dataclass(frozen=True, eq=False)
class Witness:
    """A feature vector at which the class wins: x (d,), or u (d,) with x = bias + gain u for an
    ellipsoid.

    Floats, or Fractions (dtype object) where no float wins.
    """

    point: NDArray[Any]
    verdict: Verdict = "argmaxable"


@dataclass(frozen=True, eq=False)
class Captors:
    """Rivals (k,) and weights (k,) >= 0: whatever x is, their weighted mean logit is at least the
    class's own.

    Floats, or Fractions (dtype object) where an equality must hold to the last bit.
    """

    rivals: NDArray[np.intp]
    weights: NDArray[Any]
    verdict: Verdict = "unargmaxable"


@dataclass(frozen=True, eq=False)
class Twin:
    """Another class with the same logit at every x of the feature set."""

    twin: int
    verdict: Verdict = "tied"


@dataclass(frozen=True, eq=False)
class Unknown:
    """No proof either way: the best margin is at most ``bound``, and at least nothing that was
    certified.
    """

    bound: float
    reason: str
    verdict: Verdict = "undecided"


Evidence = Witness | Captors | Twin | Unknown


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


class EvidenceError(ValueError):
    """Evidence that does not prove the verdict it is filed under."""


def check_evidence(layer: SoftmaxLayer, features: FeatureSet, t: int, evidence: Evidence) -> float:
    """Re-check one piece of evidence without a solver; the margin or the bound that it certifies.

    Returns
    -------
    float
        A witness: a lower bound > 0 on its margin. Captors: an upper bound <= 0 on the best margin.
        A twin: 0. Nothing is claimed for an undecided class, whose stored bound is returned as it
        is.

    Raises
    ------
    EvidenceError
        If the evidence does not prove its verdict; the message names the class.
    """
    if isinstance(evidence, Witness):
        margin = float(
            WitnessChecker(layer, features).certify(evidence.point[None], np.array([t]))[0]
        )
        if not margin > 0:
            raise EvidenceError(
                f"Class {t} ({layer.token(t)}): the witness does not certainly win inside "
                "the feature set."
            )
        return margin
    if isinstance(evidence, Captors):
        bound = certify_captivity(layer, features, t, evidence.rivals, evidence.weights)
        if not bound <= 0:
            raise EvidenceError(
                f"Class {t} ({layer.token(t)}): the weights do not prove that it can never win."
            )
        return bound
    if isinstance(evidence, Twin):
        if not are_twins(layer, features, t, evidence.twin):
            raise EvidenceError(
                f"Class {t} ({layer.token(t)}) is no twin of class {evidence.twin}: their "
                "logits differ."
            )
        return 0.0
    return evidence.bound
