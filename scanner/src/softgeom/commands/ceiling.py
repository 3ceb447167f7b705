"""``softgeom ceiling MODEL [CLASS...]``: how probable can an output ever become, with proof.

OUT/ceilings.csv   one row per class: the proven ceiling (rounded up), what its point reaches (down)
OUT/ceilings.safetensors   the points that prove them; ``softgeom verify OUT MODEL`` and
                   tools/check_proofs.py check them again
OUT/blocks         points of finished blocks, so that a run that was stopped goes on where it was
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from softgeom import bounding
from softgeom.ceiling import Ceilings
from softgeom.commands.boundary import DONE
from softgeom.results import CEILING_TABLE, CEILINGS
from softgeom.verdict_table import down, escape_token, up

_SHOWN = 20  # classes by name
_LEVELS = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99)


def ceiling(
    model: str,
    *,
    classes: list[str] | None = None,
    at: float | None = None,
    out: str | None = None,
    **options: Any,
) -> int:
    """Bound, verify, print, and write where that is asked."""
    if at is not None and not 0 < at <= 1:
        raise ValueError(f"--at {at:g}: a probability lies above 0 and is at most 1.")
    found = bounding.ceilings(model, classes or None, out=out, progress=True, **options)
    if out is None:
        found.verify()
    print("\n".join(_lines(found, at)))
    if out is not None:
        print(f"written: {Path(out) / CEILING_TABLE}, {Path(out) / CEILINGS}")
    return DONE


def _lines(found: Ceilings, at: float | None) -> list[str]:
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

    more = [f"... and {len(found) - _SHOWN:,} more"] if len(found) > _SHOWN else []
    levels = _LEVELS if at is None else (at,)
    return [f"on {found.features.describe()}:", *lowest, *more, *map(reach, levels)]


def _percent(level: float) -> str:
    """The level that was asked for, digit by digit: what is below it need not be below fewer."""
    return f"{Decimal(repr(level)).scaleb(2).normalize():f}%"
