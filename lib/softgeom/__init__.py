"""The geometry of softmax: what it, its hard limit and the matrices around it can and cannot
express.

    import softgeom as sg
    found = sg.scan(model)          # file, hub id, torch module, matrix: which outputs never win?
    found                           # a card; found["token"], found.table, found.verify()

Four chapters, one package each: `bottleneck`, `margins`, `circuits`, `hardmax`. They stand on
shared leaves (`features`, `layer`, `checkpoints`, `language_model`) and never import each other;
`commands` and `explorers` stand on all.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what editors and type checkers see; looked up below when first used
    from softgeom.bottleneck.ceilings.ceilings import Ceilings as Ceilings
    from softgeom.bottleneck.scan_result import Scan as Scan
    from softgeom.bottleneck.verdict_table import read_verdicts as read_verdicts
    from softgeom.checkpoints.loading import load_head as load
    from softgeom.commands.ceiling import ceilings_of_model as ceilings
    from softgeom.commands.ceiling import floors_of_model as floor
    from softgeom.commands.scan import scan_model as scan
    from softgeom.layer import Ball as Ball
    from softgeom.layer import Box as Box
    from softgeom.layer import Ellipsoid as Ellipsoid
    from softgeom.layer import SoftmaxLayer as SoftmaxLayer
    from softgeom.layer import Unbounded as Unbounded

    __version__: str

_LAZY = {
    "scan": ("softgeom.commands.scan", "scan_model"),
    "ceilings": ("softgeom.commands.ceiling", "ceilings_of_model"),
    "floor": ("softgeom.commands.ceiling", "floors_of_model"),
    "Ceilings": ("softgeom.bottleneck.ceilings.ceilings", "Ceilings"),
    "load": ("softgeom.checkpoints.loading", "load_head"),
    "read_verdicts": ("softgeom.bottleneck.verdict_table", "read_verdicts"),
    "Scan": ("softgeom.bottleneck.scan_result", "Scan"),
    **{
        name: ("softgeom.layer", name)
        for name in ("SoftmaxLayer", "Box", "Ball", "Unbounded", "Ellipsoid")
    },
}
__all__ = [
    "Ball",
    "Box",
    "Ceilings",
    "Ellipsoid",
    "Scan",
    "SoftmaxLayer",
    "Unbounded",
    "ceilings",
    "floor",
    "load",
    "read_verdicts",
    "scan",
]


if not TYPE_CHECKING:

    def __getattr__(name):
        if name == "__version__":
            return _version()
        if name not in _LAZY:
            raise AttributeError(f"module 'softgeom' has no attribute {name!r}")
        module, attribute = _LAZY[name]
        return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("softgeom")
    except PackageNotFoundError:  # imported from a source folder that was never installed
        return "0+unknown"
