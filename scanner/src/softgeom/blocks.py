"""The blocks of a scan, or of ceilings, under way: a file each, proven again when read back."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from softgeom.arrays import Ints
from softgeom.certifying.evidence_file import FORMAT, load_parts
from softgeom.certifying.kernel import verify_findings
from softgeom.certifying.verdict import Finding
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.writing import set_aside

logger = logging.getLogger("softgeom")
Found = TypeVar("Found")


@functools.cache
def code() -> str:
    """SHA-256 of the source that finds and proves verdicts: other code computes blocks anew."""
    package = Path(__file__).parent
    names = ("asking", "ceiling", "certifying", "features", "proving", "searching")
    folders = (package / name for name in names)
    decides = [*package.glob("*.py"), *(file for f in folders for file in f.rglob("*.py"))]
    digest = hashlib.sha256()
    for file in sorted(decides):
        digest.update(f"{file.relative_to(package).as_posix()}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def block_path(
    folder: str | Path, layer: str, options: str, features: FeatureSet, classes: Ints
) -> Path:
    """The file of a block, named by the layer's fingerprint, options, features, classes, code."""
    key = [layer, options, features.to_json(), FORMAT, code()]
    digest = hashlib.sha256(json.dumps(key).encode())
    digest.update(np.asarray(classes, dtype="<i8").tobytes())
    return Path(folder) / f"block-{digest.hexdigest()[:32]}.safetensors"


def load_block(
    path: Path, layer: SoftmaxLayer, features: FeatureSet, classes: Ints, known: str
) -> list[Finding]:
    """The findings of a finished block, proven again, in the order of its classes (n,). ValueError
    if the file is damaged or was edited, or is about something else.
    """
    (stored, findings), *more = load_parts(path, layer, known)
    by_class = {f.index: f for f in findings}
    if more or stored != features or set(by_class) != set(classes.tolist()):
        raise ValueError(f"{path} is about other classes or another feature set.")
    verify_findings(layer, features, findings)
    return [by_class[t] for t in classes.tolist()]


def finished(
    path: Path,
    read: Callable[[Path], Found],
    work: Callable[[], Found],
    write: Callable[[Path, Found], None],
) -> Found:
    """What a finished block holds, else what ``work`` finds, written there. A file that ``read``
    refuses by a ValueError is set aside, and its work is done again.
    """
    if path.exists():
        try:
            return read(path)
        except ValueError as damage:
            what = "a finished block cannot be used: set aside as %s, done again (%s)"
            logger.warning(what, set_aside(path).name, damage)
    found = work()
    write(path, found)
    return found
