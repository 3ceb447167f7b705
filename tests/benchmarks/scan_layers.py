"""How fast is a whole layer scanned and proven, beside the paper's pipeline and one `W @ W.T`?

    python tests/benchmarks/scan_layers.py [--layers ocr easy hard] [--lp-seconds 600]

The baseline is the paper's pipeline as its authors run it: for one class after another Braid
Reflect with one matrix-vector product per reflection, patience 2,500, then, where that fails, the
Chebyshev programme with all rows. It runs on a sample: classes are grouped by how our scan settled
them, a few of each group are run, and the total is the sum of group size times mean cost, with its
95% interval (t, with the freedom of the smallest group). A programme that exceeds --lp-seconds
counts with the time that it had, which favours the baseline. float32, one thread, CPU seconds of
this process. Writes results/bench/scan_layers.csv.
"""

# ruff: noqa: E402 - the thread count must be set before numpy is imported
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"  # before numpy: the comparison is fair only with equal threads

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.stats
from threadpoolctl import threadpool_info

from compendium.models.ppocr import ppocr_head
from papers.bottleneck.paper001 import PATIENCE, reflect_step
from softgeom.examples import hard_layer, normal_layer
from softgeom.layer import Box, SoftmaxLayer
from softgeom.problem import make_problem
from softgeom.proving.lp import SolverError, chebyshev_radius
from softgeom.scanner import scan
from softgeom.searching.ascent import climb

TABLE = Path(__file__).resolve().parents[2] / "results" / "bench" / "scan_layers.csv"
LAYERS: dict[str, Callable[[], SoftmaxLayer]] = {
    "ocr": ppocr_head,  # PP-OCRv4
    "easy": lambda: normal_layer(30_522, 384, seed=0),
    "hard": lambda: hard_layer(32_000, 512, seed=0),
}
SOLVER = {"ocr": "simplex"}  # HiGHS's faster one on that layer; else interior point
SAMPLE = {"look": 16, "ascent": 16, "open": 8}  # classes of each group that the baseline is run on
LONG = {"hard": 4}  # of the group "open" where each programme takes most of a minute


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", nargs="*", default=[*LAYERS], choices=[*LAYERS])
    parser.add_argument("--lp-seconds", type=float, default=600.0)
    options = parser.parse_args()
    known = pd.read_csv(TABLE).set_index("layer").to_dict("index") if TABLE.is_file() else {}
    for name in options.layers:
        known[name] = compare(name, LAYERS[name](), options.lp_seconds)
        print(json.dumps({"layer": name, **known[name]}), flush=True)
        table = pd.DataFrame.from_dict(known, orient="index").rename_axis("layer").sort_index()
        table.to_csv(TABLE, lineterminator="\n", float_format="%.4g")


def compare(name: str, layer: SoftmaxLayer, limit: float) -> dict[str, Any]:
    """One row of the table."""
    classes, problem = np.arange(layer.classes), make_problem(layer, Box(100.0))
    floor, _ = timed(lambda: row_maxima(layer))
    blocks = np.split(classes, range(1024, len(classes), 1024))
    search, _ = timed(lambda: [climb(problem, block) for block in blocks])
    ours, found = timed(lambda: scan(layer))
    verify, _ = timed(found.verify)
    only, _ = timed(lambda: scan(layer, verdicts_only=True))
    # before and after: a busy machine changes between them
    floor = (floor + timed(lambda: row_maxima(layer))[0]) / 2
    low, baseline, high = published(name, layer, found.table, limit)
    pools = threadpool_info()
    return {
        "classes": layer.classes,
        "features": layer.dimension,
        "bias": layer.b is not None,
        **found.counts,
        "floor_cpu_s": floor,
        "search_cpu_s": search,
        "scan_cpu_s": ours,
        "verify_cpu_s": verify,
        "scan_and_verify_over_floor": (ours + verify) / floor,
        "verdicts_only_over_floor": only / floor,
        "verdicts_only_and_verify_over_floor": (only + verify) / floor,
        "baseline_cpu_s": baseline,
        "times_faster": baseline / (ours + verify),
        "times_faster_low": low / (ours + verify),
        "times_faster_high": high / (ours + verify),
        "blas": ", ".join(sorted({str(pool.get("architecture", "?")) for pool in pools})),
        "threads": max((int(pool["num_threads"]) for pool in pools), default=1),
    }


def published(
    name: str, layer: SoftmaxLayer, table: pd.DataFrame, limit: float
) -> tuple[float, float, float]:
    """CPU seconds of the paper's pipeline, from a sample of each group: low end, mean, high end.

    Braid Reflect can also lose a class that our scan cleared: its programme is counted at the mean
    of those that were run.
    """
    rng, rows = np.random.default_rng(0), []
    group = table.method.where(table.method.isin(["look", "ascent"]), "open")
    for kind, members in table["class"].groupby(group):
        size = min(LONG.get(name, SAMPLE[kind]) if kind == "open" else SAMPLE[kind], len(members))
        for t in rng.choice(members, size, replace=False).tolist():
            reflect, won = timed(lambda t=t: reflect_one(layer.W, layer.bias, t))
            programme = np.nan
            if kind == "open":
                solver = SOLVER.get(name, "ipm")
                programme, _ = timed(lambda t=t, by=solver: radius(layer, t, by, limit))
            rows.append({"group": kind, "reflect": reflect, "won": won, "programme": programme})
    frame = pd.DataFrame(rows)
    mean = frame.programme.mean() if frame.programme.notna().any() else 0.0
    frame["cpu_s"] = frame.reflect + frame.programme.fillna(mean).where(~frame.won, 0.0)
    cost, sizes = frame.groupby("group").cpu_s, group.value_counts()
    total = float((sizes * cost.mean()).sum())
    error = float(np.sqrt(((sizes * cost.sem().fillna(0.0)) ** 2).sum()))
    freedom = max(1, min((n for n in cost.count() if n > 1), default=2) - 1)
    reach = float(scipy.stats.t.ppf(0.975, freedom)) * error
    return max(0.0, total - reach), total, total + reach


def reflect_one(W: np.ndarray, b: np.ndarray, t: int) -> bool:
    """Algorithm 2 for one class, a matrix-vector product a reflection, as in the authors' code."""
    x = W[t].copy()
    for _ in range(PATIENCE):
        best = int((W @ x + b).argmax())
        if best == t:
            return bool(np.abs(x).max() <= 100)
        x = reflect_step(x[None], W[t][None], W[best][None], b[[t]], b[[best]])[0]
    return False


def radius(layer: SoftmaxLayer, t: int, solver: str, limit: float) -> float | None:
    """The Chebyshev radius of class t, by the programme with all rows; None when time ran out."""
    low, high = Box(100.0).bounds(layer.dimension)
    how = {"method": solver, "time_limit": limit}
    try:
        return chebyshev_radius(layer.W, layer.bias, t, low, high, **how)[0]
    except SolverError:
        return None


def row_maxima(layer: SoftmaxLayer) -> np.ndarray:
    """The floor: one plain `W @ W.T` with row maxima, a block of rows at a time."""
    W = layer.W.astype(np.float32, copy=False)
    return np.concatenate([(W[i : i + 512] @ W.T).max(axis=1) for i in range(0, len(W), 512)])


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of this process, and what the work returns."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


if __name__ == "__main__":
    main()
