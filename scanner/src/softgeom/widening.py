"""The weakest hypothesis that suffices: over which further sets are a scan's unargmaxable classes
so?

    found = scan(layer, features=Box(100.0))
    found = widen(found)                  # which of them can never win, for any features
    found = up_to(found)                  # up to which bound the others can never win
    found.table["holds"]                  # "for any features", or "up to 150"

A proof for a bounded set supposes the bound. Most need no such thing: where the bound is far away,
a best proof has no residual ``v`` that it could reach, and that proves the class lost over all of
R^d. So each such class is asked three times, until a proof for the other set is found: with the
blocking classes that it has; with those for a box so large that a residual costs too much; by a
scan over the set. Blocking classes are thinned to a simplex first, since only that shows that
weights with ``v = 0`` exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from softgeom.certifying.hull import TINY
from softgeom.certifying.verdict import BlockingClasses, Finding, Witness
from softgeom.layer import Box, FeatureSet, SoftmaxLayer, Unbounded
from softgeom.proving.caratheodory import reduce_support
from softgeom.proving.refine import refine
from softgeom.routes import surviving
from softgeom.scan_result import Scan
from softgeom.scanner import scan
from softgeom.threads import one_thread

MOST = 1000  # such classes; of more a question each takes several times what their scan took
FEW = 20  # of them that need a bound; of more only a scan that asks for it is told which
RUNGS = (1.5, 2.0, 3.0, 5.0, 7.0, 10.0)  # of a ladder of bounds, in each of so many decades:
DECADES = 4
FAR = 16.0  # times the extent of the scan's set: a box in which proofs tend to be without residual


def widen(
    found: Scan, sets: Iterable[FeatureSet] = (Unbounded(),), *, every: bool = True, **work: Any
) -> Scan:
    """The scan with proofs, over each further set, for unargmaxable classes that are so there. The
    scan's own set is skipped; ``work`` is as for `scan`: seed, n_jobs, backend, address.
    Unless ``every`` is true, a scan of more than `MOST` unargmaxable classes comes back as it is.
    """
    lost = [f for f in found.findings if isinstance(f.evidence, BlockingClasses)]
    if not every and len(lost) > MOST:
        return found
    size = FAR * found.features.extent
    far = [Box(size)] if 0 < size < np.inf else []
    wider = []
    for features in sets:
        if features == found.features:
            continue
        where = [*far, features]
        if proven := _proven(found.layer, features, lost, where, sharpened, work):
            wider.append(Scan(found.layer, features, sorted(proven, key=lambda f: f.index)))
    return replace(found, wider=tuple(wider))


def _proven(
    layer: SoftmaxLayer,
    features: FeatureSet,
    lost: list[Finding],
    places: Iterable[FeatureSet],
    sharpen: Callable[..., tuple[BlockingClasses, float]],
    work: dict[str, Any],
) -> list[Finding]:
    """Findings over a set for those of the unargmaxable classes that cannot win there either:
    by the blocking classes that they have, sharpened, and then by those that scans over the
    ``places`` find, one after the other.
    """
    proven: dict[int, Finding] = {}
    for where in (None, *places):
        tried = [f for f in lost if f.index not in proven]
        if where is not None and tried:
            tried = [*scan(layer, [f.index for f in tried], features=where, **work).findings]
            if isinstance(features, Unbounded):  # who wins in a part of it is not lost in it
                free = {f.index for f in tried if isinstance(f.evidence, Witness)}
                lost = [f for f in lost if f.index not in free]
        for f in tried:
            # a fault here leaves the finished scan as it is
            with surviving("the proof over a further set", [f.index]):
                if isinstance(f.evidence, BlockingClasses):
                    blocking, bound = sharpen(layer, features, f.index, f.evidence)
                    if bound <= 0:
                        proven[f.index] = replace(f, evidence=blocking, margin=bound)
    return list(proven.values())


def up_to(found: Scan, *, every: bool = True, **work: Any) -> Scan:
    """The scan with, for each unargmaxable class that is not so for any features, a proof for
    the largest box of a ladder (`RUNGS`) over which it is. A lower bound of its own, as a ReLU
    leaves, stays; ``work`` is as for `scan`. Unless ``every`` is true, a scan with more than `FEW`
    such classes comes back as it is, and so does one over another set than a box with two bounds,
    the upper one above zero.
    """
    box = found.features
    if not isinstance(box, Box):
        return found
    most, least = np.asarray(box.high, float), np.asarray(box.low, float)
    if most.ndim or least.ndim or most <= 0:
        return found
    everywhere = (part for part in found.wider if isinstance(part.features, Unbounded))
    always = {f.index for part in everywhere for f in part.findings}
    lost = [f for f in found.findings if isinstance(f.evidence, BlockingClasses)]
    left = [f for f in lost if f.index not in always]
    if not every and (len(lost) > MOST or len(left) > FEW):
        return found
    last: dict[int, tuple[Box, Finding]] = {}
    for size in (rung * 10.0**n for n in range(DECADES) for rung in RUNGS):
        high = size * float(most)
        if not np.isfinite(high):
            break
        where = Box(high, low=-high if least == -most else float(least))
        left = _proven(found.layer, where, left, [where], refine, work)
        last |= {f.index: (where, f) for f in left}
    sections: dict[Box, list[Finding]] = {}
    for where, f in last.values():
        sections.setdefault(where, []).append(f)
    parts = [
        Scan(found.layer, where, sorted(some, key=lambda f: f.index))
        for where, some in sorted(sections.items(), key=lambda pair: pair[0].extent)
    ]
    return replace(found, wider=(*found.wider, *parts))


def turning_bounds(
    layer: SoftmaxLayer, t: int, lost: float, digits: float = 1e-3
) -> tuple[float, float]:
    """Bounds h of the box ``|x| <= h`` around where class t, which provably never wins up to
    ``lost``, begins to: it never wins up to the first, and does within the second, each certified
    and within relative ``digits``; the second is inf where none was found.
    """
    free, most = np.inf, min(lost * FAR**6, np.finfo(float).max / 2)
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


@one_thread()
def sharpened(
    layer: SoftmaxLayer, features: FeatureSet, t: int, blocking: BlockingClasses
) -> tuple[BlockingClasses, float]:
    """At most d + 1 blocking classes of class t, and the bound that they certify over a set, or
    inf."""
    if blocking.weights.dtype != object and len(blocking.rivals) > layer.dimension + 1:
        D = layer.W[blocking.rivals].astype(np.float64) - layer.W[t]
        lead = layer.bias[blocking.rivals].astype(np.float64) - float(layer.bias[t])
        weights = reduce_support(D, lead, blocking.weights / blocking.weights.sum())
        if np.any(weights > 0):  # near ties may leave nothing of them
            blocking = BlockingClasses(blocking.rivals[weights > 0], weights[weights > 0])
    if blocking.weights.dtype != object and not np.isfinite(features.extent or np.inf):
        D = layer.W[blocking.rivals].astype(np.float64) - layer.W[t]
        if np.any(np.abs(blocking.weights @ D) > TINY * (blocking.weights @ np.abs(D))):
            return blocking, np.inf  # a residual that no rounding has left has infinite support
    return refine(layer, features, t, blocking)
