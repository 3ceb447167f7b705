"""Findings in one ``.npz``: plain arrays and one JSON string, nothing that executes when it is read.

Points of one dtype are stacked; captors of all classes are concatenated with their counts. A fingerprint of the layer
(shape, dtype, SHA-256 of W and b) goes with them, so that evidence is never checked against another layer unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.verdict import Captors, Evidence, Finding, Twin, Unknown, Witness
from softgeom.layer import FeatureSet, SoftmaxLayer

FORMAT = 2
KINDS = ("witness32", "witness64", "captors", "twin", "unknown")


def fingerprint(layer: SoftmaxLayer) -> str:
    """SHA-256 over shape, dtype and entries of W and b."""
    digest = hashlib.sha256(repr((layer.W.shape, layer.W.dtype.str, layer.b is None)).encode())
    for start in range(0, layer.classes, 4096):
        digest.update(np.ascontiguousarray(layer.W[start : start + 4096]).data)
    if layer.b is not None:
        digest.update(layer.b.astype(np.float64).tobytes())
    return digest.hexdigest()


def block_path(folder: str | Path, key: str, features: FeatureSet, classes: NDArray[np.intp]) -> Path:
    """The file of one block of a scan: its name says which layer, stage, seed, features and classes it belongs to."""
    digest = hashlib.sha256(json.dumps([key, features.to_json(), FORMAT]).encode())
    digest.update(np.asarray(classes, dtype="<i8").tobytes())
    return Path(folder) / f"block-{digest.hexdigest()[:32]}.npz"


def save_findings(
    path: str | Path, layer: SoftmaxLayer, features: FeatureSet, findings: list[Finding], key: str | None = None
) -> None:
    """Write findings to ``path`` under a temporary name and rename: a killed writer leaves no half file."""
    kinds = [_kind(f.evidence) for f in findings]
    points = {
        name: [f.evidence.point for f, kind in zip(findings, kinds, strict=True) if kind == name]  # type: ignore[union-attr]
        for name in ("witness32", "witness64")
    }
    captors = [f.evidence for f in findings if isinstance(f.evidence, Captors)]
    head = {
        "format": FORMAT,
        "layer": key or fingerprint(layer),
        "features": features.to_json(),
        "methods": [f.method for f in findings],
        "reasons": [f.evidence.reason for f in findings if isinstance(f.evidence, Unknown)],
    }
    arrays: dict[str, NDArray[Any]] = {
        "head": np.array(json.dumps(head)),
        "classes": np.array([f.index for f in findings], dtype=np.int64),
        "kinds": np.array([KINDS.index(kind) for kind in kinds], dtype=np.int8),
        "steps": np.array([f.steps for f in findings], dtype=np.int64),
        "margins": np.array([f.margin for f in findings], dtype=np.float64),
        "radii": np.array([f.radius for f in findings], dtype=np.float64),
        "points32": np.array(points["witness32"], dtype=np.float32),
        "points64": np.array(points["witness64"], dtype=np.float64),
        "captor_counts": np.array([len(c.rivals) for c in captors], dtype=np.int64),
        "captors": np.concatenate([c.rivals for c in captors] or [np.zeros(0, np.intp)]).astype(np.int64),
        "weights": np.concatenate([c.weights for c in captors] or [np.zeros(0)]),
        "twins": np.array([f.evidence.twin for f in findings if isinstance(f.evidence, Twin)], dtype=np.int64),
        "bounds": np.array([f.evidence.bound for f in findings if isinstance(f.evidence, Unknown)], dtype=np.float64),
    }
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    temporary.replace(path)


def load_findings(path: str | Path, layer: SoftmaxLayer, key: str | None = None) -> tuple[FeatureSet, list[Finding]]:
    """Read what ``save_findings`` wrote for this layer.

    Raises
    ------
    ValueError
        If the file is missing, damaged, of another kind, or belongs to another layer.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no saved scan at {path}.")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        head = json.loads(str(arrays["head"]))
        known = head["format"] == FORMAT
        belongs = known and head["layer"] == (key or fingerprint(layer))
        findings = _findings(arrays, head) if belongs else []
        features = FeatureSet.from_json(head["features"])
    except (KeyError, IndexError, TypeError, ValueError, OSError, EOFError, StopIteration, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is no saved scan, or is damaged ({error}): scan the layer again.") from None
    if not known:
        raise ValueError(f"{path} was written in format {head['format']}; this version reads format {FORMAT}.")
    if not belongs:
        raise ValueError(f"{path} belongs to another layer: its fingerprint differs from this one's.")
    return features, findings


def _findings(arrays: dict[str, NDArray[Any]], head: dict[str, Any]) -> list[Finding]:
    ends = np.cumsum(arrays["captor_counts"])[:-1]
    captors = zip(np.split(arrays["captors"], ends), np.split(arrays["weights"], ends), strict=True)
    supply: dict[str, Iterator[Evidence]] = {
        "witness32": (Witness(point) for point in arrays["points32"]),
        "witness64": (Witness(point) for point in arrays["points64"]),
        "captors": (Captors(rivals.astype(np.intp), weights) for rivals, weights in captors),
        "twin": (Twin(int(i)) for i in arrays["twins"]),
        "unknown": (Unknown(float(b), str(r)) for b, r in zip(arrays["bounds"], head["reasons"], strict=True)),
    }
    columns = (arrays["classes"], arrays["kinds"], head["methods"], arrays["steps"], arrays["margins"], arrays["radii"])
    return [
        Finding(int(index), next(supply[KINDS[kind]]), str(method), int(steps), float(margin), float(radius))
        for index, kind, method, steps, margin, radius in zip(*columns, strict=True)
    ]


def _kind(evidence: Evidence) -> str:
    if isinstance(evidence, Witness):
        return "witness64" if evidence.point.dtype == np.float64 else "witness32"
    return {Captors: "captors", Twin: "twin", Unknown: "unknown"}[type(evidence)]
