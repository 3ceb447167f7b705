"""Whether the files that are read are those behind the committed results, and whole: by SHA-256.

`data/checksums.txt` is in the format of `sha256sum`, relative to the data folder. Another file than
the committed one may be right (another conversion of the same corpus): it is used, and said. One
that was fetched carries its own SHA-256 in `ORIGIN.json`: where it differs, it is refused.
"""

import functools
import hashlib
import logging
from pathlib import Path

from compendium import paths
from compendium.cache import while_unchanged
from softgeom.source import read_origin

logger = logging.getLogger("softgeom")

FILE = "data/checksums.txt"
PREFIX = "sha256 "  # of a fact in ORIGIN.json


@while_unchanged
def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def facts(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file of a folder that was just filled, as facts for `ORIGIN.json`."""
    return {PREFIX + path.name: sha256(path) for path in sorted(folder.iterdir()) if path.is_file()}


def check(path: Path) -> Path:
    """A raw file, held against its SHA-256; ValueError when it was fetched and has changed."""
    name = f"{path.parent.name}/{path.name}"
    if fetched := read_origin(path.parent).get(PREFIX + path.name):
        if sha256(path) != fetched:
            again = f"delete {path.parent}, and it is fetched again"
            raise ValueError(f"{name} was damaged after it was fetched: {again}")
        return path
    for known, digest in committed(paths.root() / FILE).items():
        if f"/{known}".endswith(f"/{name}"):
            _compare(known, sha256(path), digest)
    return path


def committed(file: Path) -> dict[str, str]:
    """File and SHA-256 of everything that the committed results were made from."""
    if not file.is_file():
        return {}
    lines = (line.split("  ", 1) for line in file.read_text(encoding="utf-8").splitlines() if line)
    return {name: digest for digest, name in lines}


@functools.cache
def _compare(name: str, found: str, expected: str) -> None:
    """Say once that a file is another one."""
    if found != expected:
        told = "data: %s is another file than the one behind the committed results (SHA-256 %s..., "
        logger.warning(told + "not %s...)", name, found[:12], expected[:12])
