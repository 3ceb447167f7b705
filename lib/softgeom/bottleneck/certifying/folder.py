"""A scan as a folder that anyone can check: verdicts.csv, evidence.npz, summary.json, bound
together by SHA-256.

    write_folder(out, scan, about)      # about: whatever the summary should say beside
    report = verify_folder(out, layer)  # ValueError: one sentence, naming the first row that differs

Hashes find accidents. Whoever recomputes them after an edit is found by the verification itself:
each verdict, margin and radius is computed again from the evidence, the list of classes must be
complete, and a class that is filed as undecided is tried again. docs/certificates.md is the format.
"""

from __future__ import annotations

import csv
import hashlib
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.bottleneck.certifying.archive import load_findings
from softgeom.bottleneck.certifying.evidence_file import identity
from softgeom.bottleneck.certifying.verdict import (
    EvidenceError,
    Finding,
    Unknown,
    Witness,
    check_evidence,
)
from softgeom.bottleneck.certifying.witness import WitnessChecker
from softgeom.bottleneck.scan_result import Scan
from softgeom.bottleneck.scanner import scan
from softgeom.bottleneck.verdict_table import write_verdicts
from softgeom.layer import SoftmaxLayer
from softgeom.writing import write_text

TABLE, EVIDENCE, SUMMARY = "verdicts.csv", "evidence.npz", "summary.json"
# margins computed on two machines agree to this, and to the rounding of the product that they come
# from
SAME = 1e-6
LONGEST_SUMMARY = 2**24  # bytes


@dataclass(frozen=True)
class Report:
    """What a verification found: all was as the folder says."""

    classes: int  # of the layer
    scanned: int
    counts: dict[str, int]
    features: str

    def __str__(self) -> str:
        share = (
            "every class"
            if self.scanned == self.classes
            else f"{self.scanned:,} of {self.classes:,} classes"
        )
        found = ", ".join(f"{count:,} {verdict}" for verdict, count in self.counts.items() if count)
        return f"verified for {share}, features {self.features}: {found}"


def write_folder(out: str | Path, found: Scan, about: dict[str, Any] | None = None) -> Scan:
    """Check a scan, and write it as a folder; the scan with the margins that were written.

    Parameters
    ----------
    out : path
        The folder, made if need be.
    found : Scan
        The verdicts.
    about : dict, optional
        More for the summary, such as the model's name.

    Raises
    ------
    EvidenceError
        If some evidence does not prove its verdict.
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    checked = recomputed(found)
    write_verdicts(checked.table, out / TABLE)
    checked.save(out / EVIDENCE)
    write_text(out / SUMMARY, json.dumps(sealed(out, checked, about or {}), indent=2) + "\n")
    return checked


def recomputed(found: Scan) -> Scan:
    """The scan with every verdict checked, as ``verify`` does, and margin and radius computed from
    the evidence alone.

    Raises
    ------
    EvidenceError
        At the first class whose evidence does not prove its verdict.
    """
    return Scan(found.layer, found.features, list(_recomputed(found)))


def sealed(out: Path, found: Scan, about: dict[str, Any]) -> dict[str, Any]:
    """The summary of a folder that holds table and evidence already: it binds both, the layer and
    itself by SHA-256.
    """
    summary = {
        **about,
        "layer": identity(found.layer),
        "classes": found.layer.classes,
        "scope": _scope(found),
        "feature_set": found.features.describe(),
        "counts": found.counts,
        "versions": _versions(),
        "sha256": {name: _sha256(out / name) for name in (TABLE, EVIDENCE)},
    }
    return {**summary, "digest": _digest(summary)}


def verify_folder(out: str | Path, layer: SoftmaxLayer) -> Report:
    """Check a folder against the layer: every file, every verdict, margin and radius, and that none
    is missing.

    Raises
    ------
    ValueError
        One sentence: what is wrong, and where; for the table the first row that differs.
    """
    out = Path(out)
    summary = _read_summary(out / SUMMARY)
    for name, digest in summary["sha256"].items():
        if not (out / name).is_file():
            raise ValueError(f"{out} has no {name}: it is no complete scan.")
        if _sha256(out / name) != digest:
            raise ValueError(
                f"{out / name} was changed after the scan: its SHA-256 is not the one in {SUMMARY}."
            )
    if summary["layer"] != identity(layer):
        raise ValueError(
            f"{out} belongs to another layer: the SHA-256 of W or b differs from this one's."
        )
    features, findings = load_findings(out / EVIDENCE, layer)
    stored = Scan(layer, features, findings)
    _check_completeness(out, summary, stored)
    checker = WitnessChecker(layer, features)
    for finding, again in zip(findings, _recomputed(stored), strict=True):
        _compare(finding, again, checker)
    _check_undecided(stored)
    _check_table(out, stored)
    for name, ours in (("feature_set", features.describe()), ("counts", stored.counts)):
        if summary[name] != ours:
            raise ValueError(
                f"{out / SUMMARY} says {name} {summary[name]!r:.80}, but the evidence proves "
                f"{ours!r:.80}."
            )
    return Report(layer.classes, len(findings), stored.counts, features.describe())


def _recomputed(found: Scan) -> Iterator[Finding]:
    """Each finding with margin and radius computed from its evidence alone.

    Raises
    ------
    EvidenceError
        At the first class whose evidence does not prove its verdict.
    """
    checker = WitnessChecker(found.layer, found.features)
    for start in range(0, len(found.findings), 1024):
        block = found.findings[start : start + 1024]
        won = [f for f in block if isinstance(f.evidence, Witness)]
        margins = checker.certify_many([f.evidence.point for f in won], [f.index for f in won])  # type: ignore[union-attr]
        proven = dict(zip([f.index for f in won], margins.tolist(), strict=True))
        radii = checker.radius(np.array([f.index for f in won], dtype=np.intp), margins)
        near = dict(zip([f.index for f in won], radii.tolist(), strict=True))
        for f in block:
            margin = proven.get(f.index, 0.0)
            if not margin > 0:  # no witness, or one that fails: the sentence comes from the checker
                margin = check_evidence(found.layer, found.features, f.index, f.evidence)
            yield Finding(
                f.index, f.evidence, f.method, f.steps, margin, near.get(f.index, float("nan"))
            )


def _compare(stored: Finding, again: Finding, checker: WitnessChecker) -> None:
    """Margins agree to SAME, and to the rounding of the products behind them; a radius is a margin
    in other units.
    """
    slack = SAME * abs(again.margin)
    if isinstance(stored.evidence, Witness) and stored.evidence.point.dtype != object:
        slack += float(checker.tolerance(stored.evidence.point[None])[0])
    relative = slack / abs(again.margin) if again.margin else 0.0
    for name, ours, theirs in (
        ("margin", again.margin, stored.margin),
        ("radius", again.radius, stored.radius),
    ):
        same = ours == theirs or (np.isnan(ours) and np.isnan(theirs))
        if not same and not abs(ours - theirs) <= relative * abs(ours):
            raise ValueError(
                f"Class {stored.index} ({checker.layer.token(stored.index)}): the stored "
                f"{name} is {theirs!r}, "
                f"but its evidence proves {ours!r}."
            )


def _check_completeness(out: Path, summary: dict[str, Any], stored: Scan) -> None:
    if summary["classes"] != stored.layer.classes:
        raise ValueError(
            f"{out / SUMMARY} speaks of {summary['classes']!r:.20} classes; the layer has "
            f"{stored.layer.classes}."
        )
    indices = [f.index for f in stored.findings]
    if len(set(indices)) != len(indices) or not all(0 <= t < stored.layer.classes for t in indices):
        raise ValueError(
            f"{out / EVIDENCE} names a class twice, or one that the layer does not have."
        )
    if _scope(stored) != summary["scope"]:
        missing = sorted(set(range(stored.layer.classes)) - set(indices))
        first = f"; the first class without evidence is {missing[0]}" if missing else ""
        raise ValueError(
            f"{out / EVIDENCE} does not hold the classes that {SUMMARY} says were scanned{first}."
        )


def _check_undecided(stored: Scan) -> None:
    """Nobody can prove that a class is undecidable; but one that this version decides was weakened,
    or is old.
    """
    open_ = [f.index for f in stored.findings if isinstance(f.evidence, Unknown)]
    if not open_:
        return
    for f in scan(stored.layer, open_, features=stored.features).findings:
        if not isinstance(f.evidence, Unknown):
            raise ValueError(
                f"Class {f.index} ({stored.layer.token(f.index)}) is filed as undecided, but "
                f"is {f.evidence.verdict}: scan again."
            )


def _check_table(out: Path, stored: Scan) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_verdicts(stored.table, Path(folder) / TABLE)
        expected = _rows(Path(folder) / TABLE)
        usual = (Path(folder) / TABLE).stat().st_size
    if (size := (out / TABLE).stat().st_size) > 2 * usual + 2**20:
        raise ValueError(
            f"{out / TABLE} is {size:,} bytes long; the table of this evidence takes {usual:,}."
        )
    try:
        rows = _rows(out / TABLE)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{out / TABLE} is no table ({str(error)[:80]}).") from None
    for number, (theirs, ours) in enumerate(zip(rows, expected, strict=False)):
        if theirs != ours:
            what = "its header" if not number else f"row {number} (class {ours[0]})"
            raise ValueError(
                f"{out / TABLE} differs from the evidence in {what}: {theirs!r:.100} instead "
                f"of {ours!r:.100}."
            )
    if len(rows) != len(expected):
        raise ValueError(
            f"{out / TABLE} has {len(rows) - 1} rows, but there is evidence for "
            f"{len(expected) - 1} classes."
        )


def _rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def _read_summary(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ValueError(f"{path.parent} has no {path.name}: it is no complete scan.")
    try:
        if path.stat().st_size > LONGEST_SUMMARY:
            raise ValueError("it is too long")
        summary = json.loads(path.read_text(encoding="utf-8"))
        known = {"layer", "classes", "scope", "feature_set", "counts", "sha256", "digest"} <= set(
            summary
        )
        if (
            not known
            or not isinstance(summary["sha256"], dict)
            or set(summary["sha256"]) != {TABLE, EVIDENCE}
        ):
            raise ValueError("it says nothing about what was scanned, or is of another version")
        if summary["digest"] != _digest(summary):
            raise ValueError("it was changed after the scan")
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise ValueError(
            f"{path} is no summary of a scan that can be verified ({reason})."
        ) from None
    return dict(summary)


def _scope(found: Scan) -> dict[str, Any]:
    """How many classes were scanned, and the SHA-256 of their numbers as 64-bit integers: the list
    need not be stored twice.
    """
    indices = np.array([f.index for f in found.findings], dtype="<i8")
    return {"count": len(indices), "sha256": hashlib.sha256(indices.tobytes()).hexdigest()}


def _digest(summary: dict[str, Any]) -> str:
    rest = {name: value for name, value in summary.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for part in iter(lambda: file.read(2**20), b""):
            digest.update(part)
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    found = {}
    for name in ("softgeom", "numpy", "scipy", "highspy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


__all__ = ["EvidenceError", "Report", "recomputed", "sealed", "verify_folder", "write_folder"]
