"""Progress that reads well everywhere: a bar in a terminal, one plain line at intervals in a log or
under papermill.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TypeVar

from tqdm import tqdm

_Item = TypeVar("_Item")

_SECONDS_BETWEEN_LINES = 10.0  # a log with a line each ten seconds shows life and stays short


def track(
    iterable: Iterable[_Item] | None,
    description: str,
    total: int | None = None,
    *,
    quiet: bool = False,
    unit: str = "it",
) -> tqdm:
    """Iterate with progress on standard error, so that what a command prints can be piped; short
    work (under ten seconds) prints a single closing line or none.

    Parameters
    ----------
    iterable, description, total
        As in `tqdm`; without an iterable the caller moves the bar by `update`.
    quiet
        Show nothing, for calls from tests and from other loops.
    unit
        What is counted; bytes (`"B"`) are shown with prefixes.
    """
    interactive = sys.stderr.isatty()
    return tqdm(
        iterable,
        desc=description,
        total=total,
        disable=quiet,
        unit=unit,
        unit_scale=unit == "B",
        file=sys.stderr,
        ascii=True,
        mininterval=0.2 if interactive else _SECONDS_BETWEEN_LINES,
        maxinterval=_SECONDS_BETWEEN_LINES,
        delay=0.0 if interactive else _SECONDS_BETWEEN_LINES,
        leave=not interactive,
    )
