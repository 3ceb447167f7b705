"""Ceilings of whole heads: what they cost beside the scan, and how tight they are.

    python benchmarks/ceilings.py ppocr-v4 ppocr-v6
    python benchmarks/ceilings.py --sample 200 ppocr-v4 g2pm

A row a head in results/bench/ceilings.csv: CPU seconds of scan and ceilings of one process and one
thread, the share of classes whose ceiling is within 5% of what their point reaches, and how many
outputs can reach one half, never do, or are in doubt. In results/bench/ceilings_of_letters.csv the
ceilings of some letters of the last head, also with no bound on the features at all, rounded up.
With ``--sample`` that many ceilings of each head are given to tools/check_ceilings.py instead, and
results/bench/ceilings_checked.csv says how many it proved in integers.
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
from threadpoolctl import threadpool_limits

from softgeom.bottleneck import scan
from softgeom.bottleneck.ceilings import ceilings
from softgeom.bottleneck.verdict_table import down, up
from softgeom.checkpoints import load_head
from softgeom.layer import Box, Unbounded

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results" / "bench"
LETTERS = "ĞŰŶĈŮĢŲĽ"  # of Turkish, Hungarian, Welsh, Esperanto, Czech, Latvian, Lithuanian, Slovak


def measure(name: str) -> dict[str, object]:
    """The row of a head."""
    layer = load_head(name).layer
    started = time.process_time()
    found = scan(layer)
    scanned = time.process_time() - started
    started = time.process_time()
    bounds = ceilings(layer)
    bounded = time.process_time() - started
    counts = bounds.counts(0.5)
    return {
        "head": name,
        "classes": layer.classes,
        "unargmaxable": found.counts["unargmaxable"],
        "reach_half": counts["reach"],
        "never_half": counts["never"],
        "in_doubt": counts["in doubt"],
        "within_5_percent": round(float((bounds.ceiling <= 1.05 * bounds.reached).mean()), 4),
        "scan_seconds": round(scanned, 1),
        "ceiling_seconds": round(bounded, 1),
        "ratio": round(bounded / scanned, 2),
    }


def letters(name: str) -> pd.DataFrame:
    """Ceilings of letters in the box of 100 and without a bound, rounded up to three digits."""
    layer = load_head(name).layer
    assert layer.tokens is not None
    asked = sorted(layer.tokens.index(letter) for letter in LETTERS)
    # sharpened: a bound on fewer features is no larger than one on all
    box = ceilings(layer, asked, features=Box(100.0)).sharpened(asked)
    free = ceilings(layer, asked, features=Unbounded())
    rows = zip(asked, box.ceiling, free.ceiling, free.reached, strict=True)
    return pd.DataFrame(
        [
            {
                "letter": layer.token(t),
                "ceiling_to_100": f"{up(100 * a)}%",
                "ceiling_unbounded": f"{up(100 * b)}%",
                "reached_unbounded": f"{down(100 * c)}%",
            }
            for t, a, b, c in rows
        ]
    )


def check(name: str, sample: int) -> dict[str, object]:
    """The row of a head whose ceilings the checker proves; SystemExit if it does not."""
    layer = load_head(name).layer
    with tempfile.TemporaryDirectory() as folder:
        stored, weights = Path(folder, "ceilings.npz"), Path(folder, "layer.npz")
        ceilings(layer).save(stored)
        np.savez(weights, W=layer.W, b=layer.bias)
        tool = [sys.executable, ROOT / "tools" / "check_ceilings.py", stored, weights]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        command = [*map(str, tool), "--sample", str(sample), "--seed", "7"]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    if told.returncode:
        raise SystemExit(f"the checker does not agree: {told.stdout}{told.stderr}")
    proven = re.search(r"proven: (\d+)", told.stdout)
    assert proven is not None
    counts = {"classes": layer.classes, "looked_at": sample, "proven": int(proven[1])}
    return {"head": name, **counts, "checker_seconds": round(seconds, 1)}


def main() -> None:
    """Measure, or check, the heads that are named and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("heads", nargs="+")
    parser.add_argument("--sample", type=int, help="ceilings to check, of each head")
    options = parser.parse_args()
    names = options.heads
    if options.sample:
        table = pd.DataFrame([check(name, options.sample) for name in names])
        table.to_csv(OUT / "ceilings_checked.csv", index=False)
        print(table.to_string(index=False))
        return
    with threadpool_limits(1):
        table = pd.DataFrame([measure(name) for name in names])
        table.to_csv(OUT / "ceilings.csv", index=False)
        letters(names[-1]).to_csv(OUT / "ceilings_of_letters.csv", index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
