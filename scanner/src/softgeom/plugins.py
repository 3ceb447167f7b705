"""What installed packages add to the scanner, found by their entry points: readers of model files
(``softgeom.readers``) and feature sets (``softgeom.features``).

Nothing is looked up, and no package is imported, for a name that the scanner itself knows.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, Literal


def plugin(group: Literal["readers", "features"], name: str) -> Any:
    """What a package registers under this name; None where none does. ValueError when two packages
    do, or it cannot be imported.
    """
    found = list(entry_points(group=f"softgeom.{group}", name=name))
    if not found:
        return None
    packages = sorted(str(one.dist.name) if one.dist else one.value for one in found)
    if len(found) > 1:
        raise ValueError(
            f"several packages register {name!r} in softgeom.{group}: {', '.join(packages)}; "
            "remove all but one."
        )
    try:
        return found[0].load()
    except Exception as error:
        raise ValueError(
            f"{found[0].value}, which {packages[0]} registers in softgeom.{group} as {name!r}, "
            f"cannot be imported ({type(error).__name__}: {error}): update or remove the package."
        ) from error
