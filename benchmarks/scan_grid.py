"""A whole scan over a grid of layers: classes, features, few and many captives, and heads that are
in production.

    python benchmarks/scan_grid.py [--classes 2000 8000 32000] [--features 64 128 256 512] [--real
    ppocr-v4 ...] [--no-grid] [--missing]

Each cell runs in a process of its own, on one thread, and is measured against its own floor: one `W
@ W.T` in float32 with row maxima, taken before and after the scan (a busy machine distorts seconds
more than ratios; `floor_spread` is how far apart the two are). `grid` cells are layers of
`hard_layer`: "few" plants 1% of captives, "many" 25%. Rows of earlier runs stay unless their cell
is run again; after each cell the table is written, so that a run that was stopped loses nothing,
and `--missing` goes on with what is not there yet. Columns: CPU seconds of floor, scan and
verification, their ratio to the floor, what a proof costs beyond four floors in milliseconds, and
the BLAS kernel (this class of machine may pin an old one, which shifts ratios).

Writes results/bench/scan_grid.csv and figures/bench/scan_grid.png.
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

from softgeom.bottleneck import Scan, scan
from softgeom.bottleneck.examples import hard_layer
from softgeom.layer import SoftmaxLayer

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "results" / "bench" / "scan_grid.csv"
FIGURE = ROOT / "figures" / "bench" / "scan_grid.png"
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
        done = subprocess.run(
            [sys.executable, __file__, "--cell", *cell], stdout=subprocess.PIPE, text=True
        )
        if done.returncode:
            print(f"{' '.join(cell)}: failed, left out", flush=True)
            continue
        row = json.loads(done.stdout.splitlines()[-1])
        known[row["layer"]] = row
        print(
            f"{row['layer']}: {row['over_floor']:.1f} floors, {row['unargmaxable']} captives",
            flush=True,
        )
        TABLE.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(list(known.values())).to_csv(
            TABLE, index=False, lineterminator="\n", float_format="%.4g"
        )
    draw(pd.read_csv(TABLE))


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
    return {
        "layer": _name(kind, classes, features),
        "kind": kind,
        "classes": layer.classes,
        "features": layer.dimension,
        **found.counts,
        "floor_cpu_s": floor,
        "floor_spread": abs(before - after) / floor,
        "scan_cpu_s": cost,
        "verify_cpu_s": check,
        "over_floor": (cost + check) / floor,
        "reached": _reached(layer, found, floor, cost + check),
        "ms_per_proof": 1e3 * max(0.0, cost + check - FLOORS * floor) / proofs if proofs else 0.0,
        "blas": ", ".join(
            sorted({str(pool.get("architecture", "?")) for pool in threadpool_info()})
        ),
    }


def draw(table: pd.DataFrame) -> None:
    """Ratio to the floor over classes and features, few and many captives, real heads beside."""
    from compendium import style

    style.use()
    fig, axes = style.figure("page", height=4.0, ncols=3, width_ratios=[1, 1, 1.1])
    for ax, kind in zip(axes, SHARE, strict=False):
        cells = table[table.kind == kind].pivot(
            index="features", columns="classes", values="over_floor"
        )
        reached = table[table.kind == kind].pivot(
            index="features", columns="classes", values="reached"
        )
        ax.imshow(np.log10(cells), cmap="YlOrRd", vmin=0, vmax=3, origin="lower", aspect="auto")
        for (row, column), ratio in np.ndenumerate(cells.to_numpy()):
            if np.isnan(ratio):
                continue  # not measured yet
            text = f"{ratio:.3g}" + ("" if reached.to_numpy()[row, column] else " ×")
            ax.text(
                column,
                row,
                text,
                ha="center",
                va="center",
                color="white" if ratio > 150 else "black",
            )
        ax.set_xticks(range(len(cells.columns)), [f"{c:,}" for c in cells.columns])
        ax.set_yticks(range(len(cells.index)), cells.index)
        ax.set(xlabel="classes", title=f"{kind} captives ({SHARE[kind]:.0%} planted)")
    axes[0].set_ylabel("features")
    real = table[~table.kind.isin(list(SHARE))]
    axes[2].barh(real.layer, real.over_floor, color=style.BLUE)
    for place, row in enumerate(real.itertuples()):
        proofs = f"{row.ms_per_proof:.1f} ms a proof" if row.unargmaxable else "no captives"
        text = f" {row.over_floor:,.0f}{'' if row.reached else ' ×'}\n {proofs}"
        axes[2].text(row.over_floor, place, text, va="center")
    axes[2].set(
        xlabel="scan and verification over one W Wᵀ",
        xlim=(0, 2.2 * real.over_floor.max() if len(real) else 1),
    )
    dear, missed = table.loc[table.over_floor.idxmax()], int((~table.reached).sum())
    style.headline(
        fig,
        f"A scan with all its proofs costs {table.over_floor.min():,.0f} to "
        f"{dear.over_floor:,.0f} products W Wᵀ, most where one takes "
        f"{1e3 * dear.floor_cpu_s:.2g} ms; {missed} of {len(table)} layers "
        f"cost{'s' * (missed == 1)} more than was aimed at (×)",
    )
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(FIGURE)


def _name(kind: str, classes: str, features: str) -> str:
    return f"{kind} {classes} x {features}" if kind in SHARE else kind


def _reached(layer: SoftmaxLayer, found: Scan, floor: float, cost: float) -> bool:
    """Whether a cell stays within what was aimed at: 4 floors (30 up to 128 features), and with
    many captives 0.3 s and 5 ms a proof more.
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--classes", nargs="*", type=int, default=[2_000, 8_000, 32_000])
    parser.add_argument("--features", nargs="*", type=int, default=[64, 128, 256, 512])
    parser.add_argument(
        "--real", nargs="*", default=list(REAL), help="released models, files, or folders"
    )
    parser.add_argument("--no-grid", action="store_true", help="the real heads alone")
    parser.add_argument(
        "--missing", action="store_true", help="only cells that the table does not have"
    )
    parser.add_argument("--cell", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
