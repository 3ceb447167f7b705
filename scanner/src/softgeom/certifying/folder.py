"""A scan as a folder: the proofs, and what is made from them for people.

    write_folder(out, scan, about)      # about: whatever the summary should say beside
    report = verify_folder(out, layer)  # ValueError: one sentence, naming the first bad class

``evidence.safetensors`` is the scan. ``verdicts.csv``, ``summary.json`` and ``card.html`` are
copies for people: nothing reads them back, and a verification says that it did not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softgeom.certifying.evidence_file import FORMAT, load_parts, save_parts
from softgeom.certifying.kernel import verify_parts
from softgeom.certifying.verdict import EvidenceError, Unknown
from softgeom.layer import SoftmaxLayer, fingerprint
from softgeom.verdict_table import EVIDENCE, count_verdicts, verdict_table, write_verdicts
from softgeom.writing import write_text

if TYPE_CHECKING:
    from softgeom.scan_result import Scan

TABLE, SUMMARY, CARD = "verdicts.csv", "summary.json", "card.html"
BLOCKS = "blocks"  # of a scan under way, checked when they are used


@dataclass(frozen=True)
class Report:
    """What a verification found."""

    fingerprint: str  # of the layer
    classes: int  # of the layer
    scanned: int
    counts: dict[str, int]
    features: str
    features_digest: str
    undecided: tuple[int, ...]
    # of its unargmaxable classes, how many are so under which other condition on the features
    wider: dict[str, int]


def write_folder(
    out: str | Path, found: Scan, about: Mapping[str, Any] | None = None, card: str | None = None
) -> tuple[Scan, dict[str, Any]]:
    """Check a scan, write it as a folder, made if need be; the scan as it was written, and its
    summary.

    ``about`` is more for the summary, such as the model's name; ``card`` a page to look at.
    EvidenceError if some evidence does not prove its verdict.
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    findings = sorted(found.findings, key=lambda f: f.index)
    wider = [(part.features, part.findings) for part in found.wider]
    verify_parts(found.layer, found.features, findings, wider)
    for name in (SUMMARY, TABLE, CARD):  # an old one would speak of another scan
        (out / name).unlink(missing_ok=True)
    save_parts(out / EVIDENCE, found.layer, [(found.features, findings), *wider])
    write_verdicts(verdict_table(found.layer, found.features, findings, wider), out / TABLE)
    if card is not None:
        write_text(out / CARD, card, "backslashreplace")
    summary = {
        **(about or {}),
        "format": FORMAT,
        "fingerprint": fingerprint(found.layer),
        "classes": found.layer.classes,
        "scanned": len(findings),
        "feature_set": found.features.describe(),
        "counts": count_verdicts(findings),
        "versions": _versions(),
    }
    write_text(out / SUMMARY, json.dumps(summary, indent=2) + "\n")
    return replace(found, findings=findings), summary


def verify_folder(out: str | Path, layer: SoftmaxLayer) -> Report:
    """Prove every verdict, margin and radius of a folder, or of its evidence, from the layer alone;
    ValueError, one sentence, says what is wrong and where.
    """
    path = Path(out)
    (features, findings), *wider = load_parts(path / EVIDENCE if path.is_dir() else path, layer)
    verify_parts(layer, features, findings, wider)
    return Report(
        fingerprint(layer),
        layer.classes,
        len(findings),
        count_verdicts(findings),
        features.describe(),
        features.digest(),
        tuple(f.index for f in findings if isinstance(f.evidence, Unknown)),
        {others.condition(): len(more) for others, more in wider},
    )


def _versions() -> dict[str, str]:
    found = {}
    for name in ("softgeom", "numpy", "scipy", "highspy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


__all__ = ["EVIDENCE", "EvidenceError", "Report", "verify_folder", "write_folder"]
