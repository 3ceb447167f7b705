"""Whole scans over a grid of layers (classes, features, few and many of them unargmaxable), and of
heads that are in production.

    python benchmarks/scan_grid.py [--classes 2000 8000 32000] [--features 64 128 256 512]
        [--real ppocr-v4 ...] [--no-grid] [--missing]

Each cell runs in a process of its own, on one thread, and is measured against its own floor: one
`W @ W.T` in float32 with row maxima, taken before and after the scan (a busy machine distorts
seconds more than ratios; `floor_spread` is how far apart the two are). Layers of the grid are from
`hard_layer`: "few" plants 1% unargmaxable, "many" 25%. Rows of earlier runs stay; `--missing` goes
on with cells that are not there yet.

Writes results/bench/scan_grid.csv: CPU seconds of floor, scan and verification, their ratio to the
floor, milliseconds that a proof costs beyond four floors, and the BLAS kernel.
"""

# ruff: noqa: E402 - the thread count must be set before numpy is imported
from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_info

from softgeom.examples import hard_layer
from softgeom.layer import SoftmaxLayer
from softgeom.scan_result import Scan
from softgeom.scanner import scan

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "results" / "bench" / "scan_grid.csv"
REAL = ("ppocr-v4", "ppocr-v5", "ppocr-v6", "g2pm", "smollm2")
SHARE = {"few": 0.01, "many": 0.25}
FLOORS = 4.0  # what search and verification may cost; the rest is put down to the proofs


def main() -> None:
    options = _options()
    if options.cell:
        print(json.dumps(measure(*options.cell)))
        return
    grid = itertools.product(SHARE, map(str, options.features), map(str, options.classes))
    cells = [] if options.no_grid else [(f"{kind}", c, d) for kind, d, c in grid]
    rows = pd.read_csv(TABLE).to_dict("records") if TABLE.is_file() else []
    known = {row["layer"]: row for row in rows}
    for cell in [*((name, "0", "0") for name in options.real), *cells]:
        if options.missing and _name(*cell) in known:
            continue
        command = [sys.executable, __file__, "--cell", *cell]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            print(f"{' '.join(cell)}: failed, left out", flush=True)
            continue
        row = json.loads(done.stdout.splitlines()[-1])
        known[row["layer"]] = row
        cost = f"{row['over_floor']:.1f} floors, {row['unargmaxable']} unargmaxable"
        print(f"{row['layer']}: {cost}", flush=True)
        TABLE.parent.mkdir(parents=True, exist_ok=True)
        table = pd.DataFrame(list(known.values()))
        table.to_csv(TABLE, index=False, lineterminator="\n", float_format="%.4g")


def measure(kind: str, classes: str, features: str) -> dict[str, Any]:
    """One cell: counts and CPU seconds."""
    if kind in SHARE:
        C, d = int(classes), int(features)
        layer = hard_layer(C, d, planted=int(SHARE[kind] * C))
    else:
        from softgeom.checkpoints import load_head

        layer = load_head(kind).layer
    before = _floor(layer)
    cost, found = _timed(lambda: scan(layer))
    check, _ = _timed(found.verify)
    after = _floor(layer)
    floor = (before + after) / 2
    proofs = found.counts["unargmaxable"] + found.counts["undecided"]
    blas = sorted({str(pool.get("architecture", "?")) for pool in threadpool_info()})
    row = {"layer": _name(kind, classes, features), "kind": kind}
    row |= {"classes": layer.classes, "features": layer.dimension, **found.counts}
    row |= {"floor_cpu_s": floor, "floor_spread": abs(before - after) / floor}
    row |= {"scan_cpu_s": cost, "verify_cpu_s": check, "over_floor": (cost + check) / floor}
    row["reached"] = _reached(layer, found, floor, cost + check)
    beyond = max(0.0, cost + check - FLOORS * floor)
    return row | {"ms_per_proof": 1e3 * beyond / proofs if proofs else 0.0, "blas": ", ".join(blas)}


def _name(kind: str, classes: str, features: str) -> str:
    return f"{kind} {classes} x {features}" if kind in SHARE else kind


def _reached(layer: SoftmaxLayer, found: Scan, floor: float, cost: float) -> bool:
    """Whether a cell stays within what was aimed at: 4 floors (30 up to 128 features), and with
    many proofs 0.3 s and 5 ms a proof more.
    """
    proofs = found.counts["unargmaxable"] + found.counts["undecided"]
    rare = layer.classes >= 16_000 and proofs <= 0.01 * layer.classes
    aim = (30 if layer.dimension <= 128 else 4) * floor
    return cost <= aim + (0.0 if rare else 0.3 + 0.005 * proofs)


def _floor(layer: SoftmaxLayer) -> float:
    return min(_timed(lambda: _row_maxima(layer))[0] for _ in range(3))


def _row_maxima(layer: SoftmaxLayer) -> np.ndarray:
    W = layer.W.astype(np.float32, copy=False)
    return np.concatenate([(W[i : i + 512] @ W.T).max(axis=1) for i in range(0, len(W), 512)])


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--classes", nargs="*", type=int, default=[2_000, 8_000, 32_000])
    add("--features", nargs="*", type=int, default=[64, 128, 256, 512])
    add("--real", nargs="*", default=list(REAL), help="released models, files, or folders")
    add("--no-grid", action="store_true", help="the real heads alone")
    add("--missing", action="store_true", help="only cells that the table does not have")
    add("--cell", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
