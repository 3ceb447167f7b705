"""``softgeom.ceilings`` and ``softgeom.floor``: how probable can an output of a model become?"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import pandas as pd

from softgeom import ceiling
from softgeom.ceiling.ceilings import GAP, Ceilings
from softgeom.names import Names
from softgeom.options import Options, class_numbers, facts, question, spelled_out
from softgeom.parallel import Backend
from softgeom.results import named_folder, write_ceilings
from softgeom.writing import alone

logger = logging.getLogger("softgeom")


@spelled_out(Options)
def ceilings(
    model: Any,
    classes: Any = None,
    *,
    gap: float = GAP,
    n_jobs: int = 1,
    backend: Backend | None = None,
    address: Any = None,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    progress: bool = False,
    out: str | Path | None = None,
    **options: Unpack[Options],
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
    folder = None if out is None else named_folder(out, "table and the proofs")
    head, where, why = question(model, **options)
    _warn(head.readout.sentence())
    how: Any = {"gap": gap, "seed": seed, "progress": progress, "readout": head.readout}
    how |= {"n_jobs": n_jobs, "backend": backend, "address": address}
    chosen, kept = class_numbers(head.layer, classes), checkpoint
    with nullcontext() if folder is None else alone(folder):
        kept = folder / "blocks" if kept is None and folder is not None else kept
        found = ceiling.ceilings(head.layer, chosen, features=where, checkpoint=kept, **how)
        found = replace(found, head=facts(head, where, why))
        if folder is not None:
            found.verify()
            write_ceilings(folder, found)
    return found


@spelled_out(Options)
def floor(model: Any, targets: Any, **options: Unpack[Options]) -> pd.DataFrame:
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
    head, where, _ = question(model, **options)
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
    return ceiling.floor(head.layer, asked_for, features=where, readout=readout)


def _warn(sentence: str | None) -> None:
    if sentence:
        logger.warning("%s", sentence)
