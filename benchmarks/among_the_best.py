"""Lost outputs among the k best: which that never win are never second, third, fifth, tenth?

    python benchmarks/among_the_best.py ppocr-v4 --seconds 3600

Rows are appended to results/bench/among_the_best.csv, an output and a k each, and a second call
goes on where the first was stopped: class, token, k, verdict, method, copies (others whose row
and bias are the same to 0.1%: there the answer is trivial, for they lead or follow one another).
An output is asked for the largest k first and then for the smaller ones: what blocks it from the
ten best may keep it out of the three best, and who can be third can be fifth, at the same point.
Each verdict is verified before it is written, for each k. One output and one k take at most
`CAP` CPU seconds (fixed before any was asked for the ten best), and are undecided then. Outputs
without copies are asked first. How many of each verdict there are is counted in
results/bench/among_the_best_counts.csv.
"""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from softgeom.bottleneck import scan
from softgeom.bottleneck.asking import ask_experts
from softgeom.bottleneck.asking.experts import Chosen
from softgeom.bottleneck.certifying.verdict import EvidenceError
from softgeom.bottleneck.verdict_table import escape_token
from softgeom.checkpoints import load_head

OUT = Path(__file__).parents[1] / "results" / "bench" / "among_the_best.csv"
NEAR = 1e-3  # of the row's norm
CAP = 5.0  # CPU seconds of one output and one k
# programmes for the largest k: few, since the blocking sets that they find decide smaller k too
MOST, MANY = 12, 2000


class CapError(BaseException):
    """The CPU seconds of one question are used up. No fault, which `ask` would take for its own."""


def main() -> None:
    """Ask what is not in the table yet, until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("head")
    parser.add_argument("--k", type=int, nargs="+", default=[2, 3, 5, 10])
    parser.add_argument("--seconds", type=float, default=3600.0)
    told = "ask for the largest k alone, and write what its evidence tells of the others"
    parser.add_argument("--largest", action="store_true", help=told)
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    done = pd.read_csv(OUT) if OUT.is_file() else pd.DataFrame(columns=["head", "class", "k"])
    asked = set(zip(done["head"], done["class"], done["k"], strict=True))
    signal.signal(signal.SIGPROF, _stop)
    with threadpool_limits(1):
        layer = load_head(options.head).layer
        found = scan(layer)
        unargmaxable = found.table["class"][found.table["verdict"] == "unargmaxable"].to_numpy()
        rows = np.column_stack([layer.W[unargmaxable], layer.bias[unargmaxable]]).astype(float)
        near = NEAR * np.linalg.norm(rows, axis=1)
        copies = np.array([(np.linalg.norm(rows - r, axis=1) < near).sum() - 1 for r in rows])
        for n in np.argsort(copies > 0, kind="stable").tolist():
            t = int(unargmaxable[n])
            left = [k for k in options.k if (options.head, t, k) not in asked]
            left = [] if options.largest and max(options.k) not in left else left
            if not left or time.monotonic() > until:
                continue
            about = {"head": options.head, "class": t, "token": escape_token(layer.token(t))}
            several = [max(left), *([] if options.largest else sorted(left))]
            answers = decide(layer, found.features, t, left, several)
            table = pd.DataFrame(
                [
                    {**about, "k": k, **answer, "copies": int(copies[n])}
                    for k, answer in sorted(answers.items())
                ]
            )
            table.to_csv(OUT, mode="a", header=not OUT.is_file(), index=False)
            print(table.to_csv(index=False, header=False), end="", flush=True)
    count(pd.read_csv(OUT))


def decide(
    layer: Any, features: Any, t: int, several: list[int], asked: list[int]
) -> dict[int, dict[str, str]]:
    """Verdict and method of output t for several k, as far as questions about those that are asked
    tell, each verified or undecided.
    """
    answers: dict[int, dict[str, str]] = {}
    for k in asked:
        if k in answers:
            continue
        most = MANY if k < asked[0] or len(several) == 1 else MOST
        told = {}
        try:
            with _capped(CAP):
                (found,) = ask_experts(layer, k, [t], features=features, most=most).experts
                told = {other: _about(layer, features, found, other) for other in several}
        except CapError:
            found = Chosen(t, k, "undecided", [], "capped")
        for other, answer in told.items():
            if answer is not None and other not in answers:
                answers[other] = {"verdict": answer.verdict, "method": answer.method}
        answers.setdefault(k, {"verdict": "undecided", "method": found.method})
    return answers


def _about(layer: Any, features: Any, found: Chosen, k: int) -> Chosen | None:
    """What the evidence that was found for one k proves for another, if it proves anything."""
    verdict = "possible" if found.verdict == "possible" else "impossible"
    told = replace(found, k=k, verdict=verdict)
    try:
        return told if found.answers and told.check(layer, features) else None
    except EvidenceError:
        return None


@contextmanager
def _capped(seconds: float) -> Iterator[None]:
    """CapError inside once this process has used so many CPU seconds more."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def _stop(*_: object) -> None:
    raise CapError


def count(rows: pd.DataFrame) -> None:
    """A row a head and k, near copies apart: how many outputs were asked, and with what answer."""
    rows["outputs"] = np.where(rows["copies"] > 0, "near copies", "without a near copy")
    keys = [rows[name] for name in ("head", "k", "outputs")]
    counts = pd.crosstab(keys, rows["verdict"])
    counts = counts.reindex(columns=["impossible", "possible", "undecided"], fill_value=0)
    counts.insert(0, "asked", counts.sum(axis=1))
    counts.reset_index().to_csv(OUT.with_stem(f"{OUT.stem}_counts"), index=False)


if __name__ == "__main__":
    main()
