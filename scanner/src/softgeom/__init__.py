"""Which outputs of a model's last layer can never win, each verdict with a proof.

    import softgeom as sg
    found = sg.scan(model)          # file, hub id, torch module, matrix: which outputs never win?
    found["token"].verdict          # for t in found, found.table, found.plot(), found.verify()

Functions have the names and options of the commands. What `__all__` lists here is stable
(docs/howto.md).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

# what editors and type checkers see; looked up below when first used
if TYPE_CHECKING:
    from softgeom.asking import Answers as Answers
    from softgeom.asking import Router as Router
    from softgeom.ceiling.ceilings import Ceilings as Ceilings
    from softgeom.certifying.verdict import EvidenceError as EvidenceError
    from softgeom.certifying.verdict import Finding as Finding
    from softgeom.checkpoints.loading import Head as Head
    from softgeom.checkpoints.loading import load_head as load
    from softgeom.commands.ask import ask_model as ask
    from softgeom.commands.ceiling import ceilings_of_model as ceilings
    from softgeom.commands.ceiling import floors_of_model as floor
    from softgeom.commands.diff import diff_scans as diff
    from softgeom.commands.explain import Explanation as Explanation
    from softgeom.commands.explain import explain_model as explain
    from softgeom.commands.prune import prune_model as prune
    from softgeom.commands.repair import repair_model as repair
    from softgeom.commands.scan import scan_model as scan
    from softgeom.commands.survey import survey_models as survey
    from softgeom.commands.verify import verify_model as verify
    from softgeom.features import FeatureSet as FeatureSet
    from softgeom.layer import Ball as Ball
    from softgeom.layer import Box as Box
    from softgeom.layer import Ellipsoid as Ellipsoid
    from softgeom.layer import SoftmaxLayer as SoftmaxLayer
    from softgeom.layer import Unbounded as Unbounded
    from softgeom.pruning import Cut as Cut
    from softgeom.scan_result import Scan as Scan
    from softgeom.verdict_table import read_verdicts as read_verdicts

    __version__: str

_PLACES = {
    "Answers": "asking:Answers",
    "Ball": "layer:Ball",
    "Box": "layer:Box",
    "Ceilings": "ceiling.ceilings:Ceilings",
    "Cut": "pruning:Cut",
    "Ellipsoid": "layer:Ellipsoid",
    "EvidenceError": "certifying.verdict:EvidenceError",
    "Explanation": "commands.explain:Explanation",
    "FeatureSet": "features:FeatureSet",
    "Finding": "certifying.verdict:Finding",
    "Head": "checkpoints.loading:Head",
    "Router": "asking:Router",
    "Scan": "scan_result:Scan",
    "SoftmaxLayer": "layer:SoftmaxLayer",
    "Unbounded": "layer:Unbounded",
    "ask": "commands.ask:ask_model",
    "ceilings": "commands.ceiling:ceilings_of_model",
    "diff": "commands.diff:diff_scans",
    "explain": "commands.explain:explain_model",
    "floor": "commands.ceiling:floors_of_model",
    "load": "checkpoints.loading:load_head",
    "prune": "commands.prune:prune_model",
    "read_verdicts": "verdict_table:read_verdicts",
    "repair": "commands.repair:repair_model",
    "scan": "commands.scan:scan_model",
    "survey": "commands.survey:survey_models",
    "verify": "commands.verify:verify_model",
}
__all__ = [
    "Answers",
    "Ball",
    "Box",
    "Ceilings",
    "Cut",
    "Ellipsoid",
    "EvidenceError",
    "Explanation",
    "FeatureSet",
    "Finding",
    "Head",
    "Router",
    "Scan",
    "SoftmaxLayer",
    "Unbounded",
    "ask",
    "ceilings",
    "diff",
    "explain",
    "floor",
    "load",
    "prune",
    "read_verdicts",
    "repair",
    "scan",
    "survey",
    "verify",
]


if not TYPE_CHECKING:

    def __getattr__(name):
        if name == "__version__":
            return _version()
        if name not in _PLACES:
            raise AttributeError(f"module 'softgeom' has no attribute {name!r}")
        module, _, attribute = _PLACES[name].partition(":")
        return getattr(import_module(f"softgeom.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("softgeom")
    except PackageNotFoundError:  # imported from a source folder that was never installed
        return "0+unknown"
