"""False verdicts per million: scans of layers made to deceive against enumeration.

    python benchmarks/oracle.py --seconds 3000 --seed 1 --out results/bench/oracle.csv

Layers have 12 classes or fewer and at most four features (tests/oracles/tiny_layers.py); of every
hundred five or six are padded with classes that cannot win, up to 65 to 400 of them
(wide_layers.py), so that half of all classes stand in layers that go down every route; one in two
hundred has up to 60 classes and 12 features, where enumeration cannot follow: there only what stays
undecided is counted. Every scan is verified. A row per feature set, family, dtype and scale is
added to the table, or its counts are raised, so that runs with other seeds add up. A second table,
beside it, counts how often each route gave a verdict and each branch of the checkers was taken.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "oracles"))

from enumeration import Truth
from tiny_layers import FAMILIES, FEATURE_SETS, TinyLayer, tiny_layer
from wide_layers import padded

from softgeom.certifying import checker, hull, kernel, slack
from softgeom.certifying.verdict import EvidenceError, Finding
from softgeom.layer import SoftmaxLayer
from softgeom.scan_result import Scan
from softgeom.scanner import scan

KEYS = ["feature_set", "family", "dtype", "scale"]
VERDICTS = ["undecided", "tied", "unargmaxable"]
COUNTS = ["layers", "classes", "false_verdicts", "false_margins", "unverified", *VERDICTS]
COUNTS += ["exact_evidence"]
SHARES = (0.5, 0.15, 0.1, 0.15, 0.1)  # of the families
LARGER = 0.005
WIDE = 0.055
# What decides, by the place where it stands: calls of these are counted
BRANCHES = (
    (checker.Checker, "_margins"),
    (checker.Checker, "_exact_lead"),
    (hull._System, "slack_bound"),
    (hull._System, "simplex_bound"),
    (hull, "exact_comparisons"),
    (hull, "prove_comparisons"),
    (slack, "slack_bounds"),
    (kernel, "verify_findings"),
)


def count_calls(reached: Counter[str]) -> None:
    """Count every call of the checkers' branches."""

    def counted(name, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            reached[name] += 1
            return function(*args, **kwargs)

        return call

    for owner, name in BRANCHES:
        where = owner.__name__.removeprefix("softgeom.certifying.").lstrip("_")
        setattr(owner, name, counted(f"{where}.{name.lstrip('_')}", getattr(owner, name)))


def try_layer(
    rng: np.random.Generator, reached: Counter[str]
) -> tuple[tuple[str, ...], dict[str, float]]:
    """Scan one layer, verify it, and compare every verdict and, over a box, every margin."""
    feature_set, family = str(rng.choice(FEATURE_SETS)), str(rng.choice(FAMILIES, p=SHARES))
    larger = rng.random() < LARGER
    size = {}
    if larger:
        size = {"classes": int(rng.integers(13, 61)), "dimension": int(rng.integers(5, 13))}
    tiny = tiny_layer(rng, feature_set, "integers" if larger else family, **size)
    wide = None
    if not larger and rng.random() < WIDE:
        wide = padded(rng, tiny, int(rng.integers(65, 401)))
    layer: SoftmaxLayer = tiny.layer if wide is None else wide.layer
    started = time.process_time()
    unverified = False
    try:
        found = scan(layer, features=tiny.features)
        unverified = not found.verify()
    except EvidenceError as error:  # of such a layer nothing else is counted
        print("UNVERIFIED", error)
        unverified, found = True, Scan(layer, tiny.features, [])
    seconds = time.process_time() - started
    width = "65 classes and more" if wide else "up to 60 classes"
    reached.update(f"{width}: {f.method}, {f.evidence.verdict}" for f in found.findings)
    false_verdicts = false_margins = 0
    truths: list[Truth] = [] if larger else tiny.truths() if wide is None else wide.truths()
    for finding, truth in zip(found.findings, truths, strict=False):
        wrong = finding.evidence.verdict not in (truth.verdict, "undecided")
        # a class that joined is behind by less than those that hem it in
        known = truth.margin is not None and (wide is None or truth.verdict == "argmaxable")
        beyond = not wrong and known and _claims_too_much(finding, truth.margin, tiny)
        false_verdicts, false_margins = false_verdicts + wrong, false_margins + beyond
        if wrong or beyond:
            print("FALSE", finding, truth)
    exact = sum(
        getattr(f.evidence, name, np.zeros(0)).dtype == object
        for f in found.findings
        for name in ("point", "weights")
    )
    counts = found.counts
    false = (false_verdicts, false_margins, unverified)
    values = [1, len(found), *false, *(counts[name] for name in VERDICTS), exact, seconds]
    if false_verdicts or false_margins or unverified or counts["undecided"]:
        print("LOOK AT", family, layer.W.tolist(), layer.bias.tolist(), tiny.features, flush=True)
    kind = "larger" if larger else family if wide is None else f"wide, {family}"
    key = (feature_set, kind, tiny.dtype, tiny.scale)
    return key, dict(zip([*COUNTS, "seconds"], values, strict=True))


def _claims_too_much(finding: Finding, best: Fraction, tiny: TinyLayer) -> bool:
    """Whether a witness's margin is above the best one, or an upper bound below it."""
    # that only claims a sign
    if finding.evidence.verdict == "undecided" or abs(finding.margin) <= 5e-324:
        return False
    claimed, best = Fraction(finding.margin), best * Fraction(2) ** tiny.margins
    return claimed > best if finding.evidence.verdict == "argmaxable" else claimed < best


def main() -> None:
    """Try layers until the time is over and add what was counted to the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/bench/oracle.csv"))
    options = parser.parse_args()
    rng, deadline = np.random.default_rng(options.seed), time.monotonic() + options.seconds
    totals: dict[tuple[str, ...], dict[str, float]] = {}
    reached: Counter[str] = Counter()
    routes = options.out.with_name(f"{options.out.stem}_reached.csv")
    if routes.is_file():
        reached.update(dict(pd.read_csv(routes).itertuples(index=False, name=None)))
    count_calls(reached)
    if options.out.is_file():
        for row in pd.read_csv(options.out).to_dict("records"):
            totals[tuple(row.pop(name) for name in KEYS)] = row
    options.out.parent.mkdir(parents=True, exist_ok=True)
    while time.monotonic() < deadline:
        for _ in range(200):
            key, counted = try_layer(rng, reached)
            total = totals.setdefault(key, dict.fromkeys(counted, 0))
            for name, value in counted.items():
                total[name] += value
        named = [dict(zip(KEYS, key, strict=True), **totals[key]) for key in sorted(totals)]
        table = pd.DataFrame(named).astype(dict.fromkeys(COUNTS, int)).round({"seconds": 1})
        table.to_csv(options.out, index=False)
        rows = pd.DataFrame(sorted(reached.items()), columns=["reached", "times"])
        rows.to_csv(routes, index=False)
    print(table.groupby("feature_set")[[*COUNTS, "seconds"]].sum().to_string())


if __name__ == "__main__":
    main()
