"""``softgeom ceiling MODEL [CLASS...]``: how probable can an output ever become, with proof.

OUT/ceilings.csv   one row per class: the proven ceiling (rounded up), what its point reaches (down)
OUT/ceilings.safetensors   the points that prove them; ``softgeom verify OUT MODEL`` and
                   tools/check_proofs.py check them again
OUT/blocks         points of finished blocks, so that a run that was stopped goes on where it was
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from softgeom import bounding
from softgeom.ceiling import Ceilings
from softgeom.commands.boundary import DONE
from softgeom.layer import FeatureSet
from softgeom.options import LayerOptions, loaded, split
from softgeom.results import CEILING_TABLE, CEILINGS, load_scan
from softgeom.scan_result import Scan
from softgeom.verdict_table import down, escape_token, up

_SHOWN = 20  # classes by name
_LEVELS = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99)


def ceiling(
    model: str,
    *,
    classes: list[str] | None = None,
    at: float | None = None,
    from_scan: Path | None = None,
    out: str | None = None,
    **options: Any,
) -> int:
    """Bound, verify, print, and write where that is asked."""
    if at is not None and not 0 < at <= 1:
        raise ValueError(f"--at {at:g}: a probability lies above 0 and is at most 1.")
    if from_scan is not None:
        layer_options, others = split(options, LayerOptions)
        if out is not None or classes:
            raise ValueError(
                "--from-scan prints what a scan's own proofs say of its unargmaxable classes: "
                "leave out CLASS and --out."
            )
        refuse_options(others, "--from-scan is a finished scan")
        head = loaded(model, **layer_options)
        print("\n".join(_lines_of_scan(load_scan(from_scan, head.layer, head), at)))
        return DONE
    found = bounding.ceilings(model, classes or None, out=out, progress=True, **options)
    if out is None:
        found.verify()
    print("\n".join(_lines_of_ceilings(found, at)))
    if out is not None:
        print(f"written: {Path(out) / CEILING_TABLE}, {Path(out) / CEILINGS}")
    return DONE


def refuse_options(given: dict[str, Any], why: str) -> None:
    """ValueError, with the reason, when a command line gives options that would be dropped."""
    for name in given:
        option = {"n_jobs": "jobs", "address": "scheduler"}.get(name, name)
        raise ValueError(f"--{option} has no meaning here: {why}.")


def _lines_of_ceilings(found: Ceilings, at: float | None) -> list[str]:
    """The lowest ceilings by name, and how many outputs reach each level."""
    lowest = [
        f"{escape_token(found.layer.token(int(found.classes[n])))}: never more than "
        f"{up(found.ceiling[n], 2)}%, and at its point {down(found.reached[n], 2)}%"
        for n in np.argsort(found.ceiling, kind="stable")[:_SHOWN].tolist()
    ]

    def reach(level: float) -> str:
        counts = found.counts(level)
        doubt = f" ({counts['in doubt']:,} in doubt)" if counts["in doubt"] else ""
        reached = f"{counts['reach']:,} of {len(found):,} can reach {_percent(level)}"
        return f"{reached}, {counts['never']:,} never do{doubt}"

    return _lines(found.features, lowest, len(found), reach, at)


def _lines_of_scan(found: Scan, at: float | None) -> list[str]:
    """What a scan's blocking classes say: the lowest ceilings by name, and how many are below each
    level."""
    found.verify()
    held = [f.index for f in found.findings if f.evidence.verdict in ("unargmaxable", "tied")]
    ceiling = np.array([found.ceiling(t) for t in held])
    lowest = [
        f"{escape_token(found.layer.token(held[n]))}: never more than {up(ceiling[n], 2)}%"
        for n in np.argsort(ceiling, kind="stable")[:_SHOWN].tolist()
    ]

    def below(level: float) -> str:
        never = f"{int((ceiling < level).sum()):,} of {len(found):,} never reach"
        return f"{never} {_percent(level)} by their blocking classes alone"

    return _lines(found.features, lowest, len(held), below, at)


def _percent(level: float) -> str:
    """The level that was asked for, digit by digit: what is below it need not be below fewer."""
    return f"{Decimal(repr(level)).scaleb(2).normalize():f}%"


def _lines(
    features: FeatureSet,
    lowest: list[str],
    of: int,
    count: Callable[[float], str],
    at: float | None,
) -> list[str]:
    more = [f"... and {of - _SHOWN:,} more"] if of > _SHOWN else []
    levels = _LEVELS if at is None else (at,)
    return [f"on {features.describe()}:", *lowest, *more, *(count(level) for level in levels)]
