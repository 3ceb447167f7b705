"""``softgeom survey MODEL ...``: several models in one table, each scanned into its own folder."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import pandas as pd

from softgeom.bottleneck.scanner import scan
from softgeom.checkpoints import load_head
from softgeom.commands import options as asked
from softgeom.commands.boundary import DONE, REFUSED, one_line
from softgeom.commands.results import folder_for, summarise, write_results


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("survey", help="several models in one table")
    parser.add_argument("models", nargs="+", help="files, folders, hub ids or released models")
    asked.add_features(parser)
    asked.add_work(parser)
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Scan each; a model that cannot be read is a row that says why."""
    rows, failed = [], False
    for model in options.models:
        started = time.process_time()
        try:
            head = load_head(model)
            features, why = asked.read_features(options, head)
            folder = folder_for(None, model, head.layer)
            found = scan(
                head.layer,
                features=features,
                seed=options.seed,
                n_jobs=options.jobs,
                checkpoint=folder / "blocks",
                progress=True,
            )
            found.verify()
            write_results(folder, found, summarise(found, head, model, why=why, seed=options.seed, inputs=None))
            row = {
                "classes": head.layer.classes,
                "features": head.layer.dimension,
                **found.counts,
                "set": features.describe(),
            }
            rows.append(
                {"model": model, **row, "seconds": round(time.process_time() - started, 1), "folder": str(folder)}
            )
        except ValueError as error:
            failed = True
            rows.append({"model": model})
            print(f"softgeom: {one_line(str(error))}", file=sys.stderr)
    if options.json:
        print(json.dumps(rows))
    else:
        print(pd.DataFrame(rows).fillna("").to_string(index=False))
    return REFUSED if failed else DONE
