"""``softgeom ceiling MODEL [CLASS...]``: how probable can an output ever become, with proof.

OUT/ceilings.csv   one row per class: the proven ceiling (rounded up), what its point reaches (down)
OUT/ceilings.safetensors   the points that prove them; ``softgeom verify OUT MODEL`` and
                   tools/check_proofs.py check them again
OUT/blocks         points of finished blocks, so that a run that was stopped goes on where it was

``--from-scan FOLDER`` searches nothing: the captors of a stored scan bound what they hold.
"""

from __future__ import annotations

import argparse
import csv
import io
import logging
import os
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd

from softgeom.ceiling import Ceilings, ceilings, floor
from softgeom.ceiling.ceilings import GAP
from softgeom.commands import options as asked
from softgeom.commands.boundary import DONE
from softgeom.commands.results import load_scan, named_folder
from softgeom.layer import FeatureSet
from softgeom.names import Names
from softgeom.parallel import Backend
from softgeom.scan_result import Scan
from softgeom.verdict_table import down, escape_token, up
from softgeom.writing import alone, write_text

logger = logging.getLogger("softgeom")

CEILINGS, TABLE = "ceilings.safetensors", "ceilings.csv"
SHOWN = 20  # classes by name
LEVELS = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99)


def add(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    asked.add_model(parser)
    add = parser.add_argument
    add("classes", nargs="*", metavar="CLASS", help="tokens or numbers (default: all classes)")
    asked.add_features(parser)
    reach = "count the outputs that can ever reach this probability"
    add("--at", type=float, metavar="P", help=reach)
    asked.add_workers(parser)
    add("--out", help="folder for the table and the proofs")
    captors = "only what a stored scan's captors prove, at once: valid, often loose"
    add("--from-scan", type=Path, metavar="FOLDER", help=captors)
    parser.set_defaults(run=run, features=None)


def run(options: argparse.Namespace) -> int:
    """Bound, verify, print, and write where that is asked."""
    if options.at is not None and not 0 < options.at <= 1:
        raise ValueError(f"--at {options.at:g}: a probability lies above 0 and is at most 1.")
    if options.from_scan is not None:
        if options.out is not None or options.classes:
            raise ValueError(
                "--from-scan prints what a scan's own proofs say of its lost classes: leave out "
                "CLASS and --out."
            )
        kinds = (asked.SetOptions, asked.WorkerOptions)
        asked.refuse_said(options, kinds, "--from-scan is a finished scan")
        head = asked.read_head(options)
        scanned = load_scan(options.from_scan, head.layer, head)
        print("\n".join(lines_of_captors(scanned, options.at)))
        return DONE
    options.features = options.features or "box"
    how: Any = {"progress": True, "out": options.out}
    how |= asked.chosen(options, asked.Options) | asked.chosen(options, asked.WorkerOptions)
    found = ceilings_of_model(options.model, options.classes or None, **how)
    if options.out is None:
        found.verify()
    print("\n".join(lines(found, options.at)))
    if options.out is not None:
        print(f"written: {Path(options.out) / TABLE}, {Path(options.out) / CEILINGS}")
    return DONE


def ceilings_of_model(
    model: Any,
    classes: Any = None,
    *,
    gap: float = GAP,
    n_jobs: int = 1,
    backend: Backend | None = None,
    address: str | None = None,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    progress: bool = False,
    out: str | Path | None = None,
    **options: Unpack[asked.Options],
) -> Ceilings:
    """How probable each output can ever become, for anything that has a softmax layer.

    Parameters
    ----------
    model, classes, **options
        As for ``softgeom.scan``.
    gap, n_jobs, backend, address, seed, checkpoint, progress
        As for `softgeom.ceiling.ceilings`.
    out : path, optional
        Folder for the table and the proofs.

    Raises
    ------
    ValueError
        When the model, a class or a feature set cannot be used as asked.

    Examples
    --------
    >>> import softgeom as sg
    >>> bounds = sg.ceilings([[1, 0], [-1, 1], [-1, -1], [0, 0]], [3], bound=1)
    >>> bool(bounds.ceiling[0] < 0.5)
    True
    """
    folder = None if out is None else named_folder(os.fspath(out), "table and the proofs")
    head, where, why = asked.question(model, **options)
    _warn(head.readout.sentence())
    how: Any = {"gap": gap, "seed": seed, "progress": progress, "readout": head.readout}
    how |= {"n_jobs": n_jobs, "backend": backend, "address": address}
    chosen, kept = asked.class_numbers(head.layer, classes), checkpoint
    with nullcontext() if folder is None else alone(folder):
        kept = folder / "blocks" if kept is None and folder is not None else kept
        found = ceilings(head.layer, chosen, features=where, checkpoint=kept, **how)
        found = replace(found, head=asked.facts(head, where, why))
        if folder is not None:
            found.verify()
            write(folder, found)
    return found


def floors_of_model(model: Any, targets: Any, **options: Unpack[asked.Options]) -> pd.DataFrame:
    """The KL divergence from each target distribution that no input undercuts.

    Parameters
    ----------
    model, **options
        As for ``softgeom.scan``.
    targets : iterable
        Each a dict class -> probability, or a sequence of classes, all equally likely; classes by
        token or number.

    Raises
    ------
    ValueError
        When the model, a target or a feature set cannot be used as asked.
    """
    head, where, _ = asked.question(model, **options)
    readout = head.readout
    if readout.probability != "softmax" or readout.soft_cap is not None:
        # floors of these are not known: those of the softmax in their place are, and said to be
        readout = replace(readout, soft_cap=None, probability="softmax")
        _warn(head.readout.sentence(accounted=False))
    else:
        _warn(readout.sentence())
    names = Names(head.layer)
    asked_for: list[Any] = []
    listed = not isinstance(targets, str | dict) and isinstance(targets, Iterable)
    for n, target in enumerate(targets if listed else [None]):
        if isinstance(target, str) or not isinstance(target, Iterable):
            found = f"target {n} is {target!r:.40}" if listed else f"not {targets!r:.40}"
            raise ValueError(
                "targets is a list, of dicts class -> probability or of lists of classes, even of "
                f"only one: {found}."
            )
        numbers = [names.find(c, "targets") for c in target]
        shares = target.values() if isinstance(target, dict) else None
        asked_for.append(numbers if shares is None else dict(zip(numbers, shares, strict=True)))
    return floor(head.layer, asked_for, features=where, readout=readout)


def _warn(sentence: str | None) -> None:
    if sentence:
        logger.warning("%s", sentence)


def lines(found: Ceilings, at: float | None) -> list[str]:
    """What the bounds say: the lowest ceilings by name, and how many outputs reach each level."""
    lowest = [
        f"{escape_token(found.layer.token(int(found.classes[n])))}: never more than "
        f"{up(found.ceiling[n], 2)}%, and at its point {down(found.reached[n], 2)}%"
        for n in np.argsort(found.ceiling, kind="stable")[:SHOWN].tolist()
    ]

    def reach(level: float) -> str:
        counts = found.counts(level)
        doubt = f" ({counts['in doubt']:,} in doubt)" if counts["in doubt"] else ""
        reached = f"{counts['reach']:,} of {len(found):,} can reach {_percent(level)}"
        return f"{reached}, {counts['never']:,} never do{doubt}"

    return _lines(found.features, lowest, len(found), reach, at)


def lines_of_captors(found: Scan, at: float | None) -> list[str]:
    """What a scan's captors say: the lowest ceilings by name, and how many are below each level."""
    found.verify()
    held = [f.index for f in found.findings if f.evidence.verdict in ("unargmaxable", "tied")]
    ceiling = np.array([found.ceiling(t) for t in held])
    lowest = [
        f"{escape_token(found.layer.token(held[n]))}: never more than {up(ceiling[n], 2)}%"
        for n in np.argsort(ceiling, kind="stable")[:SHOWN].tolist()
    ]

    def below(level: float) -> str:
        never = f"{int((ceiling < level).sum()):,} of {len(found):,} never reach"
        return f"{never} {_percent(level)} by their captors alone"

    return _lines(found.features, lowest, len(held), below, at)


def _percent(level: float) -> str:
    """The level that was asked for, digit by digit: what is below it need not be below fewer."""
    return f"{Decimal(repr(level)).scaleb(2).normalize():f}%"


def _lines(
    features: FeatureSet, lowest: list[str], of: int, told: Callable[[float], str], at: float | None
) -> list[str]:
    more = [f"... and {of - SHOWN:,} more"] if of > SHOWN else []
    levels = LEVELS if at is None else (at,)
    return [f"on {features.describe()}:", *lowest, *more, *(told(level) for level in levels)]


def write(folder: Path, found: Ceilings) -> None:
    """The table first, the proofs last: a folder with proofs is whole."""
    write_text(folder / TABLE, table(found))
    found.save(folder / CEILINGS)


def table(found: Ceilings) -> str:
    """The table as it is written: ceilings rounded up, what is reached rounded down."""
    bounds = (found.classes.tolist(), found.ceiling.tolist(), found.reached.tolist())
    rows = [
        [str(t), escape_token(found.layer.token(t)), up(ceiling), down(reached)]
        for t, ceiling, reached in zip(*bounds, strict=True)
    ]
    with io.StringIO(newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([["class", "token", "ceiling", "reached"], *rows])
        return text.getvalue()
