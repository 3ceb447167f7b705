"""How fast is a whole layer scanned and proven, beside the paper's pipeline and beside one `W @ W.T`?

    python benchmarks/scan_layers.py [--layers ocr easy hard] [--seeds 0 1 2] [--quick] [--lp-seconds 300]

The baseline is the paper's pipeline as its authors run it: for one class after another Braid Reflect with one
matrix-vector product per reflection, patience 2,500, then, where that fails, the Chebyshev programme with all rows. It
would take hours, so it runs on a sample and is extrapolated in the open: classes are grouped by how our scan settled them
(first look, ascent, no witness), a few of each group are run, and the total is the sum of group size times mean cost. The
programme is solved by HiGHS simplex and by HiGHS interior point and the faster counts; one that exceeds --lp-seconds
counts with that limit, which favours the baseline. Same dtype (float32), same single thread for everything.

Times are CPU seconds of this process, which a busy machine distorts less than wall time; both are written.
Writes results/bench/scan_layers.csv (one row per layer and seed) and scan_layers_sample.csv (every sampled class).
"""

# ruff: noqa: E402 - the thread count must be set before numpy is imported
from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"  # before numpy: the comparison is fair only with equal threads

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
from softgeom.bottleneck import scan
from softgeom.bottleneck.ascent import climb
from softgeom.bottleneck.examples import hard_layer, normal_layer
from softgeom.bottleneck.lp import SolverError, chebyshev_radius
from softgeom.bottleneck.problem import make_problem
from softgeom.bottleneck.reflect import PATIENCE, reflect_step
from softgeom.layer import Box, SoftmaxLayer

OUT = Path(__file__).resolve().parent.parent / "results" / "bench"
SAMPLE = {"look": 16, "ascent": 16, "open": 3}  # classes of each group that the baseline is run on


def main() -> None:
    options = _options()
    rows, sample = [], []
    for name in options.layers:
        for seed in options.seeds if name != "ocr" else [0]:
            layer = _layer(name, seed, options.quick)
            if layer is None:
                print(f"{name}: skipped, rapidocr-onnxruntime is not installed", flush=True)
                continue
            row, cost = _compare(name, seed, layer, options.lp_seconds)
            rows.append(row)
            sample.append(cost)
            print(json.dumps(row), flush=True)
            OUT.mkdir(parents=True, exist_ok=True)
            suffix = "_quick" if options.quick else ""
            _merge(OUT / f"scan_layers{suffix}.csv", pd.DataFrame(rows))
            _merge(OUT / f"scan_layers_sample{suffix}.csv", pd.concat(sample))
    if options.memory:
        _write_memory()


def _merge(path: Path, fresh: pd.DataFrame) -> None:
    """Write ``fresh`` and those rows of an earlier run that are about other layers or seeds."""
    if path.is_file():
        old = pd.read_csv(path)
        known = set(zip(fresh.layer, fresh.seed, strict=True))
        old = old[[key not in known for key in zip(old.layer, old.seed, strict=True)]]
        fresh = pd.concat([old, fresh]) if len(old) else fresh
    fresh.sort_values(["layer", "seed"], kind="stable").to_csv(path, index=False)


def _compare(name: str, seed: int, layer: SoftmaxLayer, lp_seconds: float) -> tuple[dict[str, Any], pd.DataFrame]:
    classes = np.arange(layer.classes)
    floor, floor_wall, _ = _timed(lambda: _row_maxima(layer))
    problem = make_problem(layer, Box(100.0))
    search, _, _ = _timed(lambda: [climb(problem, classes[i : i + 1024]) for i in range(0, len(classes), 1024)])
    ours, ours_wall, found = _timed(lambda: scan(layer))
    verify, verify_wall, _ = _timed(found.verify)
    cost = _baseline(name, seed, layer, found.table, lp_seconds)
    groups = _groups(found.table)
    mean = cost.groupby("group").cpu_s.mean()
    baseline = float(sum(len(members) * mean[group] for group, members in groups.items() if len(members)))
    spread = cost.groupby("group").cpu_s.sem().fillna(0.0)
    error = float(
        np.sqrt(sum((len(members) * spread[group]) ** 2 for group, members in groups.items() if len(members)))
    )
    row = {
        "layer": name,
        "seed": seed,
        "classes": layer.classes,
        "features": layer.dimension,
        "bias": layer.b is not None,
        **found.counts,
        "floor_cpu_s": floor,
        "search_cpu_s": search,
        "scan_cpu_s": ours,
        "verify_cpu_s": verify,
        "search_over_floor": search / floor,
        "scan_and_verify_over_floor": (ours + verify) / floor,
        "baseline_cpu_s": baseline,
        "baseline_standard_error_s": error,
        "times_faster": baseline / (ours + verify),
        "floor_wall_s": floor_wall,
        "scan_and_verify_wall_s": ours_wall + verify_wall,
    }
    return row, cost


def _groups(table: pd.DataFrame) -> dict[str, np.ndarray]:
    method = np.where(table.verdict == "argmaxable", table.method, "open")
    return {group: table["class"].to_numpy()[method == group] for group in ("look", "ascent", "open")}


def _baseline(name: str, seed: int, layer: SoftmaxLayer, table: pd.DataFrame, lp_seconds: float) -> pd.DataFrame:
    """CPU seconds of the paper's pipeline on a sample of each group."""
    rng = np.random.default_rng(seed)
    W, b = layer.W, layer.bias
    rows = []
    lp_cost = None
    for group, members in _groups(table).items():
        for t in rng.choice(members, min(SAMPLE[group], len(members)), replace=False):
            cpu, _, (won, steps) = _timed(lambda t=int(t): _reflect_one(W, b, t))
            row = {"layer": name, "seed": seed, "class": int(t), "group": group, "steps": steps, "reflect_cpu_s": cpu}
            if not won:
                lp_cost = lp_cost or _programme_cost(layer, int(t), lp_seconds)  # once per layer: it takes minutes
                row |= lp_cost
            rows.append(row | {"won": won, "cpu_s": cpu + (lp_cost or {}).get("lp_cpu_s", 0.0) * (not won)})
    return pd.DataFrame(rows)


def _reflect_one(W: np.ndarray, b: np.ndarray, t: int) -> tuple[bool, int]:
    """Algorithm 2 for one class with one matrix-vector product per reflection, as in the authors' code."""
    x = W[t].copy()
    for step in range(PATIENCE):
        best = int((W @ x + b).argmax())
        if best == t:
            return bool(np.abs(x).max() <= 100), step
        x = reflect_step(x[None], W[t][None], W[best][None], b[[t]], b[[best]])[0]
    return False, PATIENCE


def _programme_cost(layer: SoftmaxLayer, t: int, lp_seconds: float) -> dict[str, Any]:
    """CPU seconds of the Chebyshev programme with all rows, by the faster of HiGHS's two solvers."""
    low, high = Box(100.0).bounds(layer.dimension)
    result: dict[str, Any] = {}
    for method in ("simplex", "ipm"):

        def solve(method: str = method) -> str:
            try:
                return str(chebyshev_radius(layer.W, layer.b, t, low, high, method=method, time_limit=lp_seconds)[0])
            except SolverError as error:
                return str(error)

        result[f"{method}_cpu_s"], _, result[f"{method}_outcome"] = _timed(solve)
    result["lp_cpu_s"] = min(result["simplex_cpu_s"], result["ipm_cpu_s"])
    return result


def _row_maxima(layer: SoftmaxLayer) -> np.ndarray:
    """The floor: one plain `W @ W.T` with row maxima, a block of rows at a time."""
    W = layer.W.astype(np.float32, copy=False)
    return np.concatenate([(W[i : i + 512] @ W.T).max(axis=1) for i in range(0, len(W), 512)])


def _layer(name: str, seed: int, quick: bool) -> SoftmaxLayer | None:
    small = 8 if quick else 1
    if name == "easy":
        return normal_layer(30_522 // small, 384 // small, seed=seed)
    if name == "hard":
        return hard_layer(32_000 // small, 512 // small, seed=seed)
    try:
        from softgeom.checkpoints import ppocr_head

        return ppocr_head()
    except (ImportError, ValueError):
        return None


def _timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return time.process_time() - cpu, time.perf_counter() - wall, result


MEMORY = """
import resource
import numpy as np
from softgeom.bottleneck import scan
from softgeom.layer import SoftmaxLayer
rng = np.random.default_rng(0)
W = np.empty(({classes}, {features}), np.{dtype})
for i in range(0, len(W), 4096):
    W[i : i + 4096] = rng.standard_normal((len(W[i : i + 4096]), {features}), dtype=np.float32)
counts = scan(SoftmaxLayer(W), {chosen}).counts
assert counts["undecided"] == 0, counts
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def _write_memory() -> None:
    """Peak memory of whole processes: interpreter, layer and scan."""
    cases = [
        {"classes": 30_522, "features": 384, "dtype": "float32", "chosen": None},
        {"classes": 128_256, "features": 4_096, "dtype": "float16", "chosen": "np.arange(0, 128_256, 2_004)"},
    ]
    rows = []
    for case in cases:
        done = subprocess.run([sys.executable, "-c", MEMORY.format(**case)], capture_output=True, text=True, check=True)
        rows.append(case | {"peak_gib": float(done.stdout)})
        print(json.dumps(rows[-1]), flush=True)
    pd.DataFrame(rows).to_csv(OUT / "scan_memory.csv", index=False)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", nargs="*", default=["ocr", "easy", "hard"], choices=["ocr", "easy", "hard"])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--lp-seconds", type=float, default=300.0)
    parser.add_argument("--quick", action="store_true", help="an eighth of each size")
    parser.add_argument("--memory", action="store_true", help="also measure peak memory")
    return parser.parse_args()


if __name__ == "__main__":
    main()
