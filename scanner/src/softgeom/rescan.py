"""A scan that starts from the evidence of an earlier one, for a layer that training has moved.

Most evidence of the last epoch still proves its verdict in this one: a point at which a class won,
and weights with slack, are certified again, all points in one product and all weights in another.
Only classes whose evidence fails are scanned anew, so that every verdict is as proven as `scan`'s.
Weights without slack (no bias, unbounded features) hold for one layer alone. To mend weights takes
as long as to find new ones, so that nothing is mended.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softgeom import scanner
from softgeom.certifying.checker import Checker
from softgeom.certifying.slack import slack_bounds
from softgeom.certifying.verdict import BlockingClasses, Finding, Witness
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.rounding import demand_standard_model
from softgeom.routes import winners
from softgeom.scan_result import Scan
from softgeom.searching.twins import find_twins


@np.errstate(all="ignore")
def rescan(layer: SoftmaxLayer, features: FeatureSet, before: Scan | None, **work: Any) -> Scan:
    """The verdict on every class of a layer (C, d), from evidence about an earlier layer of the
    same shape where that still holds; ``work`` as for `softgeom.scanner.scan`.
    """
    if before is None or before.layer.W.shape != layer.W.shape:
        return scanner.scan(layer, features=features, verdicts_only=True, **work)
    demand_standard_model()
    features.check(layer.dimension)
    # what a scan calls tied or dominated is for the scan
    special = set().union(*find_twins(layer, features))
    old = [f for f in before.findings if f.index not in special]
    found = _still_won(Checker(layer, features), old) | _still_lost(layer, features, old)
    left = np.setdiff1d(np.arange(layer.classes), list(found))
    if len(left):
        again = scanner.scan(layer, left, features=features, verdicts_only=True, **work)
        found |= {f.index: f for f in again.findings}
    return Scan(layer, features, [found[t] for t in range(layer.classes)])


def _still_won(checker: Checker, old: list[Finding]) -> dict[int, Finding]:
    """Classes that win at the points of an earlier layer."""
    won = {f.index: f.evidence.point for f in old if isinstance(f.evidence, Witness)}
    if not won:
        return {}
    return winners(checker, won, checker.certify_many(list(won.values()), list(won)), "before")


def _still_lost(
    layer: SoftmaxLayer, features: FeatureSet, old: list[Finding]
) -> dict[int, Finding]:
    """Classes that the weights of an earlier layer rule out with slack."""
    held = {f.index: f.evidence for f in old if isinstance(f.evidence, BlockingClasses)}
    bounds = slack_bounds(layer, features, list(held), list(held.values())).tolist()
    proven = zip(held.items(), bounds, strict=True)
    return {
        t: Finding(t, few, "before", 0, bound, np.nan) for (t, few), bound in proven if bound <= 0
    }
