"""What a running notebook reads of other notebooks' results and of the reference data: seen, not
declared, so that missing edges come to light.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

from compendium import paths

_seen: set[str] = set()


@functools.cache
def record_reads() -> None:
    """Note every file that this process opens for reading from now on."""
    sys.addaudithook(_on_open)


def of(folders: tuple[Path, ...]) -> list[str]:
    """What was read so far below some folders, relative to the top folder."""
    top = paths.root()
    found = (
        path for path in map(Path, _seen.copy()) if path.is_absolute() and path.is_relative_to(top)
    )
    return sorted(
        path.relative_to(top).as_posix() for path in found if any(map(path.is_relative_to, folders))
    )


def _on_open(event: str, arguments: tuple[Any, ...]) -> None:
    if (
        event == "open"
        and isinstance(arguments[0], str)
        and not set(str(arguments[1] or "r")) & set("wax+")
    ):
        _seen.add(arguments[0])
