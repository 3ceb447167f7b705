"""``softgeom scan MODEL``: which outputs can this model never produce?

    OUT/verdicts.csv     one row per class (softgeom.read_verdicts reads it back token for token)
    OUT/summary.json     counts, feature set, where the layer was found, fingerprint, versions
    OUT/evidence.npz     the evidence; ``softgeom verify OUT MODEL`` re-checks it anywhere
    OUT/card.html        one page to look at and to pass on

Finished blocks are kept in OUT/blocks, so that a scan that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from softgeom.bottleneck.certifying.evidence_file import text_size
from softgeom.bottleneck.scan_result import Scan
from softgeom.bottleneck.scanner import scan
from softgeom.bottleneck.verdict_table import escape_token
from softgeom.bottleneck.widening import widen
from softgeom.checkpoints import Head
from softgeom.commands import options as asked
from softgeom.commands.boundary import DONE, TOO_MANY, UNDECIDED
from softgeom.commands.explain import find_class
from softgeom.commands.results import EVIDENCE, folder_for, summarise, write_results
from softgeom.layer import FeatureSet
from softgeom.parallel import Backend
from softgeom.writing import alone

# classes that can never win are named on the terminal up to here; verdicts.csv has them all
_EXAMPLES = 20
_FAIL_ON = re.compile(r"(unargmaxable|tied|undecided)(?:=([0-9]{1,18}))?")


def add(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    asked.add_model(parser)
    asked.add_features(parser)
    asked.add_classes(parser)
    asked.add_work(parser)
    parser.add_argument(
        "--exact",
        metavar="CLASS",
        action="append",
        default=[],
        help=(
            "store exact rational weights for this class (token or number; may be repeated), if "
            "it can never win"
        ),
    )
    parser.add_argument(
        "--wider",
        action="store_true",
        help=(
            "ask whether unargmaxable classes are so whatever the features, also where there are "
            "more than 1,000"
        ),
    )
    parser.add_argument("--out", help="folder for the results (default: scans/NAME-FINGERPRINT)")
    parser.add_argument(
        "--fail-on",
        metavar="VERDICT[=N]",
        help="exit with 4 when more than N classes have this verdict, such as unargmaxable=0",
    )
    parser.add_argument(
        "--expected",
        type=Path,
        help="file of classes (tokens or numbers, one a line) that --fail-on does not count",
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Scan, check, write, tell."""
    limit, expected = _limit(options), _expected(options.expected)
    head = asked.read_head(options)
    features, why = asked.read_features(options, head)
    classes = asked.read_classes(options, head)
    inputs = asked.read_inputs(options.inputs, head.layer.dimension) if options.inputs else None
    exact = [find_class(head.layer, name) for name in options.exact]
    if classes is not None and (missing := sorted({*exact} - {*classes.tolist()})):
        raise ValueError(
            f"--exact asks for class {missing[0]}, which --classes or --script leaves out."
        )
    folder = folder_for(options.out, str(options.model), head.layer)
    quiet = options.quiet or options.json
    if not quiet:
        _introduce(options, head, features.describe(), why, inputs)
    started = time.perf_counter()
    with alone(folder):
        folder_for(options.out, str(options.model), head.layer)  # somebody may have just finished
        found = scan(
            head.layer,
            classes,
            features=features,
            **asked.read_work(options),
            checkpoint=folder / "blocks",
            progress=not options.quiet,
        )
        found = found.with_exact_weights(exact) if exact else found
        work = asked.read_work(options)
        found = widen(found, asked.wider_sets(head), every=options.wider, **work)
        summary = summarise(
            found, head, str(options.model), why=why, seed=options.seed, inputs=inputs
        )
        found = write_results(folder, found, summary)
    seconds = time.perf_counter() - started
    options.folder = folder
    if options.json:
        print(json.dumps({**summary, "folder": str(folder)}))
    elif not quiet:
        _tell(found, folder, seconds)
        for t in exact:
            weights = found.evidence(t).weights  # type: ignore[union-attr]
            print(
                f"class {t}: {len(weights)} exact weights, {text_size(weights):,} bytes of "
                f"{EVIDENCE}"
            )
    if limit is not None and (count := _counted(found, limit[0], expected)) > limit[1]:
        print(
            f"softgeom: {count} classes are {limit[0]} and not expected; {limit[1]} are allowed.",
            file=sys.stderr,
        )
        return TOO_MANY
    return UNDECIDED if found.counts["undecided"] else DONE


def _introduce(
    options: argparse.Namespace,
    head: Head,
    described: str,
    why: str | None,
    inputs: dict[str, float] | None,
) -> None:
    layer = head.layer
    bias = "no bias" if layer.b is None else "with bias"
    print(
        f"{escape_token(str(options.model))}: {layer.classes:,} classes, {layer.dimension} "
        f"features, {bias}; {described}"
    )
    for note in head.notes:
        print(f"  {note}")
    if why:
        print(f"  {why}")
    elif (suggestion := head.feature_set())[
        0
    ].describe() != described and options.features == "box":
        print(f"  --features auto would use a smaller set: {suggestion[1]}")
    if inputs:
        print(
            f"  {inputs['rows']:,} real features reach from {inputs['lowest']:.4g} to "
            f"{inputs['highest']:.4g}, norm {inputs['longest']:.4g} at most"
        )


def _tell(found: Scan, folder: Path, seconds: float) -> None:
    for verdict, count in found.counts.items():
        print(f"{verdict:>13}: {count:,}")
    if found.counts["unargmaxable"]:
        print(f"never an output: {_examples(found)}")
        for part in found.wider:
            print(f"  {len(part):,} of these {part.features.condition()}")
    claimed = (
        "every verdict" if not found.counts["undecided"] else "every verdict but the undecided"
    )
    print(f"{claimed} proven and re-checked in {seconds:.1f} s; written to {folder}")


def _examples(found: Scan) -> str:
    lost = [
        found.layer.token(f.index) for f in found.findings if f.evidence.verdict == "unargmaxable"
    ]
    shown = [escape_token(token) if token.strip() else repr(token) for token in lost[:_EXAMPLES]]
    return " ".join(shown) + (" ..." if len(lost) > _EXAMPLES else "")


def _limit(options: argparse.Namespace) -> tuple[str, int] | None:
    if options.fail_on is None:
        if options.expected:
            raise ValueError("--expected lists what --fail-on does not count: pass --fail-on too.")
        return None
    match = _FAIL_ON.fullmatch(options.fail_on)
    if match is None:
        raise ValueError(
            f"--fail-on {options.fail_on!r}: write unargmaxable, tied or undecided, with =N "
            "where N are allowed."
        )
    return match[1], int(match[2] or 0)


def _expected(path: Path | None) -> set[str]:
    if path is None:
        return set()
    try:
        return set(path.read_text(encoding="utf-8").split("\n")) - {""}
    except UnicodeDecodeError:
        raise ValueError(f"--expected {path} is not a text: write one class a line.") from None


def _counted(found: Scan, verdict: str, expected: set[str]) -> int:
    lost = {f.index for f in found.findings if f.evidence.verdict == verdict}
    names = {t: {str(t), found.layer.token(t), escape_token(found.layer.token(t))} for t in lost}
    return sum(not expected & names[t] for t in lost)


def scan_model(
    model: Any,
    classes: Any = None,
    *,
    features: str | FeatureSet = "box",
    bound: float | None = None,
    low: float | None = None,
    after: str | None = None,
    script: str | None = None,
    exact: Iterable[int | str] = (),
    wider: bool = False,
    out: str | Path | None = None,
    weight: str | None = None,
    bias: Any = None,
    tokens: Any = None,
    revision: str | None = None,
    without_bias: bool = False,
    labels_confirmed: bool = False,
    seed: int = 0,
    block: int = 1024,
    n_jobs: int = 1,
    backend: Backend | None = None,
    address: str | None = None,
    device: str | None = None,
    checkpoint: str | Path | None = None,
    verdicts_only: bool = False,
    without: Collection[str] = (),
    progress: bool = False,
) -> Scan:
    """Which outputs can never be the answer, for anything that has a softmax layer.

    Parameters
    ----------
    model : path, hub id, released model, or an object in memory
        See `softgeom.checkpoints.load_head`.
    classes : integers or tokens, optional
        Which to decide; default all. All others stay rivals.
    features : "box", "auto", "norm", "ball", "unbounded", or a feature set
        Where the layer's inputs may lie; "auto" takes what the step before the layer allows.
    bound, low : float, optional
        Of the box (default 100 and its negative), or radius of the ball.
    after : str, optional
        The step before the layer, where the model does not show it, such as "relu".
    script : str, optional
        Decide the tokens that are written in this script alone, such as "CYRILLIC".
    exact : integers or tokens
        Store exact rational weights for these classes.
    wider : bool
        Ask whether unargmaxable classes are so whatever the features, also where there are more
        than 1,000 of them, which takes several times as long as their scan.
    out : path, optional
        Folder for verdicts, evidence, summary and card, as ``softgeom scan --out`` writes them.
    weight, bias, tokens, revision, without_bias, labels_confirmed
        As for `load_head`.
    seed, block, n_jobs, backend, address, device, checkpoint, verdicts_only, without, progress
        As for `softgeom.bottleneck.scan`.

    Raises
    ------
    ValueError
        When the model, a class or a feature set cannot be used as asked.

    Examples
    --------
    A class in the middle of the others can never win:

    >>> import softgeom as sg
    >>> found = sg.scan([[1, 0], [-1, 1], [-1, -1], [0, 0]])
    >>> found[3].verdict, found.counts["unargmaxable"]
    ('unargmaxable', 1)
    """
    head, where, why = asked.question(
        model,
        features=features,
        bound=bound,
        low=low,
        after=after,
        weight=weight,
        bias=bias,
        tokens=tokens,
        revision=revision,
        without_bias=without_bias,
        labels_confirmed=labels_confirmed,
    )
    chosen = asked.class_numbers(head.layer, classes, script)
    numbers = [find_class(head.layer, c) if isinstance(c, str) else int(c) for c in exact]

    def decide(kept: str | Path | None) -> Scan:
        found = scan(
            head.layer,
            chosen,
            features=where,
            seed=seed,
            block=block,
            n_jobs=n_jobs,
            backend=backend,
            address=address,
            device=device,
            checkpoint=kept,
            verdicts_only=verdicts_only,
            without=without,
            progress=progress,
        )
        found = found.with_exact_weights(numbers) if numbers else found
        work: Any = {"seed": seed, "n_jobs": n_jobs, "backend": backend, "address": address}
        return widen(found, asked.wider_sets(head), every=wider, **work, device=device)

    if out is None:
        return decide(checkpoint)
    name = str(model) if isinstance(model, str | os.PathLike) else head.source.name
    folder = folder_for(os.fspath(out), name, head.layer)
    with alone(folder):
        folder_for(os.fspath(out), name, head.layer)  # somebody may have just finished
        found = decide(folder / "blocks" if checkpoint is None else checkpoint)
        summary = summarise(found, head, name, why=why, seed=seed, inputs=None)
        return write_results(folder, found, summary)
