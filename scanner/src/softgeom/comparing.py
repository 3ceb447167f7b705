"""``softgeom.diff``: which tokens changed their verdict from one scan to another, by name."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from softgeom.scan_result import Scan
from softgeom.verdict_table import read_verdicts

LOST, WINS = "lost", "can win"


def diff(
    a: str | Path | pd.DataFrame | Scan, b: str | Path | pd.DataFrame | Scan
) -> dict[str, list[str]]:
    """Tokens by what happened to them between two scans: folders of results, scans or tables. Of
    several classes with one token all have to be lost, and one can win for it. What was or became
    tied or undecided is listed where there is some. ValueError when a folder holds no scan.
    """
    before, after = (_states(each) for each in (a, b))
    found: dict[str, list[str]] = {
        "lost in both": [], "lost, then can win": [], "can win, then lost": [],
        "lost and removed": [], "removed": [], "new and lost": [], "new": [],
    }  # fmt: skip
    for token, old in before.items():
        new = after.get(token)
        if new is None:
            found["lost and removed" if old == LOST else "removed"].append(token)
        elif LOST in (old, new):
            what = "lost in both" if old == new else f"{old}, then {new}"
            found.setdefault(what, []).append(token)
    for token, new in after.items():
        if token not in before:
            found["new and lost" if new == LOST else "new"].append(token)
    return found


def _states(given: str | Path | pd.DataFrame | Scan) -> dict[str, str]:
    """Of each token whether it can never win, can, or neither is known."""
    if isinstance(given, Scan):
        given = given.table
    table = given if isinstance(given, pd.DataFrame) else read_verdicts(given)
    held: dict[str, set[str]] = {}
    for token, verdict in zip(table["token"], table["verdict"], strict=True):
        held.setdefault(token, set()).add(verdict)
    return {token: _state(verdicts) for token, verdicts in held.items()}


def _state(verdicts: set[str]) -> str:
    if "argmaxable" in verdicts:
        return WINS
    return LOST if verdicts == {"unargmaxable"} else "tied or undecided"
