"""``softgeom.diff``: which tokens changed their verdict from one scan to another, by name."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from softgeom.scan_result import Scan
from softgeom.verdict_table import read_verdicts


def diff(
    a: str | Path | pd.DataFrame | Scan, b: str | Path | pd.DataFrame | Scan
) -> dict[str, list[str]]:
    """Tokens by what happened to them between two scans: folders of results, scans or tables. Of
    several classes with one token all have to be lost. ValueError when a folder holds no scan.
    """
    before, after = (_lost(each) for each in (a, b))
    both = [token for token in before if token in after]
    gone, new = [t for t in before if t not in after], [t for t in after if t not in before]
    return {
        "lost in both": [t for t in both if before[t] and after[t]],
        "lost, then can win": [t for t in both if before[t] and not after[t]],
        "can win, then lost": [t for t in both if after[t] and not before[t]],
        "lost and removed": [t for t in gone if before[t]],
        "removed": [t for t in gone if not before[t]],
        "new and lost": [t for t in new if after[t]],
        "new": [t for t in new if not after[t]],
    }


def _lost(given: str | Path | pd.DataFrame | Scan) -> dict[str, bool]:
    """Of each token whether it can never win."""
    if isinstance(given, Scan):
        given = given.table
    table = given if isinstance(given, pd.DataFrame) else read_verdicts(given)
    lost: dict[str, bool] = {}
    for token, verdict in zip(table["token"], table["verdict"], strict=True):
        lost[token] = lost.get(token, True) and verdict == "unargmaxable"
    return lost
