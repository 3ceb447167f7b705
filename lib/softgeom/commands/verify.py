"""``softgeom verify FOLDER MODEL``: every proof of a folder of results or answers again, from the
layer and the evidence alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from softgeom.bottleneck.certifying.folder import verify_folder
from softgeom.commands import options as asked
from softgeom.commands.answers_folder import ANSWERS, verify_answers
from softgeom.commands.boundary import DONE, UNDECIDED


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser(
        "verify", help="re-check every proof of a folder of results, without a solver"
    )
    parser.add_argument("folder", type=Path, help="where softgeom scan or softgeom ask wrote")
    asked.add_model(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check table, evidence and summary against the layer; the first row that differs is named."""
    layer = asked.read_head(options).layer
    if (options.folder / ANSWERS).is_file():
        counts = verify_answers(options.folder, layer)
        print(
            f"{sum(counts.values()) - counts['undecided']:,} answers re-checked without a "
            f"solver: {_listed(counts)}"
        )
        return UNDECIDED if counts["undecided"] else DONE
    report = verify_folder(options.folder, layer)
    proven = report.scanned - report.counts["undecided"]
    share = "" if report.scanned == report.classes else f" of a layer of {report.classes:,} classes"
    print(f"{proven:,} verdicts re-checked without a solver{share}: {_listed(report.counts)}")
    return UNDECIDED if report.counts["undecided"] else DONE


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items())
