"""``softgeom verify FOLDER MODEL``: every proof in a folder again, from the layer alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Unpack

from softgeom.asking import Answers, Router
from softgeom.ceiling import Ceilings
from softgeom.certifying.evidence_file import read_header
from softgeom.certifying.folder import BLOCKS, EVIDENCE, Report, verify_folder
from softgeom.certifying.verdict import Unknown
from softgeom.commands import options as asked
from softgeom.commands.answers_folder import ANSWERS, LAYER, listed, verify_answers
from softgeom.commands.boundary import DONE, UNDECIDED
from softgeom.commands.ceiling import CEILINGS
from softgeom.commands.results import load_scan
from softgeom.layer import SoftmaxLayer, fingerprint
from softgeom.scan_result import Scan
from softgeom.scanner import scan

Found = Report | Answers | Router | Ceilings


def add(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    where = "where softgeom scan, ask or ceiling wrote, or one file of proofs"
    parser.add_argument("folder", type=Path, help=where)
    asked.add_model(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prove everything in the folder again; the first class or order that fails is named."""
    layer = asked.read_head(options).layer
    checked = _checked(options.folder, layer)
    for found in checked:
        print("\n".join(_lines(found, layer)))
    proofs, folder = {EVIDENCE, ANSWERS, CEILINGS, LAYER, BLOCKS}, options.folder
    beside = folder.iterdir() if folder.is_dir() else ()
    if others := sorted(path.name for path in beside if path.name not in proofs):
        print(f"not checked: {', '.join(others)}")
    undecided = any(
        not isinstance(found, Ceilings) and found.counts["undecided"] for found in checked
    )
    return UNDECIDED if undecided else DONE


def _lines(found: Found, layer: SoftmaxLayer) -> list[str]:
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
    path, head = Path(folder), asked.loaded(model, **options)
    found = _checked(path, head.layer)[0]
    return load_scan(path, head.layer, head) if isinstance(found, Report) else found


def _checked(path: Path, layer: SoftmaxLayer) -> list[Found]:
    """What a folder or a file holds, every proof of it checked; of a scan the report."""
    if path.is_file():
        check = _CHECKS[_NAMES[read_header(path)["holds"]]]
        return [check(path, layer)]
    found = [
        check(path / name, layer) for name, check in _CHECKS.items() if (path / name).is_file()
    ]
    if not found:
        raise ValueError(f"{path} holds no proofs: none of {', '.join(_CHECKS)} is there.")
    return found


def _verified_scan(path: Path, layer: SoftmaxLayer) -> Report:
    report = verify_folder(path, layer)
    # a class that this version decides, yet the file calls undecided, was weakened or is old
    if report.undecided:
        features = load_scan(path, layer).features
        for f in scan(layer, list(report.undecided), features=features).findings:
            if not isinstance(f.evidence, Unknown):
                filed = f"Class {f.index} ({layer.token(f.index)}) is stored as undecided"
                raise ValueError(f"{filed}, but is provably {f.evidence.verdict}: scan again.")
    return report


# in the order in which a folder is told about
_CHECKS = {EVIDENCE: _verified_scan, ANSWERS: verify_answers, CEILINGS: Ceilings.load}
_NAMES = {"scan": EVIDENCE, "answers": ANSWERS, "experts": ANSWERS, "ceilings": CEILINGS}
