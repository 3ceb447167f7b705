"""The geometry of softmax: what it, its hard limit and the matrices around it can and cannot
express.

    import softgeom as sg
    found = sg.scan(model)          # a file, hub id, released model, torch module, matrix: which outputs can never win?
    found                           # a card; len(found), found["token"], found.table, found.verify()

Four chapters, one package each: `bottleneck`, `margins`, `circuits`, `hardmax`. They stand on
shared leaves (`features`, `layer`, `checkpoints`, `language_model`) and never import each other;
`commands` and `explorers` stand on all.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

try:
    __version__ = version("softgeom")
except PackageNotFoundError:  # imported from a source folder that was never installed
    __version__ = "0+unknown"

# Looked up when first used: `import softgeom` alone stays instant.
_LAZY = {
    "scan": ("softgeom.commands.scan", "scan_model"),
    "load": ("softgeom.checkpoints", "load_head"),
    "read_verdicts": ("softgeom.bottleneck.verdict_table", "read_verdicts"),
    "Scan": ("softgeom.bottleneck", "Scan"),
    **{
        name: ("softgeom.layer", name)
        for name in ("SoftmaxLayer", "Box", "Ball", "Unbounded", "Ellipsoid")
    },
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'softgeom' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
