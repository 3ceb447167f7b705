"""How fast is a whole layer scanned and proven, beside the paper's pipeline and beside one `W @
W.T`?

    python benchmarks/scan_layers.py [--layers ocr easy hard] [--seeds 0 1 2] [--quick]
    [--lp-seconds 600]

The baseline is the paper's pipeline as its authors run it: for one class after another Braid
Reflect with one matrix-vector product per reflection, patience 2,500, then, where that fails, the
Chebyshev programme with all rows. It would take hours, so it runs on a sample and is extrapolated
in the open: classes are grouped by how our scan settled them (first look, ascent, no witness), a
few of each group are run, and the total is the sum of group size times mean cost, with the standard
error that the spread of each group gives. Interior point solves the programme of the first class;
then simplex gets as long to be faster, and the faster one solves the others. One that exceeds
--lp-seconds counts with the time that it had, which favours the baseline. Same dtype (float32),
same single thread for everything.

A second anchor asks what is left when the pipeline is *batched*, as nobody published it: Braid
Reflect for many classes in one matrix product per reflection (paper001.py), and for each class
without a win a programme of its own from 256 rivals, to which the strongest are added until it ends
(cold: nothing is carried from class to class; one that takes longer than a programme with all rows
counts as that, for its owner would have taken the other). Batches are a sample too; of classes that
never win, a part of the patience, scaled up. All intervals are 95% (t, with the freedom of the
smallest group), and the BLAS kernel and its threads are written beside: an old kernel shifts
ratios.

Times are CPU seconds of this process, which a busy machine distorts less than wall time; both are
written. Writes results/bench/scan_layers.csv (one row per layer and seed), scan_layers_sample.csv
(every sampled class) and scan_memory.csv (peak memory of whole processes, interpreter and layer
included, beside its limit).
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
import scipy.stats
from threadpoolctl import threadpool_info

from softgeom.bottleneck import scan
from softgeom.bottleneck.examples import hard_layer, normal_layer
from softgeom.bottleneck.paper001 import PATIENCE, braid_reflect, reflect_step
from softgeom.bottleneck.problem import make_problem
from softgeom.bottleneck.proving.lp import MarginProgramme, SolverError, chebyshev_radius
from softgeom.bottleneck.searching.ascent import climb
from softgeom.bottleneck.searching.look import look
from softgeom.layer import Box, SoftmaxLayer

OUT = Path(__file__).resolve().parent.parent / "results" / "bench"
SAMPLE = {"look": 16, "ascent": 16, "open": 8}  # classes of each group that the baseline is run on
LONG_PROGRAMMES = {"hard": 4}  # of the group "open" where each programme takes most of a minute
BATCHES, BATCH = 4, 64  # of each group that batched Braid Reflect is run on
COLD = {"hard": 1}  # programmes of each such batch, where each takes minutes; else four
SHORT = 125  # reflections tried for classes that never win: every further one costs the same


def main() -> None:
    options = _options()
    suffix = "_quick" if options.quick else ""
    OUT.mkdir(parents=True, exist_ok=True)
    programmes = _Programmes(options.lp_seconds)
    rows, sample = [], []
    for name in options.layers:
        for seed in options.seeds if name == "hard" else [0]:
            layer = _layer(name, seed, options.quick)
            if layer is None:
                print(f"{name}: skipped, rapidocr-onnxruntime is not installed", flush=True)
                continue
            row, cost = _compare(name, seed, layer, programmes)
            rows.append(row)
            sample.append(cost)
            print(json.dumps(row), flush=True)
            _merge(OUT / f"scan_layers{suffix}.csv", pd.DataFrame(rows))
            _merge(OUT / f"scan_layers_sample{suffix}.csv", pd.concat(sample))
    if not options.quick:
        _write_memory()


def _merge(path: Path, fresh: pd.DataFrame) -> None:
    """Write ``fresh`` and those rows of an earlier run that are about other layers or seeds."""
    if path.is_file():
        old = pd.read_csv(path)
        known = set(zip(fresh.layer, fresh.seed, strict=True))
        old = old[[key not in known for key in zip(old.layer, old.seed, strict=True)]]
        fresh = pd.concat([old, fresh]) if len(old) else fresh
    fresh.sort_values(["layer", "seed"], kind="stable").to_csv(
        path, index=False, lineterminator="\n", float_format="%.4g"
    )


def _compare(
    name: str, seed: int, layer: SoftmaxLayer, programmes: _Programmes
) -> tuple[dict[str, Any], pd.DataFrame]:
    classes = np.arange(layer.classes)
    floor, floor_wall, _ = _timed(lambda: _row_maxima(layer))
    problem = make_problem(layer, Box(100.0))
    search, _, _ = _timed(
        lambda: [climb(problem, classes[i : i + 1024]) for i in range(0, len(classes), 1024)]
    )
    ours, ours_wall, found = _timed(lambda: scan(layer))
    verify, verify_wall, _ = _timed(found.verify)
    only, _, _ = _timed(lambda: scan(layer, verdicts_only=True))
    # before and after: a busy machine changes between them
    floor = (floor + _timed(lambda: _row_maxima(layer))[0]) / 2
    cost = _baseline(name, seed, layer, found.table, programmes)
    sizes = pd.Series(
        {group: len(members) for group, members in _groups(found.table).items() if len(members)}
    )
    grouped = cost.groupby("group").cpu_s
    baseline, low, high = _total(sizes, grouped)
    batched, batched_low, batched_high = _batched(
        layer, _groups(found.table), seed, COLD.get(name, 4), _published(cost)
    )
    total = ours + verify
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
        "verdicts_only_over_floor": only / floor,
        "verdicts_only_and_verify_over_floor": (only + verify) / floor,
        "baseline_cpu_s": baseline,
        "baseline_low_s": low,
        "baseline_high_s": high,
        "times_faster": baseline / total,
        "times_faster_low": low / total,
        "times_faster_high": high / total,
        "batched_cpu_s": batched,
        "times_faster_than_batched": batched / total,
        "times_faster_than_batched_low": batched_low / total,
        "times_faster_than_batched_high": batched_high / total,
        "blas": ", ".join(
            sorted({str(pool.get("architecture", "?")) for pool in threadpool_info()})
        ),
        "threads": max((int(pool["num_threads"]) for pool in threadpool_info()), default=1),
        "floor_wall_s": floor_wall,
        "scan_and_verify_wall_s": ours_wall + verify_wall,
    }
    return row, cost


def _total(sizes: pd.Series, cost: Any) -> tuple[float, float, float]:
    """Sum over groups of size times mean cost, and its 95% interval (none of one class)."""
    total = float((sizes * cost.mean()).sum())
    error = float(np.sqrt(((sizes * cost.sem().fillna(0.0)) ** 2).sum()))
    counts = cost.count()
    reach = (
        float(scipy.stats.t.ppf(0.975, max(1, int(counts[counts > 1].min()) - 1))) * error
        if (counts > 1).any()
        else 0.0
    )
    return total, max(0.0, total - reach), total + reach


def _batched(
    layer: SoftmaxLayer, groups: dict[str, np.ndarray], seed: int, cold: int, limit: float
) -> tuple[float, float, float]:
    """CPU seconds of the batched pipeline, with their interval."""
    rng, rows = np.random.default_rng(seed), []
    for group, members in groups.items():
        part = rng.permutation(members)[: BATCHES * BATCH]
        patience = SHORT if group == "open" else PATIENCE
        for classes in np.array_split(part, min(BATCHES, len(part))) if len(part) else []:
            cpu, _, found = _timed(
                lambda c=classes, p=patience: braid_reflect(layer, c, patience=p)
            )
            lost = classes[~(found.won & found.inside)]
            scale = PATIENCE / SHORT if group == "open" else 1.0
            programmes = [
                min(limit, _timed(lambda t=t: _cold_working_set(layer, int(t), limit))[0])
                for t in lost[:cold]
            ]
            share = len(lost) / len(classes) * float(np.mean(programmes)) if programmes else 0.0
            rows.append({"group": group, "cpu_s": cpu * scale / len(classes) + share})
    cost = pd.DataFrame(rows).groupby("group").cpu_s
    return _total(
        pd.Series({group: len(members) for group, members in groups.items() if len(members)}), cost
    )


def _published(cost: pd.DataFrame) -> float:
    """What a programme with all rows takes on average, infinite where none was run."""
    return float(cost.lp_cpu_s.mean()) if "lp_cpu_s" in cost else np.inf


def _cold_working_set(
    layer: SoftmaxLayer, t: int, limit: float, first: int = 256, more: int = 64
) -> None:
    """The sign of class t's best margin: nearest rivals, then the strongest, up to ``limit`` s."""
    problem, classes = make_problem(layer, Box(100.0)), np.array([t])
    own = layer.W[t].astype(np.float64)
    programme = MarginProgramme(*problem.box, time_limit=limit)
    distance = ((layer.W - layer.W[t]) ** 2).sum(axis=1)
    distance[t] = np.inf
    fresh = np.argpartition(distance, min(first, layer.classes - 1) - 1)[:first]
    while len(fresh):
        programme.add(fresh, own - layer.W[fresh], problem.b[t] - problem.b[fresh])
        try:
            z, value, _ = programme.solve()
        except SolverError:
            return  # out of time
        seen = look(problem, z[None], classes, strongest=more, enough=np.inf)
        if value <= 0 or seen.margin[0] > 0:
            return
        fresh = np.setdiff1d(seen.strongest[0], programme.rivals)


def _groups(table: pd.DataFrame) -> dict[str, np.ndarray]:
    method = np.where(table.verdict == "argmaxable", table.method, "open")
    return {
        group: table["class"].to_numpy()[method == group] for group in ("look", "ascent", "open")
    }


def _baseline(
    name: str, seed: int, layer: SoftmaxLayer, table: pd.DataFrame, programmes: _Programmes
) -> pd.DataFrame:
    """CPU seconds of the paper's pipeline on a sample of each group.

    Braid Reflect can also lose a class that our scan cleared: its programme is counted at the mean
    of those that were run.
    """
    rng = np.random.default_rng(seed)
    W, b = layer.W, layer.bias
    rows = []
    for group, members in _groups(table).items():
        size = LONG_PROGRAMMES.get(name, SAMPLE[group]) if group == "open" else SAMPLE[group]
        for t in rng.choice(members, min(size, len(members)), replace=False).tolist():
            cpu, _, (won, steps) = _timed(lambda t=t: _reflect_one(W, b, t))
            row = {
                "layer": name,
                "seed": seed,
                "class": t,
                "group": group,
                "steps": steps,
                "reflect_cpu_s": cpu,
            }
            rows.append(
                row | {"won": won} | (programmes.solve(name, layer, t) if group == "open" else {})
            )
    frame = pd.DataFrame(rows)
    programme = frame.get("lp_cpu_s", pd.Series(np.nan, frame.index))
    unmeasured = programme.mean() if programme.notna().any() else 0.0
    return frame.assign(
        cpu_s=frame.reflect_cpu_s + programme.fillna(unmeasured).where(~frame.won, 0.0)
    )


def _reflect_one(W: np.ndarray, b: np.ndarray, t: int) -> tuple[bool, int]:
    """Algorithm 2 for one class, a matrix-vector product a reflection, as in the authors' code."""
    x = W[t].copy()
    for step in range(PATIENCE):
        best = int((W @ x + b).argmax())
        if best == t:
            return bool(np.abs(x).max() <= 100), step
        x = reflect_step(x[None], W[t][None], W[best][None], b[[t]], b[[best]])[0]
    return False, PATIENCE


class _Programmes:
    """The Chebyshev programme with all rows, by HiGHS's faster solver on the first class."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.faster: dict[str, str] = {}

    def solve(self, name: str, layer: SoftmaxLayer, t: int) -> dict[str, Any]:
        """CPU seconds of the programme of class t as columns of the sample's table."""
        if name in self.faster:
            method = self.faster[name]
            cpu, _, outcome = self._run(layer, t, method, self.limit)
            return {f"{method}_cpu_s": cpu, f"{method}_outcome": outcome, "lp_cpu_s": cpu}
        inner, wall, radius = self._run(layer, t, "ipm", self.limit)
        simplex, _, other = self._run(layer, t, "simplex", wall)
        self.faster[name] = "simplex" if isinstance(other, float) and simplex < inner else "ipm"
        return {
            "ipm_cpu_s": inner,
            "ipm_outcome": radius,
            "simplex_cpu_s": simplex,
            "simplex_outcome": other,
            "lp_cpu_s": simplex if self.faster[name] == "simplex" else inner,
        }

    @staticmethod
    def _run(
        layer: SoftmaxLayer, t: int, method: str, limit: float
    ) -> tuple[float, float, float | str]:
        low, high = Box(100.0).bounds(layer.dimension)

        def radius() -> float | str:
            try:
                return chebyshev_radius(
                    layer.W, layer.b, t, low, high, method=method, time_limit=limit
                )[0]
            except SolverError as error:
                return str(error)

        return _timed(radius)


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
import resource, sys
import numpy as np
from softgeom.bottleneck import scan
from softgeom.layer import SoftmaxLayer
rng = np.random.default_rng(0)
W = np.empty(({classes}, {features}), np.{dtype})
for i in range(0, len(W), 4096):
    W[i : i + 4096] = rng.standard_normal((len(W[i : i + 4096]), {features}), dtype=np.float32)
found = scan(SoftmaxLayer(W), np.linspace(0, {classes} - 1, {scanned}).astype(int))
assert found.verify() and found.counts["undecided"] == 0, found.counts
try:  # what getrusage tells may be what the parent held when it started this process
    lines = open("/proc/self/status")
    peak = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
except OSError:
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
print(peak / 1e9)
"""


def _write_memory() -> None:
    """Peak memory of whole processes: interpreter, layer, scan and verification.

    Raises
    ------
    RuntimeError
        If one needs more than its limit.
    """
    cases = [
        {
            "classes": 30_522,
            "features": 384,
            "dtype": "float32",
            "scanned": 30_522,
            "limit_gb": 1.0,
        },
        {"classes": 128_256, "features": 4_096, "dtype": "float16", "scanned": 64, "limit_gb": 6.0},
    ]
    rows = []
    for case in cases:
        done = subprocess.run(
            [sys.executable, "-c", MEMORY.format(**case)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        rows.append(case | {"peak_gb": float(done.stdout)})
        print(json.dumps(rows[-1]), flush=True)
    table = pd.DataFrame(rows)
    table.to_csv(OUT / "scan_memory.csv", index=False)
    if (table.peak_gb > table.limit_gb).any():
        raise RuntimeError(
            "a scan needs more memory than its limit: see results/bench/scan_memory.csv"
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--layers", nargs="*", default=["ocr", "easy", "hard"], choices=["ocr", "easy", "hard"]
    )
    parser.add_argument(
        "--seeds",
        nargs="*",
        type=int,
        default=[0, 1, 2],
        help="of the hard layer; the others have one",
    )
    parser.add_argument("--lp-seconds", type=float, default=600.0)
    parser.add_argument(
        "--quick", action="store_true", help="an eighth of each size, and no memory"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
