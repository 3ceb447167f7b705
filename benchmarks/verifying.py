"""What verifying costs, against another version of the library: each scans a head and verifies its
own evidence.

    git worktree add build/before COMMIT
    python benchmarks/verifying.py ppocr-v4 --before build/before/lib

Processor time of `Scan.verify`, least of fifteen, the versions in turn three times, over the box of
the paper; the head as it is, and without its bias, where proofs have no room. A row per head in
results/bench/verifying.csv.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from softgeom.checkpoints import load_head

ROOT = Path(__file__).resolve().parent.parent
MEASURE = """
import json, sys, time
import numpy as np
from softgeom.layer import Box, SoftmaxLayer
try:
    from softgeom.bottleneck.scanner import scan
except ImportError:
    from softgeom.bottleneck.scan import scan
arrays = np.load(sys.argv[1])
layer = SoftmaxLayer(arrays["W"], arrays["b"] if "b" in arrays.files else None)
found = scan(layer, features=Box(100.0))
seconds = []
for _ in range(5):
    started = time.process_time()
    assert found.verify()
    seconds.append(time.process_time() - started)
print(json.dumps([found.counts["unargmaxable"], min(seconds)]))
"""


def measure(library: Path, head: Path) -> tuple[int, float]:
    """Captives, and seconds to verify all verdicts, with the library in that folder."""
    environment = {**os.environ, "PYTHONPATH": str(library.resolve())}
    command = [sys.executable, "-c", MEASURE, str(head)]
    told = subprocess.run(
        command, env=environment, cwd=head.parent, stdout=subprocess.PIPE, check=True
    )
    captives, seconds = json.loads(told.stdout)
    return captives, seconds


def main() -> None:
    """Measure both versions in turn on both heads."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="as softgeom scan takes it; a head with a bias")
    parser.add_argument("--before", type=Path, required=True, help="the other version's lib folder")
    parser.add_argument("--out", type=Path, default=ROOT / "results/bench/verifying.csv")
    options = parser.parse_args()
    layer, rows = load_head(options.model).layer, []
    with tempfile.TemporaryDirectory() as folder:
        head = Path(folder) / "head.npz"
        for name, arrays in (
            (options.model, {"W": layer.W, "b": layer.bias}),
            (f"{options.model}, no bias", {"W": layer.W}),
        ):
            np.savez(head, **arrays)
            libraries = (options.before, ROOT / "lib")
            rounds = [[measure(library, head) for library in libraries] for _ in range(3)]
            if len(found := {captives for pair in rounds for captives, _ in pair}) > 1:
                raise SystemExit(f"the versions disagree on {name}: {sorted(found)} captives")
            before, now = (
                min(seconds for _, seconds in each) for each in zip(*rounds, strict=True)
            )
            rows.append(
                (
                    name,
                    layer.classes,
                    layer.dimension,
                    found.pop(),
                    round(before, 3),
                    round(now, 3),
                    round(now / before, 2),
                )
            )
    names = ["head", "classes", "features", "captives", "seconds_before", "seconds_now", "ratio"]
    table = pd.DataFrame(rows, columns=names)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.out, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
