"""A scan's findings in a file of evidence (certifying/evidence_file.py; docs/certificates.md), and
the blocks of a scan under way.
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.evidence_file import Form, Supply, filed_as, joined
from softgeom.bottleneck.certifying.verdict import Captors, Evidence, Finding, Twin
from softgeom.layer import FeatureSet, SoftmaxLayer

KINDS = ("witness32", "witness64", "captors", "twin", "unknown", "witness_exact", "captors_exact")
_NAMES: dict[type, str] = {Captors: "captors", Twin: "twin"}
FORM = Form(
    version=3,
    holds="saved scan",
    remedy="scan the layer again",
    dtypes={
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
    },
)


@functools.cache
def code() -> str:
    """SHA-256 of the source that finds and proves verdicts: a block of other code is computed anew."""
    package = Path(__file__).parents[2]
    decides = [
        *(package / "bottleneck").rglob("*.py"),
        *(package / "features").rglob("*.py"),
        *package.glob("*.py"),
    ]
    digest = hashlib.sha256()
    for file in sorted(decides):
        digest.update(f"{file.relative_to(package).as_posix()}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def block_path(
    folder: str | Path, key: str, features: FeatureSet, classes: NDArray[np.intp]
) -> Path:
    """The file of one block of a scan: its name says which layer, stage, seed, features, classes
    and code it belongs to.
    """
    digest = hashlib.sha256(json.dumps([key, features.to_json(), FORM.version, code()]).encode())
    digest.update(np.asarray(classes, dtype="<i8").tobytes())
    return Path(folder) / f"block-{digest.hexdigest()[:32]}.npz"


def save_findings(
    path: str | Path,
    layer: SoftmaxLayer,
    features: FeatureSet,
    findings: list[Finding],
    key: str | None = None,
) -> None:
    """Write findings to ``path``, all or nothing.

    ``key`` takes the place of the layer's fingerprint where that is known: a block of a scan does
    not hash W again.
    """
    evidence = [f.evidence for f in findings]
    captors = [e for e in evidence if isinstance(e, Captors)]
    arrays = {
        "classes": [f.index for f in findings],
        "kinds": [KINDS.index(filed_as(e, _NAMES.get(type(e), "unknown"))) for e in evidence],
        "steps": [f.steps for f in findings],
        "margins": [f.margin for f in findings],
        "radii": [f.radius for f in findings],
        "captor_counts": [len(e.rivals) for e in captors],
        "captors": joined(e.rivals for e in captors),
        "twins": [e.twin for e in evidence if isinstance(e, Twin)],
    }
    head = {"of": layer.classes, "methods": [f.method for f in findings]}
    FORM.save(path, layer, features, evidence, head, arrays, key)


def load_findings(
    path: str | Path, layer: SoftmaxLayer, key: str | None = None
) -> tuple[FeatureSet, list[Finding]]:
    """Read what ``save_findings`` wrote for this layer.

    Raises
    ------
    ValueError
        If the file is missing, damaged, of another kind, or belongs to another layer.
    """
    return FORM.load(path, layer, _findings, key)


def _findings(supply: Supply) -> list[Finding]:
    arrays = supply.arrays
    rivals, used = arrays["captors"].astype(np.intp), 0
    counts, twins = iter(arrays["captor_counts"].tolist()), iter(arrays["twins"].tolist())
    evidence: list[Evidence] = []
    for kind in (KINDS[kind] for kind in arrays["kinds"].tolist()):
        if kind.startswith("witness"):
            evidence.append(supply.witness(kind))
        elif kind.startswith("captors"):
            size = next(counts)
            evidence.append(
                Captors(
                    rivals[used : used + size], supply.weights(size, exact=kind == "captors_exact")
                )
            )
            used += size
        elif kind == "twin":
            evidence.append(Twin(next(twins)))
        else:
            evidence.append(supply.unknown())
    if used != len(rivals) or any(next(rest, None) is not None for rest in (counts, twins)):
        raise ValueError("captors, their counts and twins disagree with the classes")
    columns = (
        arrays["classes"],
        supply.head["methods"],
        arrays["steps"],
        arrays["margins"],
        arrays["radii"],
    )
    return [
        Finding(int(index), found, str(method), int(steps), float(margin), float(radius))
        for found, index, method, steps, margin, radius in zip(evidence, *columns, strict=True)
    ]
