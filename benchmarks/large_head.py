"""What a head too large to try costs: slices of it, a whole scan that tests them, and 256,000 x
4,096 by their rates.

    python benchmarks/large_head.py [--cells 32000x4096x1024 ...]

A cell is classes x features x classes scanned, a layer of `hard_layer` in float32 of which one
class in a hundred never wins. It runs in a process of its own on one thread: CPU seconds of the
search, of the proofs (of what the search left open) and of a verification of at most 512 classes.
A search looks at every class once, so that it costs a constant for each class scanned, class and
feature; `search_ps` is that constant in picoseconds. Proofs are over a sample of rivals that does
not grow with the classes, and cost by block of 128. The last row has the rates of the slice with
most features; its proofs assume that one class in a hundred is open.

Writes results/bench/large_head.csv; rows of other cells stay.

    python benchmarks/large_head.py --whole whisper-base=model.bin [--options "--features auto"]

scans the head of a model whole and verifies it, as a user would, each by a command of its own, and
writes counts, seconds and the higher peak of memory, of all processes of a command together, to
results/bench/whole_heads.csv (the row of Gemma 3 270M: `--options "--features unbounded
--verdicts-only --jobs 2"`). A scan that is stopped goes on in its folder, `whole/NAME`; its seconds
are then those of the last call.
"""

# ruff: noqa: E402 - the thread count must be set before numpy is imported
from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from targets import Took, run

from softgeom.bottleneck import scanner
from softgeom.bottleneck.examples import hard_layer
from softgeom.bottleneck.scan_result import Scan

TABLE = Path(__file__).resolve().parent.parent / "results" / "bench" / "large_head.csv"
WHOLE_HEADS = TABLE.with_name("whole_heads.csv")
CELLS = ["8000x1024x1024", "32000x1024x1024", "32000x4096x1024"]
WHOLE = "32000x1024x32000"
TARGET = (256_000, 4_096)
VERIFIED = 512


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", nargs="*", default=[*CELLS, WHOLE])
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    parser.add_argument("--whole", metavar="NAME=MODEL")
    parser.add_argument("--options", default="--features auto", help="of the scan of a whole head")
    options = parser.parse_args()
    if options.whole:
        write_whole(*options.whole.split("=", 1), options.options.split())
        return
    if options.cell:
        print(json.dumps(measure(*map(int, options.cell.split("x")))))
        return
    known = pd.read_csv(TABLE).to_dict("records") if TABLE.is_file() else []
    rows = {_key(row): row for row in known if row["cpu_h"] != row["cpu_h"]}
    for cell in options.cells:
        command = [sys.executable, __file__, "--cell", cell]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        row = json.loads(done.stdout.splitlines()[-1])
        rows[_key(row)] = row
        print(row, flush=True)
        widest = max(rows.values(), key=lambda row: row["features"])
        table = pd.DataFrame([*rows.values(), extrapolated(widest)])
        table.to_csv(TABLE, index=False, lineterminator="\n", float_format="%.3g")


def measure(classes: int, features: int, scanned: int) -> dict[str, Any]:
    """CPU seconds of one cell. The planted classes are the last."""
    layer, spent = hard_layer(classes, features, planted=classes // 100), {"s": 0.0, "p": 0.0}
    left: list[int] = []

    def timed(work: Callable[..., Any], name: str) -> Callable[..., Any]:
        def run(task: Any, some: np.ndarray, *more: Any) -> Any:
            started = time.process_time()
            result = work(task, some, *more)
            spent[name] += time.process_time() - started
            left.extend(some.tolist() if name == "p" else [])
            return result

        return run

    scanner._search = timed(scanner._search, "s")
    scanner._decide = timed(scanner._decide, "p")
    few = scanned // 100 + 12
    chosen = np.concatenate([np.arange(scanned - few), np.arange(classes - few, classes)])
    found = scanner.scan(layer, None if scanned == classes else chosen)
    some = found.findings[:: max(1, scanned // VERIFIED)]
    started = time.process_time()
    Scan(layer, found.features, some).verify()
    verify = time.process_time() - started
    size = classes * features
    return {
        "classes": classes,
        "features": features,
        "scanned": scanned,
        "open": len(left),
        "search_cpu_s": spent["s"],
        "proofs_cpu_s": spent["p"],
        "search_ps": 1e12 * spent["s"] / scanned / size,
        "verify_ps": 1e12 * verify / len(some) / size,
        "cpu_h": np.nan,
    }


def write_whole(name: str, model: str, options: list[str]) -> None:
    """The row of one head, scanned and verified by the commands."""
    folder = Path("whole") / name
    scanned = _took("scan", model, *options, "--out", str(folder), "--quiet")
    verified = _took("verify", str(folder), model)
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    row = {
        "head": name,
        "classes": summary["classes"],
        "features": summary["features"],
        "feature_set": summary["feature_set"],
        **summary["counts"],
        "scan_cpu_s": round(scanned.cpu_seconds),
        "scan_wall_s": round(scanned.seconds),
        "verify_cpu_s": round(verified.cpu_seconds),
        "peak_gb": round(max(scanned.peak_gb, verified.peak_gb), 2),
    }
    known = pd.read_csv(WHOLE_HEADS).to_dict("records") if WHOLE_HEADS.is_file() else []
    table = pd.DataFrame([*(other for other in known if other["head"] != name), row])
    table.to_csv(WHOLE_HEADS, index=False, lineterminator="\n")


def _took(*words: str) -> Took:
    took = run([sys.executable, "-m", "softgeom.cli", *words])
    if took.status:
        raise SystemExit(f"softgeom {words[0]} ended with status {took.status}")
    return took


def extrapolated(row: dict[str, Any]) -> dict[str, Any]:
    """The row of the target, by the rates of a slice and its one block of proofs."""
    classes, features = TARGET
    search, verify = (1e-12 * row[k] * classes**2 * features for k in ("search_ps", "verify_ps"))
    open_ = classes // 100
    proofs = row["proofs_cpu_s"] / row["open"] * open_
    return {
        "classes": classes,
        "features": features,
        "scanned": classes,
        "open": open_,
        "search_cpu_s": search,
        "proofs_cpu_s": proofs,
        "search_ps": row["search_ps"],
        "verify_ps": row["verify_ps"],
        "cpu_h": (search + proofs + verify) / 3600,
    }


def _key(row: dict[str, Any]) -> tuple[int, int, int]:
    return row["classes"], row["features"], row["scanned"]


if __name__ == "__main__":
    main()
