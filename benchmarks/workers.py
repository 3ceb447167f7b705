"""What a second worker is worth: one scan of 20,000 x 128 by one process, by two, and by a local
Dask cluster of two, each in a fresh interpreter, in one run on an idle machine.

    OMP_NUM_THREADS=1 python benchmarks/workers.py
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
from joblib.externals.loky import get_reusable_executor

from softgeom.bottleneck.examples import hard_layer
from softgeom.bottleneck.scanner import scan

TABLE = Path("results/bench/workers.csv")
WAYS = {"one": {}, "two": {"n_jobs": 2}, "dask, two": {"n_jobs": 2, "backend": "dask"}}


def measure(way: str) -> None:
    """Print counts, CPU and wall seconds of one scan; workers end before their CPU counts."""
    layer = hard_layer(20_000, 128, planted=400)
    before, started = _cpu(), time.perf_counter()
    found = scan(layer, **WAYS[way])
    wall = time.perf_counter() - started
    get_reusable_executor().shutdown(wait=True)
    print(found.counts["unargmaxable"], found.counts["undecided"], _cpu() - before, wall)


def _cpu() -> float:
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(sum(resource.getrusage(who)[:2]) for who in whose)


def main() -> None:
    """Measure each way in an interpreter of its own and write the table."""
    rows = []
    for way in WAYS:
        run = subprocess.run(
            [sys.executable, __file__, way], stdout=subprocess.PIPE, text=True, check=True
        )
        lost, undecided, cpu, wall = run.stdout.splitlines()[-1].split()
        rows.append((way, int(lost), int(undecided), float(cpu), float(wall)))
    table = pd.DataFrame(rows, columns=["workers", "unargmaxable", "undecided", "cpu_s", "wall_s"])
    table["cpu_over_one"] = table["cpu_s"] / table["cpu_s"][0]
    table["times_faster"] = table["wall_s"][0] / table["wall_s"]
    table.round(3).to_csv(TABLE, index=False, lineterminator="\n")
    print(table.to_string())


if __name__ == "__main__":
    measure(sys.argv[1]) if sys.argv[1:] else main()
