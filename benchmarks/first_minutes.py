"""What each reader waits for, from a clone in an empty folder: the first proven verdict, a running
lesson, the whole site.

    python benchmarks/first_minutes.py [scanner] [learner] [browser]

Every command is one that the README prints, run in a fresh clone of the last commit, with pip's own
cache left as it is. Per reader: seconds until each thing is there, and what then lies on disk
beside the clone. Writes `results/bench/first_minutes.csv`; needs the package index.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "results" / "bench" / "first_minutes.csv"
LESSON = "notebooks/lessons/1_rankings_and_regions.ipynb"
Step = tuple[str, Callable[[], None]]


def main(readers: list[str]) -> int:
    known = pd.read_csv(TABLE).to_dict("records") if TABLE.is_file() else []
    for reader in readers or list(READERS):
        with tempfile.TemporaryDirectory() as place:
            clone = Path(place) / "softgeom"
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
            before, started = _disk(clone), time.monotonic()
            rows: list[dict[str, object]] = []
            for thing, wait in READERS[reader](clone):
                wait()
                megabytes = round(_disk(clone) - before)
                rows.append(
                    {
                        "reader": reader,
                        "has": thing,
                        "seconds": round(time.monotonic() - started),
                        "disk (MB)": megabytes,
                    }
                )
                print(rows[-1], flush=True)
        known = [row for row in known if row["reader"] != reader] + rows
        known.sort(key=lambda row: list(READERS).index(row["reader"]))
        pd.DataFrame(known).to_csv(TABLE, index=False, lineterminator="\n")
    return 0


def scanner(clone: Path) -> Iterator[Step]:
    """Somebody with a model of 4,000 classes of 64 features, some unargmaxable; the bare core."""
    rng = np.random.default_rng(0)
    W = rng.standard_normal((4000, 64)).astype(np.float32)
    W[-20:] = rng.dirichlet(np.ones(100), 20) @ W[:100]
    np.savez(clone.parent / "model.npz", W=W)
    softgeom = str(clone / ".venv" / "bin" / "softgeom")
    yield (
        "the core, installed",
        lambda: _all(
            clone,
            [sys.executable, "-m", "venv", ".venv"],
            [".venv/bin/python", "-m", "pip", "install", "--quiet", "."],
        ),
    )
    yield (
        "every verdict of an own model",
        lambda: _all(clone, [softgeom, "scan", "../model.npz", "--out", "found"]),
    )
    yield (
        "every proof checked again",
        lambda: _all(clone, [softgeom, "verify", "found", "../model.npz"]),
    )


def learner(clone: Path) -> Iterator[Step]:
    """Somebody who opens the first lesson; its cells then run once, unanswered."""
    server: list[subprocess.Popen[str]] = []
    yield "JupyterLab with a lesson", lambda: server.append(_lab(clone))
    try:
        yield (
            "a lesson that ran through",
            lambda: _all(clone, [".venv/bin/python", "-m", "jupyter", "execute", LESSON]),
        )
    finally:
        for process in server:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def browser(clone: Path) -> Iterator[Step]:
    """Somebody who builds the site from the committed results."""
    yield "the site", lambda: _all(clone, ["make", "site"])
    yield "the site, once more", lambda: _all(clone, ["make", "site"])


READERS: dict[str, Callable[[Path], Iterator[Step]]] = {
    "scanner": scanner,
    "learner": learner,
    "browser": browser,
}


def _lab(clone: Path) -> subprocess.Popen[str]:
    """`make lessons`, until the address that it prints answers."""
    environment = {**os.environ, "BROWSER": "true"}  # the command, which opens nothing
    process = subprocess.Popen(
        ["make", "lessons"], cwd=clone, env=environment, text=True, stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE, start_new_session=True
    )  # fmt: skip
    for line in process.stdout or ():
        if address := re.search(r"http://localhost:\d+/\S*", line):
            while not _answers(address[0]):  # it is named before anybody listens
                time.sleep(0.2)
            return process
    raise SystemExit(
        f"make lessons ended with status {process.wait()} before it named an address; "
        f"nothing is recorded"
    )


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address) as page:
            return page.status == 200
    except urllib.error.URLError:
        return False


def _all(clone: Path, *commands: list[str]) -> None:
    for command in commands:
        done = subprocess.run(command, cwd=clone, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(
                f"{' '.join(command)} failed; nothing is recorded\n{done.stdout}\n{done.stderr}"
            )


def _disk(folder: Path) -> float:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files) / 2**20


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
