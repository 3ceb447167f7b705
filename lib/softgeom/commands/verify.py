"""``softgeom verify FOLDER MODEL``: every proof of a folder of results again, from the layer and the evidence alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from softgeom.commands import options as asked
from softgeom.commands.boundary import DONE, UNDECIDED
from softgeom.commands.results import load_scan, read_summary


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("verify", help="re-check every proof of a folder of results, without a solver")
    parser.add_argument("folder", type=Path, help="where softgeom scan wrote")
    asked.add_model(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check the evidence against the layer, and the summary against the evidence."""
    found = load_scan(options.folder, asked.read_head(options).layer)
    found.verify()
    if read_summary(options.folder).get("counts") != found.counts:
        raise ValueError(
            f"{options.folder}/summary.json gives other counts than the evidence, which proves {found.counts}."
        )
    print(
        f"{len(found.findings) - found.counts['undecided']:,} verdicts re-checked without a solver: {_listed(found.counts)}"
    )
    return UNDECIDED if found.counts["undecided"] else DONE


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items())
