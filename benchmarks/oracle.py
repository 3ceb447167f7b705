"""False verdicts per million: scans of tiny integer layers against enumeration, and near ties against fractions.

    python benchmarks/oracle.py --seconds 3000 --out results/bench/oracle.csv

Layers have 2 to 12 classes (mostly 12) and 1 to 4 features with entries from -2 to 2, a third of them with an exact midpoint; every feature set,
three dtypes, scales from 2^-500 to 2^480. One row per feature set is added to the table, or its counts are raised, so that runs add up.
"""

from __future__ import annotations

import argparse
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd

from softgeom.bottleneck.proving.enumeration import enumerate_verdict
from softgeom.bottleneck.scanner import scan
from softgeom.features import Ball, Box, Ellipsoid, FeatureSet, Unbounded
from softgeom.layer import SoftmaxLayer

KINDS = ("box", "lopsided box", "ball", "unbounded", "RMSNorm", "LayerNorm")
COUNTS = ["layers", "classes", "false_verdicts", "undecided", "tied", "unargmaxable", "exact_evidence", "seconds"]
POWERS_OF_ROWS, POWERS_OF_POINTS = (0, 0, 0, 0, -60, 70, -500, 480), (0, 0, 0, 0, -50, 90, -400, 400)


def tiny_layer(rng: np.random.Generator, kind: str) -> tuple[np.ndarray, np.ndarray, bool]:
    """Integer rows (C, d), biases (C,), and whether there is a bias at all."""
    classes, d = int(rng.integers(2, 13)) if rng.random() < 0.2 else 12, int(rng.choice([1, 2, 2, 3, 3, 3, 4]))
    if "box" in kind and d == 4:
        classes = min(classes, 7)  # enumeration of a box in four dimensions takes a second from eight classes on
    biased = bool(rng.random() < 0.6)
    W = rng.integers(-2, 3, (classes, d))
    b = rng.integers(-2, 3, classes) if biased else np.zeros(classes, np.int64)
    if classes > 3 and rng.random() < 1 / 3:
        W[0], W[1], W[2] = 2 * W[0], 2 * W[1], W[0] + W[1]
        b[2] = min(b[2], (b[0] + b[1]) // 2)
    return W, b, biased


def tiny_problem(rng: np.random.Generator, kind: str, W: np.ndarray, b: np.ndarray) -> tuple[FeatureSet, tuple]:
    """A feature set, and the same problem for the oracle: effective integer rows, biases, region."""
    d = W.shape[1]
    if kind == "unbounded":
        return Unbounded(), (W, b, ("unbounded",))
    if kind == "box":
        return Box(1.0), (W, b, ("box", -np.ones(d, np.int64), np.ones(d, np.int64)))
    if kind == "lopsided box":
        low, high = -rng.integers(0, 2, d), rng.integers(1, 3, d)
        return Box(tuple(high.tolist()), low=tuple(low.tolist())), (W, b, ("box", low, high))
    radius = int(rng.integers(1, 4))
    region = ("ball", Fraction(radius**2))
    if kind == "ball":
        return Ball(radius), (W, b, region)
    gain, shift, centred = rng.integers(0, 3, d), rng.integers(-1, 2, d), kind == "LayerNorm"
    rows, factor = W * gain, d if centred else 1  # logits times d: verdicts stay
    rows = rows * d - rows.sum(axis=1, keepdims=True) if centred else rows
    return Ellipsoid(gain, shift, radius=radius, centred=centred), (rows, factor * (b + W @ shift), region)


def try_layer(rng: np.random.Generator, kind: str) -> dict[str, float]:
    """Scan one layer, verify it, and compare every verdict."""
    W, b, biased = tiny_layer(rng, kind)
    features, (rows, shift, region) = tiny_problem(rng, kind, W, b)
    p, q = int(rng.choice(POWERS_OF_ROWS)), int(rng.choice(POWERS_OF_POINTS))
    scaled, bias = np.ldexp(W.astype(float), p), np.ldexp(b.astype(float), p + q)
    if not p and not q:
        dtype = rng.choice(["float16", "float32", "float64"])
        scaled, bias = scaled.astype(dtype), bias.astype(dtype)
    started = time.perf_counter()
    found = scan(SoftmaxLayer(scaled, bias if biased else None), features=features.scaled(-q))
    found.verify()
    seconds = time.perf_counter() - started
    false = 0
    for t, f in enumerate(found.findings):
        truth = enumerate_verdict(rows, shift, t, region)
        if f.evidence.verdict not in (truth, "undecided"):
            false += 1
            print("FALSE", kind, t, truth, f.evidence.verdict, W.tolist(), b.tolist(), features, p, q, flush=True)
    exact = sum(
        getattr(f.evidence, name, np.zeros(0)).dtype == object for f in found.findings for name in ("point", "weights")
    )
    counts = found.counts
    values = [1, len(W), false, counts["undecided"], counts["tied"], counts["unargmaxable"], exact, seconds]
    return dict(zip(COUNTS, values, strict=True))


def main() -> None:
    """Try layers until the time is over and add what was counted to the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/bench/oracle.csv"))
    options = parser.parse_args()
    rng, deadline = np.random.default_rng(options.seed), time.monotonic() + options.seconds
    totals = {kind: dict.fromkeys(COUNTS, 0.0) for kind in KINDS}
    if options.out.is_file():
        for row in pd.read_csv(options.out).to_dict("records"):
            totals[row.pop("feature_set")] = row
    while time.monotonic() < deadline:
        for _ in range(200):
            kind = KINDS[rng.integers(len(KINDS))]
            for name, value in try_layer(rng, kind).items():
                totals[kind][name] += value
        table = pd.DataFrame([{"feature_set": kind, **totals[kind]} for kind in KINDS])
        options.out.parent.mkdir(parents=True, exist_ok=True)
        table.astype(dict.fromkeys(COUNTS[:-1], int)).round({"seconds": 1}).to_csv(options.out, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
