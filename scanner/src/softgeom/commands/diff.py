"""``softgeom diff A B``: which tokens changed their verdict from one scan to another, by name."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd

from softgeom.commands.boundary import DONE
from softgeom.scan_result import Scan
from softgeom.verdict_table import escape_token, read_verdicts

_SHOWN = 40


def add(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("a", type=Path, help="folder of results")
    parser.add_argument("b", type=Path, help="folder of results")
    parser.add_argument("--json", action="store_true", help="print as JSON, with all tokens")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare two tables of verdicts."""
    changes = diff_scans(options.a, options.b)
    if options.json:
        print(json.dumps(changes, ensure_ascii=True))
        return DONE
    for what, tokens in changes.items():
        shown = " ".join(escape_token(token) for token in tokens[:_SHOWN])
        shown += " ..." if len(tokens) > _SHOWN else ""
        print(f"{what}: {len(tokens):,}{f'  {shown}' if tokens else ''}")
    return DONE


def diff_scans(
    a: str | Path | pd.DataFrame | Scan, b: str | Path | pd.DataFrame | Scan
) -> dict[str, list[str]]:
    """Tokens by what happened to them between two scans: folders of results, scans or tables.
    ValueError when a folder holds no scan.
    """
    return compare(*(_verdicts(each) for each in (a, b)))


def _verdicts(given: str | Path | pd.DataFrame | Scan) -> pd.DataFrame:
    if isinstance(given, pd.DataFrame):
        return given
    return read_verdicts(given) if isinstance(given, str | Path) else given.table


def compare(a: pd.DataFrame, b: pd.DataFrame) -> dict[str, list[str]]:
    """Tokens by what happened to them; one of several classes is lost when all of them are."""
    before, after = (_lost(table) for table in (a, b))
    both = [token for token in before if token in after]
    was, now = {t for t in before if before[t]}, {t for t in after if after[t]}
    gone, new = [t for t in before if t not in after], [t for t in after if t not in before]
    return {
        "lost in both": [t for t in both if t in was & now],
        "lost, then can win": [t for t in both if t in was - now],
        "can win, then lost": [t for t in both if t in now - was],
        "lost and removed": [t for t in gone if t in was],
        "removed": [t for t in gone if t not in was],
        "new and lost": [t for t in new if t in now],
        "new": [t for t in new if t not in now],
    }


def _lost(table: pd.DataFrame) -> dict[str, bool]:
    lost: dict[str, bool] = {}
    for token, verdict in zip(table["token"], table["verdict"], strict=True):
        lost[token] = lost.get(token, True) and verdict == "unargmaxable"
    return lost
