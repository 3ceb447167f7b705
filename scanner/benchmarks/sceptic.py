"""Real heads proven by the independent checker: every unargmaxable class, and a
sample of the winners, in exact arithmetic.

    python benchmarks/sceptic.py ppocr-v4
    python benchmarks/sceptic.py ppocr-v4 --features norm
    python benchmarks/sceptic.py l2_supercat_256.safetensors --name wordllama

Scans the model (finished blocks stay in --work), writes the folder of certificates, verifies it,
and runs tools/check_proofs.py. One row per head and feature set in results/bench/sceptic.csv, in
seconds of processor time. `norm` is what a LayerNorm without gain would leave: the ball of radius
sqrt(d), centred.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from softgeom.certifying.folder import EVIDENCE, verify_folder, write_folder
from softgeom.checkpoints import load_head
from softgeom.layer import Box, Ellipsoid, FeatureSet, SoftmaxLayer
from softgeom.results import write_layer
from softgeom.scanner import scan

ROOT = Path(__file__).resolve().parent.parent


def check(folder: Path, layer: SoftmaxLayer, *options: str) -> tuple[str, float]:
    """What the independent checker prints about a folder, and its processor time."""
    write_layer(folder / "layer.safetensors", layer)
    files = (folder / EVIDENCE, folder / "layer.safetensors")
    command = [sys.executable, "-I", "scanner/tools/check_proofs.py", *files, *options]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if told.returncode:
        raise SystemExit(f"the checker does not agree: {told.stdout}{told.stderr}")
    return told.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(
    head: str, name: str, features: FeatureSet, layer: SoftmaxLayer, work: Path, sample: int
) -> dict[str, object]:
    """Scan, verify, check."""
    started = time.process_time()
    found = scan(layer, features=features, checkpoint=work / "blocks", progress=True)
    scanned = time.process_time()
    write_folder(work, found, {"model": head})
    verifying = time.process_time()
    verify_folder(work, layer)
    verified = time.process_time()
    unargmaxable, unargmaxable_seconds = check(work, layer, "--only", "unargmaxable")
    winners, winners_seconds = check(work, layer, "--only", "argmaxable", "--sample", str(sample))
    ways = dict(re.findall(r"'(\w+)': (\d+)", unargmaxable + winners))
    row: dict[str, object] = {"head": name, "feature_set": features.describe()}
    row |= {"classes": layer.classes, "features": layer.dimension, **found.counts}
    row |= {f"proven_by_{way}": int(ways.get(way, 0)) for way in ("room", "simplex")}
    seconds = {"scan": scanned - started, "verify": verified - verifying}
    seconds |= {"unargmaxable": unargmaxable_seconds, "witnesses": winners_seconds}
    row["witnesses_checked"] = int(ways.get("witness", 0))
    row |= {f"{what}_seconds": round(took, 1) for what, took in seconds.items()}
    return row | {"evidence_megabytes": round((work / EVIDENCE).stat().st_size / 1e6, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="as softgeom scan takes it")
    parser.add_argument("--name", help="in the table (default: the model)")
    parser.add_argument("--features", choices=["box", "norm"], default="box")
    parser.add_argument("--sample", type=int, default=50, help="winners to check")
    parser.add_argument(
        "--work", type=Path, help="folder for blocks and certificates (default: a temporary one)"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "results/bench/sceptic.csv")
    options = parser.parse_args()
    layer = load_head(options.model).layer
    d = layer.dimension
    features = Box(100.0) if options.features == "box" else Ellipsoid(np.ones(d), centred=True)
    name = options.name or options.model
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        row = measure(options.model, name, features, layer, work, options.sample)
    rows = pd.DataFrame([row])
    if options.out.is_file():
        old = pd.read_csv(options.out)
        same = (old["head"] == name) & (old["feature_set"] == row["feature_set"])
        rows = pd.concat([old[~same], rows])
    options.out.parent.mkdir(parents=True, exist_ok=True)
    rows.sort_values(["head", "feature_set"]).to_csv(options.out, index=False)
    print(pd.Series(row).to_string())


if __name__ == "__main__":
    main()
