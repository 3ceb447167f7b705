"""``softgeom verify FOLDER MODEL``: every proof of a folder of results again, from the layer and the evidence alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from softgeom.bottleneck.certifying.folder import verify_folder
from softgeom.commands import options as asked
from softgeom.commands.boundary import DONE, UNDECIDED


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("verify", help="re-check every proof of a folder of results, without a solver")
    parser.add_argument("folder", type=Path, help="where softgeom scan wrote")
    asked.add_model(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check table, evidence and summary against the layer; the first row that differs is named."""
    report = verify_folder(options.folder, asked.read_head(options).layer)
    proven = report.scanned - report.counts["undecided"]
    share = "" if report.scanned == report.classes else f" of a layer of {report.classes:,} classes"
    print(f"{proven:,} verdicts re-checked without a solver{share}: {_listed(report.counts)}")
    return UNDECIDED if report.counts["undecided"] else DONE


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items())
