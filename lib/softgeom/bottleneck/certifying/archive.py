"""Findings in one ``.npz``: plain arrays and one JSON string, nothing that executes when it is read.

Points of one dtype are stacked; captors of all classes are concatenated with their counts; fractions are text. The SHA-256
of W and b go with them, so that evidence is never checked against another layer unnoticed. docs/certificates.md is the format.
"""

from __future__ import annotations

import functools
import hashlib
import json
import zipfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.verdict import Captors, Evidence, Finding, Twin, Unknown, Witness
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.writing import whole

FORMAT = 3
KINDS = ("witness32", "witness64", "captors", "twin", "unknown", "witness_exact", "captors_exact")
DTYPES = {
    "classes": "<i8",
    "kinds": "|i1",
    "steps": "<i8",
    "margins": "<f8",
    "radii": "<f8",
    "points32": "<f4",
    "points64": "<f8",
    "captor_counts": "<i8",
    "captors": "<i8",
    "weights": "<f8",
    "twins": "<i8",
    "bounds": "<f8",
}


def identity(layer: SoftmaxLayer) -> dict[str, Any]:
    """Shape, dtype and SHA-256 (of the little-endian bytes, row by row) of W and of b; null for no b."""
    return {"W": _digest(layer.W), "b": None if layer.b is None else _digest(layer.b)}


def fingerprint(layer: SoftmaxLayer) -> str:
    """SHA-256 of the layer's identity as JSON."""
    return hashlib.sha256(json.dumps(identity(layer), sort_keys=True).encode()).hexdigest()


@functools.cache
def code() -> str:
    """SHA-256 of the source that finds and proves verdicts: a block of other code is computed anew."""
    package = Path(__file__).parents[2]
    decides = [*(package / "bottleneck").rglob("*.py"), *(package / "features").rglob("*.py"), *package.glob("*.py")]
    digest = hashlib.sha256()
    for file in sorted(decides):
        digest.update(f"{file.relative_to(package).as_posix()}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def block_path(folder: str | Path, key: str, features: FeatureSet, classes: NDArray[np.intp]) -> Path:
    """The file of one block of a scan: its name says which layer, stage, seed, features, classes and code it belongs to."""
    digest = hashlib.sha256(json.dumps([key, features.to_json(), FORMAT, code()]).encode())
    digest.update(np.asarray(classes, dtype="<i8").tobytes())
    return Path(folder) / f"block-{digest.hexdigest()[:32]}.npz"


def save_findings(
    path: str | Path, layer: SoftmaxLayer, features: FeatureSet, findings: list[Finding], key: str | None = None
) -> None:
    """Write findings to ``path``, all or nothing.

    ``key`` takes the place of the layer's fingerprint where that is known: a block of a scan does not hash W again.
    """
    kinds = [_kind(f.evidence) for f in findings]

    def chosen(*names: str) -> list[Any]:
        return [f.evidence for f, kind in zip(findings, kinds, strict=True) if kind in names]

    captors = chosen("captors", "captors_exact")
    head = {
        "format": FORMAT,
        "layer": key or fingerprint(layer),
        "identity": None if key else identity(layer),
        "of": layer.classes,
        "features": features.to_json(),
        "methods": [f.method for f in findings],
        "reasons": [e.reason for e in chosen("unknown")],
        "exact_points": [[fraction_text(v) for v in e.point] for e in chosen("witness_exact")],
        "exact_weights": [[fraction_text(v) for v in e.weights] for e in chosen("captors_exact")],
    }
    arrays = {
        "classes": [f.index for f in findings],
        "kinds": [KINDS.index(kind) for kind in kinds],
        "steps": [f.steps for f in findings],
        "margins": [f.margin for f in findings],
        "radii": [f.radius for f in findings],
        "points32": [e.point for e in chosen("witness32")],
        "points64": [e.point for e in chosen("witness64")],
        "captor_counts": [len(e.rivals) for e in captors],
        "captors": np.concatenate([e.rivals for e in captors] or [np.zeros(0, np.intp)]),
        "weights": np.concatenate([e.weights for e in chosen("captors")] or [np.zeros(0)]),
        "twins": [e.twin for e in chosen("twin")],
        "bounds": [e.bound for e in chosen("unknown")],
    }
    typed = {name: np.array(values, dtype=DTYPES[name]) for name, values in arrays.items()}
    with whole(path) as fresh, fresh.open("wb") as file:
        np.savez(file, allow_pickle=False, head=np.array(json.dumps(head)), **typed)


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
        findings = _findings(arrays, head, layer.dimension) if belongs else []
        features = FeatureSet.from_json(head["features"]) if belongs else None
    except (
        KeyError, IndexError, TypeError, ValueError, OSError, EOFError, StopIteration, ArithmeticError, AttributeError,
        RecursionError, MemoryError, NotImplementedError, zipfile.BadZipFile, zipfile.LargeZipFile,
    ) as error:  # fmt: skip
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise ValueError(f"{path} is no saved scan, or is damaged ({reason}): scan the layer again.") from None
    if not known:
        raise ValueError(f"{path} was written in format {head['format']!r:.20}; this version reads format {FORMAT}.")
    if features is None:
        raise ValueError(f"{path} belongs to another layer: its fingerprint differs from this one's.")
    return features, findings


def _findings(arrays: dict[str, NDArray[Any]], head: dict[str, Any], dimension: int) -> list[Finding]:
    for name, dtype in DTYPES.items():
        if arrays[name].dtype.str != dtype:
            raise ValueError(f"{name} is stored as {arrays[name].dtype.str}, not {dtype}")
        if name.startswith("points") and len(arrays[name]) and arrays[name].shape[1:] != (dimension,):
            raise ValueError(f"{name} has shape {arrays[name].shape} for {dimension} features")
    kinds = [KINDS[kind] for kind in arrays["kinds"].tolist()]
    ends = np.cumsum(arrays["captor_counts"])
    if len(arrays["captors"]) != (ends[-1] if len(ends) else 0):
        raise ValueError("captors and their counts disagree")
    rivals = iter(np.split(arrays["captors"].astype(np.intp), ends[:-1]) if len(ends) else [])
    weights, used = arrays["weights"], 0
    exact_points, exact_weights = iter(head["exact_points"]), iter(head["exact_weights"])
    supply: dict[str, Iterator[Any]] = {
        "witness32": iter(arrays["points32"]),
        "witness64": iter(arrays["points64"]),
        "twin": iter(arrays["twins"].tolist()),
        "unknown": zip(arrays["bounds"].tolist(), head["reasons"], strict=True),
    }
    evidence: list[Evidence] = []
    for kind in kinds:
        if kind in ("witness32", "witness64"):
            evidence.append(Witness(next(supply[kind])))
        elif kind == "witness_exact":
            evidence.append(Witness(read_fractions(next(exact_points), dimension)))
        elif kind == "captors":
            few = next(rivals)
            evidence.append(Captors(few, weights[used : used + len(few)]))
            used += len(few)
        elif kind == "captors_exact":
            few = next(rivals)
            evidence.append(Captors(few, read_fractions(next(exact_weights), len(few))))
        elif kind == "twin":
            evidence.append(Twin(int(next(supply[kind]))))
        else:
            bound, reason = next(supply[kind])
            evidence.append(Unknown(float(bound), str(reason)))
    left_over = [*supply.values(), rivals, exact_points, exact_weights]
    if used != len(weights) or any(next(rest, None) is not None for rest in left_over):
        raise ValueError("it holds evidence that belongs to no class")
    columns = (arrays["classes"], head["methods"], arrays["steps"], arrays["margins"], arrays["radii"])
    return [
        Finding(int(index), found, str(method), int(steps), float(margin), float(radius))
        for found, index, method, steps, margin, radius in zip(evidence, *columns, strict=True)
    ]


def _kind(evidence: Evidence) -> str:
    if isinstance(evidence, Witness):
        if evidence.point.dtype == object:
            return "witness_exact"
        return "witness64" if evidence.point.dtype == np.float64 else "witness32"
    if isinstance(evidence, Captors):
        return "captors_exact" if evidence.weights.dtype == object else "captors"
    return {Twin: "twin", Unknown: "unknown"}[type(evidence)]


def text_size(fractions: NDArray[Any]) -> int:
    """Bytes that exact weights or points (k,) take in the file."""
    return len(json.dumps([fraction_text(value) for value in fractions]))


def fraction_text(value: Fraction) -> str:
    """Numerator and denominator in hexadecimal."""
    return f"{value.numerator:x}/{value.denominator:x}"


def read_fractions(texts: list[str], size: int) -> NDArray[Any]:
    """What ``fraction_text`` wrote, of ``size`` numbers. ValueError when there are more or fewer."""
    if len(texts) != size:
        raise ValueError(f"{len(texts)} fractions stand where {size} belong")
    found = np.empty(size, dtype=object)
    for n, text in enumerate(texts):
        numerator, denominator = text.split("/")
        found[n] = Fraction(int(numerator, 16), int(denominator, 16))
    return found


def _digest(array: NDArray[Any]) -> dict[str, Any]:
    dtype = array.dtype.newbyteorder("<")
    digest = hashlib.sha256()
    for start in range(0, len(array), 4096):
        digest.update(np.ascontiguousarray(array[start : start + 4096], dtype=dtype).data)
    return {"shape": list(array.shape), "dtype": dtype.str, "sha256": digest.hexdigest()}
