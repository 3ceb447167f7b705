"""What verifying costs, against another version of the library: each scans a head and verifies its
own evidence.

    git worktree add build/before COMMIT
    python benchmarks/verifying.py ppocr-v4 --before build/before/lib

Processor time of `Scan.verify`, least of fifteen, the versions in turn each time, over the box of
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
print(json.dumps(found.counts["unargmaxable"]), flush=True)
for _ in sys.stdin:
    started = time.process_time()
    assert found.verify()
    print(json.dumps(time.process_time() - started), flush=True)
"""


class Version:
    """A process that scans a head with the library in a folder, and verifies when it is asked."""

    def __init__(self, library: Path, head: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(library.resolve())}
        self._process = subprocess.Popen(
            [sys.executable, "-c", MEASURE, str(head)],
            env=environment, cwd=head.parent, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.unargmaxable = int(self._answer())

    def seconds(self) -> float:
        """What verifying all verdicts takes, once."""
        assert self._process.stdin
        print(file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> float:
        assert self._process.stdout
        return float(json.loads(self._process.stdout.readline()))

    def end(self) -> None:
        """Let the process end."""
        self._process.communicate()


def measure(libraries: list[Path], head: Path) -> tuple[int, list[float]]:
    """Unargmaxable classes, and seconds to verify all verdicts with each library."""
    versions = [Version(library, head) for library in libraries]
    found = {version.unargmaxable for version in versions}
    if len(found) > 1:
        raise SystemExit(f"the versions disagree: {sorted(found)} unargmaxable")
    turns = [[version.seconds() for version in versions] for _ in range(15)]
    for version in versions:
        version.end()
    return found.pop(), [min(each) for each in zip(*turns, strict=True)]


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
            unargmaxable, (before, now) = measure([options.before, ROOT / "lib"], head)
            rows.append(
                (
                    name,
                    layer.classes,
                    layer.dimension,
                    unargmaxable,
                    round(before, 3),
                    round(now, 3),
                    round(now / before, 2),
                )
            )
    names = [
        "head",
        "classes",
        "features",
        "unargmaxable",
        "seconds_before",
        "seconds_now",
        "ratio",
    ]
    table = pd.DataFrame(rows, columns=names)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.out, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
