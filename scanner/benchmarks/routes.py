"""What each route of a scan is worth: whole scans with one of them left out.

    python benchmarks/routes.py [--cells ppocr-v6 "few 2000 64" ...] [--without together ...]

A cell is a released model or a layer of ``hard_layer`` ("few" plants 1%, "many" 25% of classes that
never win, classes, features), over the box |x| <= 100 or the set that its last word names. All
scans of a cell run in one process on one thread. A route stays in softgeom/routes.py only where
some cell takes 1.5 times as long and a second more without it, or loses a verdict.

Writes results/bench/routes.csv (CPU seconds, ratio to the scan with all routes, seconds more,
verdicts that differ, classes left undecided); rows of other cells stay.
"""

# ruff: noqa: E402 - the thread count must be set before numpy is imported
from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softgeom.examples import hard_layer
from softgeom.layer import Ball, Box, Ellipsoid, FeatureSet, SoftmaxLayer, Unbounded
from softgeom.routes import ROUTES
from softgeom.scanner import scan

TABLE = Path(__file__).resolve().parent.parent / "results" / "bench" / "routes.csv"
SETS = ("box", "ball", "unbounded", "LayerNorm")
SHARE = {"few": 0.01, "many": 0.25}
CELLS = [
    *("g2pm", "few 2000 64", "few 2000 64 ball", "few 2000 64 unbounded", "many 2000 64"),
    *("few 8000 64", "few 8000 128", "few 8000 256", "many 8000 256", "ppocr-v4", "ppocr-v5"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", nargs="*", default=CELLS)
    parser.add_argument("--without", nargs="*", default=[route.name for route in ROUTES])
    options = parser.parse_args()
    for cell in options.cells:
        rows = pd.DataFrame(measure(cell, options.without))
        if TABLE.is_file():
            before = pd.read_csv(TABLE)
            rows = pd.concat([before[before.cell != cell], rows])
        rows.to_csv(TABLE, index=False, lineterminator="\n", float_format="%.4g")
        print(rows[rows.cell == cell].to_string(index=False), flush=True)


def measure(cell: str, left_out: list[str]) -> list[dict[str, Any]]:
    """A row for the scan with all routes, and one for each route that is left out."""
    layer, features = _problem(cell)
    rows: list[dict[str, Any]] = []
    whole, verdicts = 0.0, np.zeros(0)
    for without in ("", *left_out):
        started = time.process_time()
        found = scan(layer, features=features, without=[without] if without else [])
        seconds = time.process_time() - started
        these = found.table.verdict.to_numpy()
        if not without:
            whole, verdicts = seconds, these
        differ = int(np.sum((these != verdicts) & (these != "undecided")))
        row = {"cell": cell, "without": without or "none", "cpu_s": seconds}
        row |= {"ratio": seconds / whole, "more_s": seconds - whole}
        rows.append(row | {"differ": differ, "undecided": found.counts["undecided"]})
    return rows


def _problem(cell: str) -> tuple[SoftmaxLayer, FeatureSet]:
    words = cell.split()
    kind = words.pop() if words[-1] in SETS else "box"
    if words[0] in SHARE:
        classes, dimension = map(int, words[1:])
        layer = hard_layer(classes, dimension, planted=int(SHARE[words[0]] * classes))
    else:
        from softgeom.checkpoints import load_head

        layer = load_head(words[0]).layer
    sets = (Box(100.0), Ball(100.0), Unbounded(), Ellipsoid(np.ones(layer.dimension), centred=True))
    return layer, sets[SETS.index(kind)]


if __name__ == "__main__":
    main()
