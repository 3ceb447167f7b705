"""A scan as a folder that anyone can check: verdicts.csv, evidence.npz, summary.json, bound
together by SHA-256.

    write_folder(out, scan, about)      # about: whatever the summary should say beside
    report = verify_folder(out, layer)  # ValueError: one sentence, naming the first bad row

Hashes find accidents. Whoever recomputes them after an edit is found by the verification itself:
each verdict, margin and radius is proven again from the evidence, the list of classes must be
complete, and each table must be that of the evidence. docs/certificates.md is the format.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from softgeom.bottleneck.certifying.evidence_file import FORMAT, load_parts, save_findings
from softgeom.bottleneck.certifying.kernel import verify_parts
from softgeom.bottleneck.certifying.verdict import EvidenceError, Finding, Unknown
from softgeom.bottleneck.verdict_table import count_verdicts, verdict_table, write_verdicts
from softgeom.layer import SoftmaxLayer, fingerprint_of, identity
from softgeom.writing import write_text

if TYPE_CHECKING:
    from softgeom.bottleneck.scan_result import Scan

TABLE, EVIDENCE, SUMMARY = "verdicts.csv", "evidence.npz", "summary.json"
PARQUET, CARD = "verdicts.parquet", "card.html"  # the table again, and a page to look at
BLOCKS = "blocks"  # of a scan under way, checked when they are used
LONGEST_SUMMARY = 2**24  # bytes


@dataclass(frozen=True)
class Report:
    """What a verification found: all was as the folder says."""

    fingerprint: str  # of the layer
    classes: int  # of the layer
    scanned: int
    counts: dict[str, int]
    features: str
    features_digest: str
    undecided: tuple[int, ...]
    unchecked: tuple[str, ...]  # what else is in the folder
    # of its unargmaxable classes, how many are so under which other condition on the features
    wider: dict[str, int]

    def __str__(self) -> str:
        share = (
            "every class"
            if self.scanned == self.classes
            else f"{self.scanned:,} of {self.classes:,} classes"
        )
        found = ", ".join(f"{count:,} {verdict}" for verdict, count in self.counts.items() if count)
        return (
            f"verified for {share} of layer {self.fingerprint[:16]}, features {self.features}: "
            f"{found}"
            + "".join(f"; of the unargmaxable {n:,} {where}" for where, n in self.wider.items())
        )


def write_folder(
    out: str | Path, found: Scan, about: Mapping[str, Any] | None = None, card: str | None = None
) -> Scan:
    """Check a scan, and write it as a folder, the summary last; the scan as it was written.

    Parameters
    ----------
    out : path
        The folder, made if need be.
    found : Scan
        The verdicts.
    about : mapping, optional
        More for the summary, such as the model's name.
    card : str, optional
        A page to look at.

    Raises
    ------
    EvidenceError
        If some evidence does not prove its verdict.
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    wider = [(part.features, part.findings) for part in found.wider]
    verify_parts(found.layer, found.features, found.findings, wider)
    findings = sorted(found.findings, key=lambda f: f.index)
    for name in (SUMMARY, PARQUET, CARD):  # an old one would speak of another scan
        (out / name).unlink(missing_ok=True)
    save_findings(out / EVIDENCE, found.layer, found.features, findings, wider=wider)
    write_verdicts(verdict_table(found.layer, found.features, findings, wider), out / TABLE)
    if card is not None:
        write_text(out / CARD, card, "backslashreplace")
    summary = {
        **(about or {}),
        "format": FORMAT,
        "layer": identity(found.layer),
        "classes": found.layer.classes,
        "scope": _scope(findings),
        "feature_set": found.features.describe(),
        "counts": count_verdicts(findings),
        "versions": _versions(),
        "sha256": {
            name: _sha256(out / name)
            for name in (TABLE, EVIDENCE, PARQUET, CARD)
            if (out / name).is_file()
        },
    }
    summary["digest"] = _digest(summary)
    write_text(out / SUMMARY, json.dumps(summary, indent=2) + "\n")
    return replace(found, findings=findings)


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
    for name in (TABLE, EVIDENCE, PARQUET, CARD):
        _check_hash(out / name, summary["sha256"].get(name))
    ours = identity(layer)
    if not _same(summary["layer"], ours):
        raise ValueError(
            f"{out} belongs to another layer: the SHA-256 of W or b differs from this one's."
        )
    (features, findings), *wider = load_parts(out / EVIDENCE, layer, ours)
    _check_completeness(out, summary, layer, findings)
    verify_parts(layer, features, findings, wider)
    _check_table(out, verdict_table(layer, features, findings, wider))
    counts = count_verdicts(findings)
    also = {others.condition(): len(more) for others, more in wider}
    stated = {
        "feature_set": features.describe(),
        "counts": counts,
        "unargmaxable_also": also,
        "scanned": len(findings),
        "fingerprint": fingerprint_of(ours),
        "features": layer.dimension,
        "bias": layer.b is not None,
        "dtype": str(layer.W.dtype),
        "named": layer.tokens is not None,
    }
    for name, proven in stated.items():
        if name in summary and not _same(summary[name], proven):
            raise ValueError(
                f"{out / SUMMARY} says {name} {summary[name]!r:.80}, but the evidence proves "
                f"{proven!r:.80}."
            )
    known = {TABLE, EVIDENCE, PARQUET, SUMMARY, BLOCKS}
    return Report(
        fingerprint_of(ours),
        layer.classes,
        len(findings),
        counts,
        features.describe(),
        features.digest(),
        tuple(f.index for f in findings if isinstance(f.evidence, Unknown)),
        tuple(sorted(path.name for path in out.iterdir() if path.name not in known)),
        also,
    )


def _check_hash(path: Path, digest: str | None) -> None:
    if digest is None and path.name in (PARQUET, CARD):
        if path.exists():
            raise ValueError(f"{path} was added after the scan: {SUMMARY} does not name it.")
    elif not path.is_file():
        raise ValueError(f"{path.parent} has no {path.name}: it is no complete scan.")
    elif _sha256(path) != digest:
        raise ValueError(
            f"{path} was changed after the scan: its SHA-256 is not the one in {SUMMARY}."
        )


def _check_completeness(
    out: Path, summary: dict[str, Any], layer: SoftmaxLayer, findings: Sequence[Finding]
) -> None:
    if not _same(summary["classes"], layer.classes):
        raise ValueError(
            f"{out / SUMMARY} speaks of {summary['classes']!r:.20} classes; the layer has "
            f"{layer.classes}."
        )
    if not _same(summary["scope"], _scope(findings)):
        missing = sorted(set(range(layer.classes)) - {f.index for f in findings})
        first = f"; the first class without evidence is {missing[0]}" if missing else ""
        raise ValueError(
            f"{out / EVIDENCE} does not hold the classes that {SUMMARY} says were scanned{first}."
        )


def _check_table(out: Path, table: pd.DataFrame) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_verdicts(table, Path(folder) / TABLE)
        with (Path(folder) / TABLE).open(encoding="utf-8", newline="") as file:
            check_text(out / TABLE, file.read())
        ours = Path(folder) / PARQUET
        usual = ours.stat().st_size if ours.is_file() else 0
    if not (out / PARQUET).is_file():
        return
    size = (out / PARQUET).stat().st_size
    if size > 2 * usual + 2**20:
        raise ValueError(
            f"{out / PARQUET} is {size:,} bytes long; the table of this evidence takes {usual:,}."
        )
    if not _same_table(out / PARQUET, table):
        raise ValueError(f"{out / PARQUET} differs from the evidence.")


def check_text(path: Path, expected: str) -> None:
    """ValueError unless a table is written just so, character for character: what one programme
    takes for a cell, another may take for a row. It names the first row that differs.
    """
    with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
        found = file.read(2 * len(expected) + 2**16)
    if found == expected:
        return
    pairs = zip_longest(found.split("\n"), expected.split("\n"))
    number, (theirs, proven) = next((n, pair) for n, pair in enumerate(pairs) if pair[0] != pair[1])
    what = f"row {number}" if number else "its header"
    raise ValueError(
        f"{path} differs from the evidence in {what}: {theirs!r:.100} instead of {proven!r:.100}."
    )


def _same_table(path: Path, table: pd.DataFrame) -> bool:
    """Whether a parquet file holds this table, value for value.

    Its footer is looked at first, so that a small file cannot become a large table: so many rows,
    of these columns, by no codec that shrinks more than some twenty times. Text stays as indices
    into its dictionary, so that one long word does not count once a row.
    """
    names = list(table.columns)
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ValueError(f"{path} cannot be compared without pyarrow: install that.") from None
    try:
        footer = parquet.read_metadata(path)
        groups = [footer.row_group(n) for n in range(footer.num_row_groups)]
        chunks = [group.column(k) for group in groups for k in range(group.num_columns)]
        if footer.num_rows != len(table) or footer.schema.names != names:
            return False
        if sum(group.num_rows for group in groups) != len(table):
            return False
        if not {chunk.compression for chunk in chunks} <= {"UNCOMPRESSED", "SNAPPY"}:
            raise ValueError("it is compressed in another way")
        words = ["token", "verdict", "method"]
        stored = parquet.read_table(path, read_dictionary=words).to_pandas()
    except (ArrowException, ValueError, OSError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is not a valid table ({str(error)[:80]}).") from None
    if list(stored.columns) != names or len(stored) != len(table):
        return False
    rows = zip(*(stored[name].tolist() for name in names), strict=True)
    ours = zip(*(table[name].tolist() for name in names), strict=True)
    # repr: of a float all digits, of a NaN its name
    return all(repr(a) == repr(b) for a, b in zip(rows, ours, strict=True))


def _read_summary(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ValueError(f"{path.parent} has no {path.name}: it is no complete scan.")
    try:
        if path.stat().st_size > LONGEST_SUMMARY:
            raise ValueError("it is too long")
        summary = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_each_once)
        fields = {"layer", "classes", "scope", "feature_set", "counts", "sha256", "digest"}
        hashed = summary["sha256"] if fields <= set(summary) else None
        if not isinstance(hashed, dict) or not _same(summary.get("format"), FORMAT):
            raise ValueError("it says nothing about what was scanned, or is of another version")
        if not {TABLE, EVIDENCE} <= set(hashed) <= {TABLE, EVIDENCE, PARQUET, CARD}:
            raise ValueError("it names other files")
        if summary["digest"] != _digest(summary):
            raise ValueError("it was changed after the scan")
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise ValueError(
            f"{path} is not a summary of a scan that can be verified ({reason})."
        ) from None
    return dict(summary)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # the first for some readers, the last for others
        raise ValueError("a field occurs twice")
    return found


def _same(stored: Any, ours: Any) -> bool:
    """Whether JSON is that, as it is written: to Python 1.0 and true are 1 as well."""
    return json.dumps(stored, sort_keys=True) == json.dumps(ours, sort_keys=True)


def _scope(findings: Sequence[Finding]) -> dict[str, Any]:
    """How many classes were scanned, and the SHA-256 of their numbers as 64-bit integers: the list
    need not be stored twice.
    """
    indices = np.array([f.index for f in findings], dtype="<i8")
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


__all__ = ["EvidenceError", "Report", "verify_folder", "write_folder"]
