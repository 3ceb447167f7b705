"""``softgeom verify FOLDER MODEL``: every proof in a folder again, from the layer alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Unpack

from softgeom.bottleneck.asking import Answers, Router
from softgeom.bottleneck.ceilings import Ceilings
from softgeom.bottleneck.certifying.evidence_file import load_parts
from softgeom.bottleneck.certifying.folder import EVIDENCE, Report, verify_folder
from softgeom.bottleneck.certifying.verdict import Unknown
from softgeom.bottleneck.scan_result import Scan
from softgeom.bottleneck.scanner import scan
from softgeom.commands import ceiling
from softgeom.commands import options as asked
from softgeom.commands.answers_folder import ANSWERS, LAYER, TABLE, listed, verify_answers
from softgeom.commands.boundary import DONE, UNDECIDED
from softgeom.commands.results import load_scan
from softgeom.layer import SoftmaxLayer, fingerprint


def add(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("folder", type=Path, help="where softgeom scan, ask or ceiling wrote")
    asked.add_model(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check table, evidence and summary against the layer; the first row that differs is named."""
    layer = asked.read_head(options).layer
    found = _checked(options.folder, layer)
    print("\n".join(_lines(found, layer)))
    if unchecked := _unchecked(options.folder, found):
        print(f"not checked beyond its hash, or not at all: {', '.join(unchecked)}")
    undecided = 0 if isinstance(found, Ceilings) else found.counts["undecided"]
    return UNDECIDED if undecided else DONE


def _lines(found: Report | Answers | Router | Ceilings, layer: SoftmaxLayer) -> list[str]:
    """About which layer and which features, and what is proven."""
    if isinstance(found, Ceilings):
        return [
            _about(fingerprint(layer), found.features.describe(), found.features.digest()),
            f"{len(found):,} ceilings of probability re-checked without a solver"
            + _share(len(found), layer.classes),
        ]
    proven = sum(found.counts.values()) - found.counts["undecided"]
    if not isinstance(found, Report):
        about = f"experts in the top {found.k}" if isinstance(found, Router) else "orders"
        key = fingerprint(found.layer)
        share = _share(len(found.experts), layer.classes) if isinstance(found, Router) else ""
        return [
            _about(key, found.features.describe(), found.features.digest()) + f"; {about}",
            f"{proven:,} answers re-checked without a solver{share}: {listed(found.counts)}",
        ]
    share = _share(found.scanned, found.classes)
    return [
        _about(found.fingerprint, found.features, found.features_digest),
        f"{proven:,} verdicts re-checked without a solver{share}: {listed(found.counts)}",
        *(
            f"{count:,} of them unargmaxable {condition}, re-checked too"
            for condition, count in found.wider.items()
        ),
    ]


def _share(looked_at: int, classes: int) -> str:
    return "" if looked_at == classes else f" of a layer of {classes:,} classes"


def _about(key: str, features: str, digest: str) -> str:
    return f"layer {key}; {features}, SHA-256 {digest}"


def verify_model(
    folder: str | Path, model: Any, **options: Unpack[asked.LayerOptions]
) -> Scan | Answers | Router | Ceilings:
    """Check every proof in a folder of results again, without a solver; what the folder holds.

    Parameters
    ----------
    folder : path
        Where a scan, answers or ceilings were written.
    model, **options
        The model, as for ``softgeom.load``.

    Raises
    ------
    ValueError
        At the first row whose proof does not hold for this layer; the message names it.
    """
    folder, head = Path(folder), asked.loaded(model, **options)
    found = _checked(folder, head.layer)
    return load_scan(folder, head.layer, head) if isinstance(found, Report) else found


def _checked(folder: Path, layer: SoftmaxLayer) -> Report | Answers | Router | Ceilings:
    """What the folder holds, every proof of it checked; of a scan the report."""
    if (folder / ANSWERS).is_file():
        return verify_answers(folder, layer)
    if (folder / ceiling.CEILINGS).is_file():
        return ceiling.verify(folder, layer)
    report = verify_folder(folder, layer)
    _try_again(folder, layer, report)
    return report


def _unchecked(folder: Path, report: Report | Answers | Router | Ceilings) -> list[str]:
    """What else is in the folder."""
    if isinstance(report, Report):
        return list(report.unchecked)
    ceilings = {ceiling.CEILINGS, ceiling.TABLE, "blocks"}
    known = ceilings if isinstance(report, Ceilings) else {ANSWERS, TABLE, LAYER}
    return sorted(path.name for path in folder.iterdir() if path.name not in known)


def _try_again(folder: Path, layer: SoftmaxLayer, report: Report) -> None:
    """A class that this version decides, yet the folder calls undecided, was weakened or is old."""
    if report.undecided:
        features = load_parts(folder / EVIDENCE, layer)[0][0]
        for f in scan(layer, list(report.undecided), features=features).findings:
            if not isinstance(f.evidence, Unknown):
                filed = f"Class {f.index} ({layer.token(f.index)}) is filed as undecided"
                raise ValueError(f"{filed}, but is {f.evidence.verdict}: scan again.")
