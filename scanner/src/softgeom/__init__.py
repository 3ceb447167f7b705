"""Which outputs of a model's last layer can never win, each verdict with a proof.

    import softgeom as sg
    found = sg.scan(model)          # file, hub id, torch module, matrix: which outputs never win?
    found["token"].verdict          # for t in found, found.table, found.plot(), found.verify()

Functions have the names and options of the commands. What `__all__` lists here is stable
(docs/howto.md).
"""

from importlib import import_module
from typing import TYPE_CHECKING

# what editors and type checkers see; looked up below when first used
if TYPE_CHECKING:
    from softgeom.answering import ask as ask
    from softgeom.asking import Answers as Answers
    from softgeom.asking import Router as Router
    from softgeom.bounding import ceilings as ceilings
    from softgeom.bounding import floor as floor
    from softgeom.ceiling.ceilings import Ceilings as Ceilings
    from softgeom.certifying.verdict import EvidenceError as EvidenceError
    from softgeom.certifying.verdict import Finding as Finding
    from softgeom.checkpoints.loading import Head as Head
    from softgeom.checkpoints.loading import load_head
    from softgeom.comparing import diff as diff
    from softgeom.covering import Coverage as Coverage
    from softgeom.covering import coverage as coverage
    from softgeom.explaining import Explanation as Explanation
    from softgeom.explaining import explain as explain
    from softgeom.features import FeatureSet as FeatureSet
    from softgeom.layer import Ball as Ball
    from softgeom.layer import Box as Box
    from softgeom.layer import Ellipsoid as Ellipsoid
    from softgeom.layer import SoftmaxLayer as SoftmaxLayer
    from softgeom.layer import Unbounded as Unbounded
    from softgeom.prevention import repair_model
    from softgeom.pruning import Cut as Cut
    from softgeom.pruning import prune as prune
    from softgeom.scan_result import Scan as Scan
    from softgeom.scanning import scan as scan
    from softgeom.surveying import survey as survey
    from softgeom.verdict_table import read_verdicts as read_verdicts
    from softgeom.verifying import verify as verify
    from softgeom.watching import Epoch as Epoch
    from softgeom.watching import Watch as Watch
    from softgeom.watching import watch as watch

    load, repair = load_head, repair_model
    __version__: str

_MODULES = {
    "answering": "ask",
    "asking": "Answers Router",
    "bounding": "ceilings floor",
    "ceiling": "Ceilings",
    "certifying.verdict": "EvidenceError Finding",
    "checkpoints": "Head",
    "comparing": "diff",
    "covering": "Coverage coverage",
    "explaining": "Explanation explain",
    "layer": "Ball Box Ellipsoid FeatureSet SoftmaxLayer Unbounded",
    "pruning": "Cut prune",
    "scan_result": "Scan",
    "scanning": "scan",
    "surveying": "survey",
    "verdict_table": "read_verdicts",
    "verifying": "verify",
    "watching": "Epoch Watch watch",
}
_PLACES = {name: (module, name) for module, names in _MODULES.items() for name in names.split()}
_PLACES |= {"load": ("checkpoints", "load_head"), "repair": ("prevention", "repair_model")}
__all__ = sorted(_PLACES)


if not TYPE_CHECKING:

    def __getattr__(name):
        if name == "__version__":
            return _version()
        if name not in _PLACES:
            raise AttributeError(f"module 'softgeom' has no attribute {name!r}")
        module, attribute = _PLACES[name]
        return getattr(import_module(f"softgeom.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("softgeom")
    except PackageNotFoundError:  # imported from a source folder that was never installed
        return "0+unknown"
