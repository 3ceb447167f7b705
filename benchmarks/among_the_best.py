"""Captives among the k best: which outputs that never win are never second, third, fifth, tenth?

    python benchmarks/among_the_best.py ppocr-v4 --seconds 3600

Rows are appended to results/bench/among_the_best.csv, a captive and a k each, and a second call
goes on where the first was stopped: class, token, k, verdict, method, copies (captives whose row
and bias are the same to 0.1%: there the answer is trivial, for they lead or follow one another).
Each verdict is verified before it is written. Captives without copies are asked first. How many of
each verdict there are is counted in results/bench/among_the_best_counts.csv.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from softgeom.bottleneck import scan
from softgeom.bottleneck.asking import ask_experts
from softgeom.bottleneck.verdict_table import escape_token
from softgeom.checkpoints import load_head

OUT = Path(__file__).parents[1] / "results" / "bench" / "among_the_best.csv"
NEAR = 1e-3  # of the row's norm
MOST = 100  # programmes of one captive before it is left undecided


def main() -> None:
    """Ask what is not in the table yet, until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("head")
    parser.add_argument("--k", type=int, nargs="+", default=[2, 3, 5, 10])
    parser.add_argument("--seconds", type=float, default=3600.0)
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    done = pd.read_csv(OUT) if OUT.is_file() else pd.DataFrame(columns=["head", "class", "k"])
    asked = set(zip(done["head"], done["class"], done["k"], strict=True))
    with threadpool_limits(1):
        layer = load_head(options.head).layer
        found = scan(layer)
        held = found.table["class"][found.table["verdict"] == "unargmaxable"].to_numpy()
        rows = np.column_stack([layer.W[held], layer.bias[held]]).astype(float)
        near = NEAR * np.linalg.norm(rows, axis=1)
        copies = np.array([(np.linalg.norm(rows - r, axis=1) < near).sum() - 1 for r in rows])
        order = np.argsort(copies > 0, kind="stable")
        for k in options.k:
            for n in order.tolist():
                t = int(held[n])
                if (options.head, t, k) in asked or time.monotonic() > until:
                    continue
                router = ask_experts(layer, k, [t], features=found.features, most=MOST)
                router.verify()
                (answer,) = router.experts
                row = {
                    "head": options.head,
                    "class": t,
                    "token": escape_token(layer.token(t)),
                    "k": k,
                    "verdict": answer.verdict,
                    "method": answer.method,
                    "copies": int(copies[n]),
                }
                pd.DataFrame([row]).to_csv(OUT, mode="a", header=not OUT.is_file(), index=False)
    count(pd.read_csv(OUT))


def count(rows: pd.DataFrame) -> None:
    """A row a head and k, near copies apart: how many captives were asked, and with what answer."""
    rows["captives"] = np.where(rows["copies"] > 0, "near copies", "without a near copy")
    keys = [rows[name] for name in ("head", "k", "captives")]
    counts = pd.crosstab(keys, rows["verdict"])
    counts = counts.reindex(columns=["impossible", "possible", "undecided"], fill_value=0)
    counts.insert(0, "asked", counts.sum(axis=1))
    counts.reset_index().to_csv(OUT.with_stem(f"{OUT.stem}_counts"), index=False)


if __name__ == "__main__":
    main()
