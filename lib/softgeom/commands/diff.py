"""``softgeom diff A B``: which tokens changed their verdict from one scan to another, by name."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd

from softgeom.bottleneck.certifying.folder import TABLE
from softgeom.bottleneck.scan_result import Scan
from softgeom.bottleneck.verdict_table import escape_token, read_verdicts
from softgeom.commands.boundary import DONE

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
        print(
            f"{what}: {len(tokens):,}"
            + (f"  {shown}{' ...' if len(tokens) > _SHOWN else ''}" if tokens else "")
        )
    return DONE


def diff_scans(
    a: str | Path | pd.DataFrame | Scan, b: str | Path | pd.DataFrame | Scan
) -> dict[str, list[str]]:
    """Tokens by what happened to them from one scan to another.

    Parameters
    ----------
    a, b : path, Scan or DataFrame
        Folders of results, or scans or their tables.

    Raises
    ------
    ValueError
        When a folder holds no table.
    """
    return compare(*(_verdicts(each) for each in (a, b)))


def _verdicts(given: str | Path | pd.DataFrame | Scan) -> pd.DataFrame:
    if isinstance(given, pd.DataFrame):
        return given
    return read_verdicts(_table(Path(given))) if isinstance(given, str | Path) else given.table


def compare(a: pd.DataFrame, b: pd.DataFrame) -> dict[str, list[str]]:
    """Tokens by what happened to them; one of several classes is lost when all of them are."""
    before, after = (_lost(table) for table in (a, b))
    both = [token for token in before if token in after]
    return {
        "lost in both": [token for token in both if before[token] and after[token]],
        "lost, then freed": [token for token in both if before[token] and not after[token]],
        "free, then lost": [token for token in both if not before[token] and after[token]],
        "lost and removed": [token for token in before if token not in after and before[token]],
        "removed": [token for token in before if token not in after and not before[token]],
        "new and lost": [token for token in after if token not in before and after[token]],
        "new": [token for token in after if token not in before and not after[token]],
    }


def _lost(table: pd.DataFrame) -> dict[str, bool]:
    lost: dict[str, bool] = {}
    for token, verdict in zip(table["token"], table["verdict"], strict=True):
        lost[token] = lost.get(token, True) and verdict == "unargmaxable"
    return lost


def _table(folder: Path) -> Path:
    path = folder / TABLE if folder.is_dir() else folder
    if not path.is_file():
        raise ValueError(f"{folder} holds no {TABLE}: scan the model first.")
    return path
