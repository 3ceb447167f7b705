"""Files from the npm registry that the site carries: each by version and by the integrity that npm
publishes for it.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Asset:
    """One package of the registry.

    Attributes
    ----------
    name, version
        As npm knows it.
    integrity
        SHA-512 of its tarball in base64, as `npm view NAME@VERSION dist.integrity` prints it.
    file
        The one file that is used, by its path in the tarball.
    """

    name: str
    version: str
    integrity: str
    file: str


MATHJAX = Asset(
    "mathjax",
    "3.2.2",  # version 4 loads its fonts on demand and so needs a network for blackboard letters
    "sha512-Bt+SSVU8eBG27zChVewOicYs7Xsdt40qm4+UpHyX7k0/O9NliPc+x77k1/FEsPsjKPZGJvtRZM1vO+geW0OhGw==",
    "package/es5/tex-svg.js",
)
NPM = (MATHJAX,)


def fetch(asset: Asset, cache: Path) -> Path | None:
    """The file of an asset, from the cache folder, else from npm; None without npm or network.

    Raises
    ------
    ValueError
        When the tarball is another than the published one: nothing of it is unpacked.
    """
    tarball = cache / f"{asset.name}-{asset.version}.tgz"
    if not tarball.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        npm = shutil.which("npm")
        command = [npm or "npm", "pack", f"{asset.name}@{asset.version}", "--silent"]
        if (
            npm is None
            or subprocess.run(command, cwd=cache, capture_output=True).returncode
            or not tarball.is_file()
        ):
            return None
    if integrity(tarball) != asset.integrity:
        tarball.unlink()
        raise ValueError(
            f"{tarball.name} from npm is not the published {asset.name} {asset.version}: its "
            "SHA-512 differs; it was removed"
        )
    with tarfile.open(tarball) as archive:
        archive.extract(asset.file, cache, filter="data")
    return cache / asset.file


def integrity(path: Path) -> str:
    """SHA-512 of a file as npm writes it."""
    with path.open("rb") as file:
        return f"sha512-{base64.b64encode(hashlib.file_digest(file, 'sha512').digest()).decode()}"
