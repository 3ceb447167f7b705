"""Ceilings of whole heads: what they cost beside the scan, and how tight they are.

    python benchmarks/ceilings.py ppocr-v4 ppocr-v6

A row a head in results/bench/ceilings.csv: CPU seconds of scan and ceilings of one process and one
thread, the share of classes whose ceiling is within 5% of what their point reaches, and how many
outputs can reach one half, never do, or are in doubt. In results/bench/ceilings_of_letters.csv the
ceilings of some letters of the last head, also with no bound on the features at all, rounded up.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import pandas as pd
from threadpoolctl import threadpool_limits

from softgeom.bottleneck import scan
from softgeom.bottleneck.ceilings import ceilings
from softgeom.bottleneck.verdict_table import down, up
from softgeom.checkpoints import load_head
from softgeom.layer import Box, Unbounded

OUT = Path(__file__).parents[1] / "results" / "bench"
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
    box, free = (ceilings(layer, asked, features=f) for f in (Box(100.0), Unbounded()))
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


def main() -> None:
    """Measure the heads that are named and write both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("heads", nargs="+")
    names = parser.parse_args().heads
    with threadpool_limits(1):
        table = pd.DataFrame([measure(name) for name in names])
        table.to_csv(OUT / "ceilings.csv", index=False)
        letters(names[-1]).to_csv(OUT / "ceilings_of_letters.csv", index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
