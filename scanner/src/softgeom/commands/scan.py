"""``softgeom scan MODEL``: which outputs can this model never produce?

    OUT/verdicts.csv     one row per class (softgeom.read_verdicts reads it back token for token)
    OUT/summary.json     counts, feature set, where the layer was found, fingerprint, versions
    OUT/evidence.safetensors  the proofs; ``softgeom verify OUT MODEL`` checks them anywhere
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
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from softgeom.asking import Answers
from softgeom.certifying.evidence_file import text_size
from softgeom.checkpoints import Head
from softgeom.commands import label_scan
from softgeom.commands import options as asked
from softgeom.commands.boundary import DONE, TOO_MANY, UNDECIDED
from softgeom.commands.results import EVIDENCE, folder_for, scan_into
from softgeom.layer import Ellipsoid, FeatureSet, SoftmaxLayer
from softgeom.names import Names
from softgeom.scan_result import Scan
from softgeom.scanner import scan
from softgeom.verdict_table import escape_token
from softgeom.widening import up_to, widen

# classes that can never win are named on the terminal up to here; verdicts.csv has them all
_EXAMPLES = 20
# layers of at most so many classes are scanned over the network's own set, too, to be told
_SMALL = 1000
_FAIL_ON = re.compile(r"(unargmaxable|tied|undecided)(?:=([0-9]{1,18}))?")


def add(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    asked.add_model(parser)
    where = asked.add_features(parser)
    reach = ".npy file (n, features): report how far real features reach"
    where.add_argument("--inputs", type=Path, help=reach)
    asked.add_classes(parser)
    asked.add_work(parser)
    add = parser.add_argument
    exact = "store exact rational weights for this class (token or number; may be repeated)"
    never = f"{exact}, if it can never win"
    add("--exact", metavar="CLASS", action="append", default=[], help=never)
    wider = "ask whether unargmaxable classes are so whatever the features"
    add("--wider", action="store_true", help=f"{wider}, also where there are more than 1,000")
    smaller = (
        "let a part of each product show who wins, where it mostly does: less time, and margins"
    )
    add("--verdicts-only", action="store_true", help=f"{smaller} that are certified, but smaller")
    add("--out", help="folder for the results (default: scans/NAME-FINGERPRINT)")
    fail = "exit with 4 when more than N classes have this verdict, such as unargmaxable=0"
    add("--fail-on", metavar="VERDICT[=N]", help=fail)
    listed = "file of classes (tokens or numbers, one a line) that --fail-on does not count"
    add("--expected", type=Path, help=listed)
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Scan, check, write, tell."""
    limit, file = _limit(options), options.expected
    expected = set(asked.read_lines(file, f"--expected {file}", "class") if file else ())
    head, features, why = asked.question(options.model, **asked.chosen(options, asked.Options))
    classes = asked.read_classes(options, head)
    inputs = asked.read_inputs(options.inputs, head.layer.dimension) if options.inputs else None
    names = Names(head.layer)
    exact = [names.find(name, "--exact") for name in options.exact]
    if classes is not None and (missing := sorted({*exact} - {*classes.tolist()})):
        raise ValueError(
            f"--exact asks for class {missing[0]}, which --classes or --script leaves out."
        )
    if head.readout.rule == "threshold":
        label_scan.refuse_options(head, vars(options))
        if not (options.quiet or options.json):
            _introduce(options, head, features, why, inputs)
        return label_scan.run(options, head, features, why, classes)
    # a folder that cannot be taken is refused before anything is said
    folder_for(options.out, model := str(options.model), head.layer)
    quiet = options.quiet or options.json
    if not quiet:
        _introduce(options, head, features, why, inputs)
    started = time.perf_counter()

    def decide(blocks: Path) -> Scan:
        how: Any = {"wider": options.wider, "verdicts_only": options.verdicts_only, "why": why}
        how |= {"checkpoint": blocks, "progress": not options.quiet}
        how |= asked.chosen(options, asked.WorkOptions)
        return decided(head, features, classes, exact, **how)

    told: Any = {"seed": options.seed, "inputs": inputs}
    found, summary, folder = scan_into(options.out, head, model, why, decide, **told)
    seconds = time.perf_counter() - started
    options.folder = folder
    if options.json:
        print(json.dumps({**summary, "folder": str(folder)}))
    elif not quiet:
        _tell(found, folder, seconds)
        _tell_of_smaller(options, head, classes)
        for t in exact:
            weights = found.evidence(t).weights  # type: ignore[union-attr]
            size = f"{text_size(weights):,} bytes of {EVIDENCE}"
            print(f"class {t}: {len(weights)} exact weights, {size}")
    if limit is not None and (count := _counted(found, limit[0], expected)) > limit[1]:
        over = f"{count} classes are {limit[0]} and not expected; {limit[1]} are allowed."
        print(f"softgeom: {over}", file=sys.stderr)
        return TOO_MANY
    return UNDECIDED if found.counts["undecided"] else DONE


def _introduce(
    options: argparse.Namespace, head: Head, features: FeatureSet, why: str | None, inputs: Any
) -> None:
    layer, described = head.layer, features.describe()
    bias = "no bias" if layer.b is None else "with bias"
    print(
        f"{escape_token(str(options.model))}: {layer.classes:,} classes, {layer.dimension} "
        f"features, {bias}; {described}"
    )
    for note in head.notes:
        print(f"  {note}")
    if head.behind:
        print(f"  {head.behind}")
    smaller, because = head.feature_set()
    if why:
        print(f"  {why}")
    elif options.features == "box" and smaller.describe() != described:
        print(f"  --features auto would use a smaller set: {because}")
    if layer.b is None and isinstance(features, Ellipsoid) and features.holds_a_ball:
        print(
            "  without a bias, size and gain of this normalisation change no verdict: "
            "--features unbounded decides the same in half the time"
        )
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
    claimed = "every verdict but the undecided" if found.counts["undecided"] else "every verdict"
    print(f"{claimed} proven and re-checked in {seconds:.1f} s; written to {folder}")


def _tell_of_smaller(options: argparse.Namespace, head: Head, classes: Any) -> None:
    """How many outputs are lost where the step before the layer puts its features, beside the box
    that was scanned: two numbers about one model otherwise look like a contradiction.
    """
    if (options.features, options.low, options.after) != ("box", None, None):
        return
    smaller, because = head.feature_set(options.bound or asked.BOUND)
    if head.activation is None or head.layer.classes > _SMALL:
        return
    found = scan(head.layer, classes, features=smaller, **asked.chosen(options, asked.WorkOptions))
    found.verify()
    lost = f"{found.counts['unargmaxable']:,} are never an output {smaller.condition()}"
    print(f"{lost} ({because}); --features auto writes the proofs")


def _examples(found: Scan) -> str:
    unargmaxable = (f.index for f in found.findings if f.evidence.verdict == "unargmaxable")
    return _named(found.layer, unargmaxable)


def _named(layer: SoftmaxLayer, classes: Iterable[int]) -> str:
    lost = [layer.token(t) for t in classes]
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


def _counted(found: Scan, verdict: str, expected: set[str]) -> int:
    lost = {f.index for f in found.findings if f.evidence.verdict == verdict}
    names = Names(found.layer)
    return len(lost.difference(*(names.named(name) for name in expected)))


def decided(
    head: Head,
    features: FeatureSet,
    classes: Any,
    exact: Sequence[int],
    *,
    wider: bool,
    why: str | None = None,
    verdicts_only: bool = False,
    without: Collection[str] = (),
    checkpoint: str | Path | None = None,
    progress: bool = False,
    **work: Unpack[asked.WorkOptions],
) -> Scan:
    """The scan, with rational weights for the classes ``exact``, and what holds over wider sets, or
    up to which bound.
    """
    how: Any = {"verdicts_only": verdicts_only, "without": without, "progress": progress}
    found = scan(head.layer, classes, features=features, checkpoint=checkpoint, **how, **work)
    found = replace(found, head=asked.facts(head, features, why))
    found = found.with_exact_weights(exact) if exact else found
    found = widen(found, asked.wider_sets(head), every=wider, **work)
    return up_to(found, every=wider, **work)


def scan_model(
    model: Any,
    classes: Any = None,
    *,
    script: str | None = None,
    exact: Iterable[int | str] = (),
    wider: bool = False,
    out: str | Path | None = None,
    checkpoint: str | Path | None = None,
    verdicts_only: bool = False,
    without: Collection[str] = (),
    progress: bool = False,
    **options: Unpack[asked.ScanOptions],
) -> Scan | Answers:
    """Which outputs can never be the answer, for anything that has a softmax layer.

    A model that decides each label by itself (sigmoids) is asked label by label whether its score
    can exceed 0: the result is `Answers`, as of ``softgeom.ask``. ``rule="argmax"`` asks about the
    largest score all the same.

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
    weight, bias, tokens, revision, without_bias, blank
        As for `load_head`.
    seed, block, n_jobs, backend, address, device, checkpoint, verdicts_only, without, progress
        As for `softgeom.scan`.

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
    work, given = asked.split(options, asked.WorkOptions)
    head, where, why = asked.question(model, **given)
    chosen = asked.class_numbers(head.layer, classes, script)
    names = Names(head.layer)
    numbers = [names.find(c, "exact") for c in exact]
    how: dict[str, Any]
    if head.readout.rule == "threshold":
        given = {"exact": numbers, "wider": wider, "verdicts_only": verdicts_only}
        given |= {"without": without, "checkpoint": checkpoint}
        label_scan.refuse_options(head, given)
        place = None if out is None else os.fspath(out)
        how = {"why": why, "out": place, "n_jobs": work.get("n_jobs", 1), "progress": progress}
        return label_scan.scan_labels(head.source.name, head, where, chosen, **how)
    how = {"wider": wider, "verdicts_only": verdicts_only, "without": without, "why": why, **work}

    def decide(blocks: str | Path | None) -> Scan:
        kept = blocks if checkpoint is None else checkpoint
        return decided(head, where, chosen, numbers, checkpoint=kept, progress=progress, **how)

    if out is None:
        return decide(None)
    name = str(model) if isinstance(model, str | os.PathLike) else head.source.name
    return scan_into(out, head, name, why, decide, seed=work.get("seed", 0))[0]
