"""The blocks of a scan under way: a file of evidence each, checked when it is read back."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.arrays import Ints
from softgeom.bottleneck.certifying.evidence_file import FORMAT, fingerprint_of, load_findings
from softgeom.bottleneck.certifying.kernel import verify_findings
from softgeom.bottleneck.certifying.verdict import Finding
from softgeom.layer import FeatureSet, SoftmaxLayer


@functools.cache
def code() -> str:
    """SHA-256 of the source that finds and proves verdicts: other code computes blocks anew."""
    package = Path(__file__).parents[1]
    folders = (package / name for name in ("bottleneck", "features"))
    decides = [*package.glob("*.py"), *(file for f in folders for file in f.rglob("*.py"))]
    digest = hashlib.sha256()
    for file in sorted(decides):
        digest.update(f"{file.relative_to(package).as_posix()}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def block_path(
    folder: str | Path, layer: Mapping[str, Any], options: str, features: FeatureSet, classes: Ints
) -> Path:
    """The file of a scan's block, named by layer, options, features, classes and code."""
    key = [fingerprint_of(layer), options, features.to_json(), FORMAT, code()]
    digest = hashlib.sha256(json.dumps(key).encode())
    digest.update(np.asarray(classes, dtype="<i8").tobytes())
    return Path(folder) / f"block-{digest.hexdigest()[:32]}.npz"


def load_block(
    path: Path, layer: SoftmaxLayer, features: FeatureSet, classes: Ints, known: Mapping[str, Any]
) -> list[Finding]:
    """The findings of a finished block, proven again, in the order of its classes (n,). ValueError
    if the file is damaged or was edited, or is about something else.
    """
    stored, findings = load_findings(path, layer, known)
    by_class = {f.index: f for f in findings}
    if stored != features or set(by_class) != set(classes.tolist()):
        raise ValueError(f"{path} is about other classes or another feature set.")
    verify_findings(layer, features, findings)
    return [by_class[t] for t in classes.tolist()]
