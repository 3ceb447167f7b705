"""``softgeom ceiling MODEL [CLASS...]``: how probable can an output ever become, with proof.

OUT/ceilings.csv   one row per class: the proven ceiling (rounded up), what its point reaches (down)
OUT/ceilings.npz   the points that prove them; ``softgeom verify OUT MODEL`` and
                   tools/check_ceilings.py re-check them
OUT/blocks         points of finished blocks, so that a run that was stopped goes on where it was

``--from-scan FOLDER`` searches nothing: the captors of a stored scan bound what they hold.
"""

from __future__ import annotations

import argparse
import csv
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd

from softgeom.bottleneck.ceilings import Ceilings, ceilings, floor
from softgeom.bottleneck.ceilings.ceilings import GAP
from softgeom.bottleneck.scan_result import Scan
from softgeom.bottleneck.verdict_table import down, escape_token, up
from softgeom.commands import options as asked
from softgeom.commands.boundary import DONE
from softgeom.commands.explain import find_class
from softgeom.commands.results import load_scan
from softgeom.layer import SoftmaxLayer
from softgeom.parallel import Backend
from softgeom.writing import alone, whole

CEILINGS, TABLE = "ceilings.npz", "ceilings.csv"
SHOWN = 20  # classes by name
LEVELS = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99)


def add(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    asked.add_model(parser)
    parser.add_argument(
        "classes", nargs="*", metavar="CLASS", help="tokens or numbers (default: all classes)"
    )
    asked.add_features(parser)
    parser.add_argument(
        "--at",
        type=float,
        metavar="P",
        help="count the outputs that can ever reach this probability",
    )
    parser.add_argument("--jobs", type=asked.count, default=1, help="parallel workers (default: 1)")
    parser.add_argument("--seed", type=asked.seed, default=0, help="seed of every random choice")
    parser.add_argument("--out", type=Path, help="folder for the table and the proofs")
    parser.add_argument(
        "--from-scan",
        type=Path,
        metavar="FOLDER",
        help="only what a stored scan's captors prove, at once: valid, often loose",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Bound, verify, print, and write where that is asked."""
    if options.at is not None and not 0 < options.at <= 1:
        raise ValueError(f"--at {options.at:g}: a probability lies above 0 and is at most 1.")
    head = asked.read_head(options)
    if options.from_scan is not None:
        if options.out is not None or options.classes:
            raise ValueError(
                "--from-scan prints what a scan's own proofs say of its captives: leave out CLASS "
                "and --out."
            )
        print("\n".join(lines_of_captors(load_scan(options.from_scan, head.layer), options.at)))
        return DONE
    features, _ = asked.read_features(options, head)
    named = {find_class(head.layer, name) for name in options.classes}
    chosen = np.array(sorted(named)) if options.classes else None
    with nullcontext() if options.out is None else alone(options.out):
        found = ceilings(
            head.layer,
            chosen,
            features=features,
            n_jobs=options.jobs,
            seed=options.seed,
            checkpoint=None if options.out is None else options.out / "blocks",
            progress=True,
        )
        found.verify()
        print("\n".join(lines(found, options.at)))
        if options.out is not None:
            write(options.out, found)
            print(f"written: {options.out / TABLE}, {options.out / CEILINGS}")
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
        As for `softgeom.bottleneck.ceilings.ceilings`.
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
    head, where, _ = asked.question(model, **options)
    place = None if out is None else Path(out)
    with nullcontext() if place is None else alone(place):
        found = ceilings(
            head.layer,
            asked.class_numbers(head.layer, classes),
            features=where,
            gap=gap,
            n_jobs=n_jobs,
            backend=backend,
            address=address,
            seed=seed,
            checkpoint=checkpoint or (place and place / "blocks"),
            progress=progress,
        )
        if place is not None:
            found.verify()
            write(place, found)
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
    layer = head.layer

    def number(name: Any) -> int:
        return find_class(layer, name) if isinstance(name, str) else name

    asked_for = [
        {number(c): p for c, p in target.items()}
        if isinstance(target, dict)
        else [number(c) for c in target]
        for target in targets
    ]
    return floor(layer, asked_for, features=where)


def lines(found: Ceilings, at: float | None) -> list[str]:
    """What the bounds say: the lowest ceilings by name, and how many outputs reach each level."""
    order = np.argsort(found.ceiling, kind="stable")[:SHOWN]
    told = [
        f"{escape_token(found.layer.token(int(found.classes[n])))}: never more than "
        f"{up(100 * found.ceiling[n])}%, and at its point {down(100 * found.reached[n])}%"
        for n in order.tolist()
    ]
    if len(found) > SHOWN:
        told.append(f"... and {len(found) - SHOWN:,} more")
    for level in LEVELS if at is None else (at,):
        counts = found.counts(level)
        doubt = f" ({counts['in doubt']:,} in doubt)" if counts["in doubt"] else ""
        told.append(
            f"{counts['reach']:,} of {len(found):,} can reach {100 * level:g}%, "
            f"{counts['never']:,} never do{doubt}"
        )
    return [f"on {found.features.describe()}:", *told]


def lines_of_captors(found: Scan, at: float | None) -> list[str]:
    """What a scan's captors say: the lowest ceilings by name, and how many are below each level."""
    found.verify()
    held = [f.index for f in found.findings if f.evidence.verdict in ("unargmaxable", "tied")]
    ceiling = np.array([found.ceiling(t) for t in held])
    order = np.argsort(ceiling, kind="stable")[:SHOWN].tolist()
    told = [
        f"{escape_token(found.layer.token(held[n]))}: never more than {up(100 * ceiling[n])}%"
        for n in order
    ]
    if len(held) > SHOWN:
        told.append(f"... and {len(held) - SHOWN:,} more")
    for level in LEVELS if at is None else (at,):
        told.append(
            f"{int((ceiling < level).sum()):,} of {len(found):,} never reach {100 * level:g}% "
            "by their captors alone"
        )
    return [f"on {found.features.describe()}:", *told]


def write(folder: Path, found: Ceilings) -> None:
    """The table first, the proofs last: a folder with proofs is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    with whole(folder / TABLE) as fresh, fresh.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows(found))
    found.save(folder / CEILINGS)


def verify(folder: Path, layer: SoftmaxLayer) -> Ceilings:
    """Every bound of a folder again, and the table against them; ValueError says what is wrong."""
    found = Ceilings.load(folder / CEILINGS, layer)
    if not (folder / TABLE).is_file():
        raise ValueError(f"{folder} has no {TABLE}: ask again.")
    with (folder / TABLE).open(encoding="utf-8", errors="replace", newline="") as file:
        written = list(csv.reader(file))
    for number, ours in enumerate(expected := rows(found)):
        if written[number : number + 1] != [ours]:
            raise ValueError(f"{folder / TABLE} differs from the proofs in row {number}.")
    if len(written) != len(expected):
        raise ValueError(f"{folder / TABLE} has rows that no proof is for.")
    return found


def rows(found: Ceilings) -> list[list[str]]:
    """The table as it is written: ceilings rounded up, what is reached rounded down."""
    table = [
        [str(t), escape_token(found.layer.token(t)), up(ceiling), down(reached)]
        for t, ceiling, reached in zip(
            found.classes.tolist(), found.ceiling.tolist(), found.reached.tolist(), strict=True
        )
    ]
    return [["class", "token", "ceiling", "reached"], *table]
