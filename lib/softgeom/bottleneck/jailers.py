"""Who holds a class captive: the rivals in the proof that it can never win, by their weights.

Captors i with weights l_i >= 0 prove that at every x of the set some captor scores at least as high
as the class, since their weighted mean does. Weights are shown normalised to one. A proof need not
be the only one: other weights may do as well.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.verdict import Captors
from softgeom.bottleneck.scan_result import Scan

__all__ = ["captive_table", "heaviest_captors"]


def heaviest_captors(
    scan: Scan, index: int, count: int | None = None
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The captors of a class by falling weight, at most `count` of them: class numbers (n,) and
    shares (n,) of the whole weight.

    Raises
    ------
    ValueError
        When the class was not scanned or is not held by captors.
    """
    evidence = scan.evidence(index)
    if not isinstance(evidence, Captors):
        raise ValueError(f"Class {index} is {evidence.verdict}: it has no captors.")
    # stored as fractions where an equality must hold to the last bit
    weights = evidence.weights.astype(float)
    order = np.argsort(-weights, kind="stable")[:count]
    return evidence.rivals[order], weights[order] / weights.sum()


def captive_table(scan: Scan, named: int = 3) -> pd.DataFrame:
    """One row per unargmaxable class, the deepest first: class, token, certified_margin, captors
    (their number), heaviest (names and shares).
    """
    verdicts = scan.table
    captive = verdicts[verdicts.verdict == "unargmaxable"].sort_values("margin")
    rows = []
    for index, token, margin in zip(captive["class"], captive.token, captive.margin, strict=True):
        rivals, shares = heaviest_captors(scan, index, named)
        held = ", ".join(
            f"{scan.layer.token(int(r))} {s:.0%}" for r, s in zip(rivals, shares, strict=True)
        )
        rows.append((index, token, margin, len(scan.evidence(index).rivals), held))  # type: ignore[union-attr]
    return pd.DataFrame(rows, columns=["class", "token", "certified_margin", "captors", "heaviest"])
