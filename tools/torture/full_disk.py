"""A disk that fills up, at every moment: a small file system, a little larger each time, until the
work fits.

Where the work does not fit it must end with one sentence that names the file, leave nothing
half-written, and, with more room, go on to the same bytes. A case needs a file system of its own
size (tmpfs, so Linux and root); without one there are no cases, and the tests' limit on the size of
a file remains.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from softgeom.cli import main as softgeom
from softgeom.commands.boundary import guarded
from torture import hostile_results, trial
from torture.kills import TRAIN
from torture.trial import ERROR, Outcome

_TORCH = 2**25  # bytes, `trial.TIMES` of which may be held: what the first step of PyTorch costs
PLENTY = 512  # megabytes, after the disk was full
_NAMED = re.compile(
    r"^softgeom: \S+: .*No space left on device.*; what was finished is kept", re.MULTILINE
)


@dataclass(frozen=True)
class Case:
    """A work, and the share of the room that it needs."""

    kind: str
    share: float
    expect: str = ERROR
    declared: int = 0

    @property
    def name(self) -> str:
        return f"{self.share:.0%} of the room"


def cases() -> Iterator[Case]:
    """Each work with ever more room, up to a little less than it needs."""
    if not _can_mount():
        print("disk: no small file system can be had here (it takes Linux and root)")
        return
    for kind in _WORKS:
        steps = 12 if kind in ("scan", "train") else 6
        declared = _TORCH if kind == "train" else 0
        yield from (Case(kind, n / steps, declared=declared) for n in range(steps))


def attempt(case: Case, place: Path) -> tuple[Outcome, str]:
    """The work on a disk of that size, then with room."""
    work = _WORKS[case.kind]
    # kilobytes, in whole pages
    room = max(4, int(_undisturbed(case.kind)[0] * case.share) // 4 * 4)
    with _disk(place / "disk", f"{room}k") as disk:
        outcome = _run(work, disk)
        faults = []
        left = [path.name for path in disk.rglob("*")]
        if half := [name for name in left if ".part" in name or ".tmp" in name]:
            faults.append(f"left {', '.join(half)}")
        if outcome.code != 0 and not _NAMED.search(outcome.error):
            faults.append("names no file")
        _mount("remount", f"size={PLENTY}m", disk)
        again = _run(work, disk)
        if again.code != 0 or _digest(disk, work.results) != _undisturbed(case.kind)[1]:
            faults.append(f"went on to something else: {again.error.strip()[-200:]}")
    return replace(outcome, faults=tuple(faults)), str(place)


@dataclass(frozen=True)
class _Work:
    run: Callable[[Path], int]
    results: tuple[str, ...]


def _scan(disk: Path) -> int:
    return softgeom(["scan", *_model(), "--out", str(disk / "out"), "--block", "4", "--quiet"])


def _jobs(disk: Path) -> int:
    scan = ["scan", *_model(), "--out", str(disk / "out"), "--block", "4", "--jobs", "2", "--quiet"]
    command = [sys.executable, "-m", "softgeom.cli", *scan]
    done = subprocess.run(command, capture_output=True, text=True)
    # a process that ends as any other: joblib tidies up then
    print(done.stderr, file=sys.stderr, end="")
    return done.returncode


def _prune(disk: Path) -> int:
    os.chdir(disk)
    for path in disk.glob("new.*"):  # a file that was written is not written again
        path.unlink()
    return softgeom(["prune", *_model(), "--out", str(disk / "new.safetensors")])


def _train(disk: Path) -> int:
    def work() -> int:
        # In this process, which has torch already; the log is the script's own, and no work of
        # ours.
        exec(TRAIN.replace("steps=400", "steps=80").replace(", report=log", ""), {})
        return 0

    return guarded(work)


_WORKS = {
    "scan": _Work(_scan, ("out/verdicts.csv",)),
    "jobs": _Work(_jobs, ("out/verdicts.csv",)),
    "prune": _Work(_prune, ("new.safetensors.classes.json",)),
    "train": _Work(_train, ("model/model.safetensors",)),
}


@functools.cache
def _model() -> list[str]:
    return hostile_results.good(Path(tempfile.mkdtemp(prefix="torture-")))


def _run(work: _Work, disk: Path) -> Outcome:
    return trial.run(lambda _: work.run(disk), [], disk)


@functools.cache
def _undisturbed(kind: str) -> tuple[int, str]:
    """How many kilobytes the work takes, and the digest of its results."""
    work = _WORKS[kind]
    with tempfile.TemporaryDirectory() as place, _disk(Path(place) / "disk", f"{PLENTY}m") as disk:
        outcome = _run(work, disk)
        if outcome.code != 0:
            raise SystemExit(f"{kind} fails undisturbed: {outcome.error}")
        used = sum(path.stat().st_blocks for path in disk.rglob("*")) // 2
        return used, _digest(disk, work.results)


def _digest(disk: Path, names: tuple[str, ...]) -> str:
    there = (disk / name for name in names if (disk / name).is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in there)).hexdigest()


@contextmanager
def _disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    _mount(f"size={size}", folder)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _mount(*options_and_folder: str | Path) -> None:
    *options, folder = map(str, options_and_folder)
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", folder]
    subprocess.run(command, check=True, capture_output=True)


def _can_mount() -> bool:
    with tempfile.TemporaryDirectory() as place:
        try:
            with _disk(Path(place) / "disk", "64k"):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False
