"""``softgeom.verify``: every proof in a folder of results again, from the layer alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

from softgeom import scanner
from softgeom.asking import Answers, Router
from softgeom.ceiling import Ceilings
from softgeom.certifying.evidence_file import read_header
from softgeom.certifying.folder import EVIDENCE, Report, verify_folder
from softgeom.certifying.verdict import Unknown
from softgeom.layer import SoftmaxLayer
from softgeom.options import LayerOptions, loaded, spelled_out
from softgeom.results import ANSWERS, CEILINGS, load_scan, verify_answers
from softgeom.scan_result import Scan

Found = Report | Answers | Router | Ceilings


@spelled_out(LayerOptions)
def verify(
    folder: str | Path, model: Any, **options: Unpack[LayerOptions]
) -> Scan | Answers | Router | Ceilings:
    """Check every proof in a folder of results again, without a solver; what the folder holds, of
    several things the first of scan, answers and ceilings.

    Parameters
    ----------
    folder : path
        Where a scan, answers or ceilings were written, or one file of proofs.
    model, **options
        The model, as for ``softgeom.load``.

    Raises
    ------
    ValueError
        At the first class or order whose proof does not hold for this layer; the message names it.
    """
    path, head = Path(folder), loaded(model, **options)
    found = verified(path, head.layer)[0]
    return load_scan(path, head.layer, head) if isinstance(found, Report) else found


def verified(path: Path, layer: SoftmaxLayer) -> list[Found]:
    """What a folder or a file holds, every proof of it checked; of a scan the report."""
    if path.is_file():
        return [_CHECKS[_FILES[read_header(path)["holds"]]](path, layer)]
    there = {name: check for name, check in _CHECKS.items() if (path / name).is_file()}
    if not there:
        raise ValueError(f"{path} holds no proofs: none of {', '.join(_CHECKS)} is there.")
    return [check(path / name, layer) for name, check in there.items()]


def _verified_scan(path: Path, layer: SoftmaxLayer) -> Report:
    report = verify_folder(path, layer)
    # a class that this version decides, yet the file calls undecided, was weakened or is old
    if report.undecided:
        features = load_scan(path, layer).features
        for f in scanner.scan(layer, list(report.undecided), features=features).findings:
            if not isinstance(f.evidence, Unknown):
                filed = f"Class {f.index} ({layer.token(f.index)}) is stored as undecided"
                raise ValueError(f"{filed}, but is provably {f.evidence.verdict}: scan again.")
    return report


# in the order in which a folder is checked
_CHECKS = {EVIDENCE: _verified_scan, ANSWERS: verify_answers, CEILINGS: Ceilings.load}
_FILES = {"scan": EVIDENCE, "answers": ANSWERS, "experts": ANSWERS, "ceilings": CEILINGS}
