"""Kill a command again and again, let it go on each time, and compare what it leaves with an
undisturbed run.

`python -m torture.kills scan|jobs|dask|train|make [--kills 60] [--seed 0] [--out TABLE.csv]`. A
round starts the command in a fresh folder and ends it by SIGKILL, SIGTERM or SIGINT after a random
share of the time that an undisturbed run takes; then the command is started again, and so on, until
it comes to its end. Where there are workers, every fourth kill takes one of them instead, as a
system without memory would. Per round the table says whether the result has the same bytes, how
much that was finished before a kill was done again (files that were there, and are others now;
steps of a training that its log has twice), and how many processes were left five seconds after a
kill.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
MOST = 8  # kills of one round: then it may end
SECONDS = 5.0  # until nothing may be left of what was killed

_LAYER = """
import numpy as np
rng = np.random.default_rng(3)
W = rng.standard_normal((9000, 24)).astype(np.float32)
W[-40:] = rng.dirichlet(np.ones(60), 40) @ W[:60]
np.savez({path!r}, W=W, b=np.append(np.zeros(8960), np.full(40, -.1)).astype(np.float32))
"""
TRAIN = f"""
import sys
sys.path.insert(0, {str(ROOT / "lib")!r})
import torch
torch.set_num_threads(1)
import numpy as np
from pathlib import Path
from softgeom.language_model import GPT, GPTConfig, TrainingConfig, train
from softgeom.language_model.saved import save_model
tokens = (np.cumsum(np.random.default_rng(5).integers(1, 4, 20000)) % 29).astype(np.int32)
torch.manual_seed(0)
model = GPT(GPTConfig(d_vocab=29, d_model=16, n_heads=2, n_layers=2, d_mlp=32, n_ctx=32))
config = TrainingConfig(steps=400, batch_size=8, learning_rate=1e-2, warmup_steps=2,
                        evaluate_every=40, evaluation_windows=5, seed=3)

def log(evaluation):
    with open("steps.log", "a") as file:
        print(evaluation["step"], file=file)

train(model, tokens[:15000], tokens[15000:], config, checkpoint=Path("training.pt"), report=log)
save_model(Path("model"), model)
"""
_NOTEBOOKS = ("10_braid_counts", "12_first_scan")  # two at a time; one of them keeps scans


@dataclass(frozen=True)
class Work:
    """A command, the files that it must leave, and those that are final at once."""

    command: list[str]
    results: tuple[str, ...]
    finished: tuple[str, ...]
    prepare: Callable[[Path], None] = lambda folder: None
    workers: bool = False
    environment: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{' '.join(self.command[:4])} ..."


def main() -> int:
    """Exit code 1 when any round ended differently."""
    parser = argparse.ArgumentParser(prog="torture.kills", description=__doc__)
    parser.add_argument("work", choices=["scan", "jobs", "dask", "train", "make"])
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    rows: list[dict[str, Any]] = []
    killed = 0
    with tempfile.TemporaryDirectory() as place:
        work = _work(options.work, Path(place))
        seconds, expected = _undisturbed(work, Path(place))
        print(f"{options.work}: {seconds:.1f} s undisturbed, {len(expected)} files", flush=True)
        while killed < options.kills:
            folder = Path(place) / f"round-{len(rows)}"
            started = time.monotonic()
            row = _round(work, folder, seconds, chance, min(MOST, options.kills - killed))
            if not row["kills"]:  # the machine has become faster than it was
                seconds = min(seconds, time.monotonic() - started)
            killed += row["kills"]
            row["same bytes"] = _digest(folder, work) == expected
            rows.append({"work": options.work, "seed": options.seed, "round": len(rows), **row})
            print(", ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
            shutil.rmtree(folder)
            if options.out:
                _write(options.out, rows)
    bad = [row for row in rows if not row["same bytes"] or row["orphans"] or row["done twice"]]
    print(f"{options.work}: {killed} kills in {len(rows)} rounds, {len(bad)} rounds ended wrongly")
    return int(bool(bad))


def _work(name: str, place: Path) -> Work:
    if name == "train":
        return Work([sys.executable, "-c", TRAIN], ("model/model.safetensors",), ("steps.log",))
    if name == "make":
        executed = tuple(f"executed/smoke/{notebook}.ipynb" for notebook in _NOTEBOOKS)
        ours = ("MAKE", "MFLAGS", "SOFTGEOM")
        clean = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
        results = tuple(f"results/smoke/**/{notebook}/**/*" for notebook in _NOTEBOOKS)
        command, clean["HF_HUB_OFFLINE"] = ["make", "PROFILE=smoke", *_NOTEBOOKS], "1"
        return Work(command, results, executed, _clone, environment=clean)
    path = place / "layer.npz"
    subprocess.run([sys.executable, "-c", _LAYER.format(path=str(path))], check=True)
    more = {"scan": [], "jobs": ["--jobs", "2"], "dask": ["--jobs", "2", "--backend", "dask"]}[name]
    command = [sys.executable, "-m", "softgeom.cli", "scan", str(path), "--out", "results", *more]
    return Work(command, ("results/verdicts.csv",), ("results/blocks/*.npz",), workers=bool(more))


def _clone(folder: Path) -> None:
    """The tracked files, older than the environment, which is shared: make installs nothing."""
    needed = {"notebooks", "params", "lib", "data", "claims"}
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in map(os.fsdecode, filter(None, listing.stdout.split(b"\0"))):
        if name.partition("/")[0] in needed or "/" not in name:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
            os.utime(folder / name, (1, 1))
    (folder / ".venv").symlink_to(ROOT / ".venv")


def _start(work: Work, folder: Path) -> subprocess.Popen[bytes]:
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    environment = work.environment or None
    return subprocess.Popen(
        work.command, cwd=folder, env=environment, start_new_session=True, **quiet
    )


def _undisturbed(work: Work, place: Path) -> tuple[float, dict[str, str]]:
    """The shorter time of two runs, after the caches are warm, and the files that both leave."""
    seconds, left = [], []
    for n in range(2):
        folder = place / f"undisturbed-{n}"
        folder.mkdir()
        work.prepare(folder)
        started = time.monotonic()
        code = _start(work, folder).wait()
        seconds.append(time.monotonic() - started)
        left.append(_digest(folder, work))
        if code or not left[-1]:
            raise SystemExit(
                f"{work} ends with {code}, undisturbed, and leaves {len(left[-1])} files"
            )
        shutil.rmtree(folder)
    if left[0] != left[1]:
        raise SystemExit(f"{work} leaves other bytes each time, undisturbed")
    return min(seconds), left[0]


def _round(
    work: Work, folder: Path, seconds: float, chance: random.Random, most: int
) -> dict[str, Any]:
    """Kill and go on until the command ends by itself."""
    folder.mkdir()
    work.prepare(folder)
    counts = Counter({"kills": 0, "of workers": 0, "orphans": 0, "done twice": 0})
    finished: dict[str, Any] = {}
    while True:
        process = _start(work, folder)
        try:
            share = chance.uniform(0.1, 1.0) if counts["kills"] < most else None
            code = process.wait(share and share * seconds)
            counts["done twice"] += _changed(finished, _finished(work, folder))
            if code == 0:
                return dict(counts)
            raise SystemExit(f"{work} ends with {code}, unkilled")
        except subprocess.TimeoutExpired:
            counts["kills"] += 1
            counts["of workers"] += _kill(process, chance, work.workers)
            counts["orphans"] += _left(process.pid)
            counts["done twice"] += _changed(finished, now := _finished(work, folder))
            finished = now


def _kill(process: subprocess.Popen[bytes], chance: random.Random, workers: bool) -> bool:
    """Kill the command, or one of its workers; whether it was a worker."""
    aims = workers and chance.random() < 0.25
    children = [pid for pid in members(process.pid) if pid != process.pid] if aims else []
    if not children:
        process.send_signal(chance.choice(SIGNALS))
        process.wait()
        return False
    os.kill(chance.choice(children), signal.SIGKILL)
    try:
        process.wait(60)  # Dask starts another worker and goes on, joblib ends with one sentence
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return True


def _left(session: int) -> int:
    """Processes of a session that are still there after five seconds (they are ended then)."""
    end = time.monotonic() + SECONDS
    while (left := members(session)) and time.monotonic() < end:
        time.sleep(0.1)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return len(left)


def members(session: int) -> list[int]:
    """Its processes that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def _finished(work: Work, folder: Path) -> dict[str, Any]:
    """What is final: files by inode and time, a training's log by each step's count."""
    found: dict[str, Any] = {}
    for path in (path for pattern in work.finished for path in folder.glob(pattern)):
        if path.suffix == ".log":
            steps = Counter(path.read_text().split())
            found |= {f"step {line}": times for line, times in steps.items()}
        else:
            found[path.name] = (path.stat().st_ino, path.stat().st_mtime_ns)
    return found


def _changed(before: dict[str, Any], now: dict[str, Any]) -> int:
    return sum(now.get(name) != state for name, state in before.items())


def _digest(folder: Path, work: Work) -> dict[str, str]:
    found = sorted(path for pattern in work.results for path in folder.glob(pattern))
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in found
        if path.is_file()
    }


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Put rounds into the table, in the place of earlier ones of the same work and seed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            now = (rows[0]["work"], str(rows[0]["seed"]))
            rows = [row for row in csv.DictReader(file) if (row["work"], row["seed"]) != now] + rows
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
