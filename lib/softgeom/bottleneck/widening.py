"""The weakest hypothesis that suffices: over which further sets are a scan's unargmaxable classes
so?

    found = scan(layer, features=Box(100.0))
    found = widen(found)                  # which of them can never win, whatever the features are
    found.table["holds"]                  # "whatever the features", or "up to 100"

A proof for a bounded set supposes the bound. Most need no such thing: where the bound is far away,
a best proof has no residual ``v`` that it could reach, and that proves the class lost over all of
R^d. So each captive is asked three times, until a proof for the other set is found: with the
captors that it has; with those for a box so large that a residual costs too much; by a scan over
the set. Captors are thinned to a simplex first, since only that shows that weights with ``v = 0``
exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from softgeom.bottleneck.certifying.hull import TINY
from softgeom.bottleneck.certifying.verdict import Captors, Finding
from softgeom.bottleneck.proving.caratheodory import thin
from softgeom.bottleneck.proving.refine import refine
from softgeom.bottleneck.scan_result import Scan
from softgeom.bottleneck.scanner import scan
from softgeom.layer import Box, FeatureSet, SoftmaxLayer, Unbounded

MOST = 1000  # captives; of more a question each takes several times what their scan took
FAR = 16.0  # times the extent of the scan's set: a box in which proofs tend to be without residual


def widen(
    found: Scan, sets: Iterable[FeatureSet] = (Unbounded(),), *, every: bool = True, **work: Any
) -> Scan:
    """The scan with proofs, over each further set, for unargmaxable classes that are so there. The
    scan's own set is skipped; ``work`` is as for `scan`: seed, n_jobs, backend, address, device.
    Unless ``every`` is true, a scan of more than `MOST` captives comes back as it is.
    """
    lost = [f for f in found.findings if isinstance(f.evidence, Captors)]
    if not every and len(lost) > MOST:
        return found
    wider = []
    for features in sets:
        proven = _proven(found, features, lost, work) if features != found.features else []
        if proven:
            wider.append(Scan(found.layer, features, sorted(proven, key=lambda f: f.index)))
    return replace(found, wider=tuple(wider))


def _proven(
    found: Scan, features: FeatureSet, lost: list[Finding], work: dict[str, Any]
) -> list[Finding]:
    """Findings over a set for those of the captives that it does not free."""
    proven: dict[int, Finding] = {}
    for captives in _attempts(found, features, lost, proven, work):
        for f in captives:
            assert isinstance(f.evidence, Captors)
            captors, bound = sharpened(found.layer, features, f.index, f.evidence)
            if bound <= 0:
                proven[f.index] = replace(f, evidence=captors, margin=bound)
    return list(proven.values())


def _attempts(
    found: Scan,
    features: FeatureSet,
    lost: list[Finding],
    proven: dict[int, Finding],
    work: dict[str, Any],
) -> Iterator[list[Finding]]:
    """Captives with captors, from what is there to what takes longest; without those proven."""
    yield lost
    far = Box(FAR * found.features.extent) if found.features.extent else None
    for where in (far, features):
        left = [f.index for f in lost if f.index not in proven]
        if where is not None and left:
            again = scan(found.layer, left, features=where, **work).findings
            yield [f for f in again if isinstance(f.evidence, Captors)]


def turning_bounds(
    layer: SoftmaxLayer, t: int, lost: float, digits: float = 1e-3
) -> tuple[float, float]:
    """Bounds h of the box ``|x| <= h`` around where class t, which provably never wins up to
    ``lost``, begins to: it never wins up to the first, and does within the second, each certified
    and within relative ``digits``; the second is inf where none was found.
    """
    free, most = np.inf, lost * FAR**6
    while lost * (1 + digits) < free and lost < most:
        middle = 2 * lost if free == np.inf else (lost * free) ** 0.5
        verdict = scan(layer, [t], features=Box(middle)).evidence(t).verdict
        if verdict == "unargmaxable":
            lost = middle
        elif verdict == "argmaxable":
            free = middle
        else:
            break
    return lost, free


def sharpened(
    layer: SoftmaxLayer, features: FeatureSet, t: int, captors: Captors
) -> tuple[Captors, float]:
    """At most d + 1 captors of class t, and the bound that they certify over a set, or inf."""
    if captors.weights.dtype != object and len(captors.rivals) > layer.dimension + 1:
        D = layer.W[captors.rivals].astype(np.float64) - layer.W[t]
        lead = layer.bias[captors.rivals].astype(np.float64) - float(layer.bias[t])
        weights = thin(D, lead, captors.weights / captors.weights.sum())
        captors = Captors(captors.rivals[weights > 0], weights[weights > 0])
    if captors.weights.dtype != object and not np.isfinite(features.extent or np.inf):
        D = layer.W[captors.rivals].astype(np.float64) - layer.W[t]
        if np.any(np.abs(captors.weights @ D) > TINY * (captors.weights @ np.abs(D))):
            return captors, np.inf  # a residual that no rounding has left has infinite support
    return refine(layer, features, t, captors)
