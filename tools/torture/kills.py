"""Kill a command again and again, let it go on each time, and compare what it leaves with an undisturbed run.

`python -m torture.kills scan|jobs|dask|train|make [--kills 60] [--out TABLE.csv]`. A round starts the command in a fresh folder and ends it by
SIGKILL, SIGTERM or SIGINT after a random share of the time that an undisturbed run takes; then the command is started again, and so on,
until it comes to its end. Per round the table says whether the result has the same bytes, how often it was killed, whether any finished
block was done twice, and whether a process was left after five seconds.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)

_LAYER = """
import numpy as np
rng = np.random.default_rng(3)
W = rng.standard_normal((9000, 24)).astype(np.float32)
W[-40:] = rng.dirichlet(np.ones(60), 40) @ W[:60]
np.savez({path!r}, W=W, b=np.append(np.zeros(8960), np.full(40, -.1)).astype(np.float32))
"""
_TRAIN = """
import sys
sys.path.insert(0, {lib!r})
import torch
torch.set_num_threads(1)
import numpy as np
from pathlib import Path
from softgeom.language_model import GPT, GPTConfig, TrainingConfig, train
from softgeom.language_model.saved import save_model
tokens = (np.cumsum(np.random.default_rng(5).integers(1, 4, 20000)) % 29).astype(np.int32)
torch.manual_seed(0)
model = GPT(GPTConfig(d_vocab=29, d_model=16, n_heads=2, n_layers=2, d_mlp=32, n_ctx=32))
config = TrainingConfig(steps=400, batch_size=8, learning_rate=1e-2, warmup_steps=2, evaluate_every=40, evaluation_windows=5, seed=3)
train(model, tokens[:15000], tokens[15000:], config, checkpoint=Path("training.pt"))
save_model(Path("model"), model)
"""


def main() -> int:
    """Exit code 1 when any round ended differently."""
    parser = argparse.ArgumentParser(prog="torture.kills", description=__doc__)
    parser.add_argument("work", choices=["scan", "jobs", "dask", "train"])
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    chance, rows, killed = random.Random(options.seed), [], 0
    with tempfile.TemporaryDirectory() as place:
        command, results = _command(options.work, Path(place))
        undisturbed = Path(place) / "undisturbed"
        undisturbed.mkdir()
        started = time.monotonic()
        _start(command, undisturbed).wait()
        seconds, expected = time.monotonic() - started, _digest(undisturbed, results)
        if len(expected) < len(results):
            raise SystemExit(f"{options.work}: an undisturbed run leaves no {results[0]}")
        print(f"{options.work}: {seconds:.1f} s undisturbed, {len(expected)} files", flush=True)
        while killed < options.kills:
            folder = Path(place) / f"round-{len(rows)}"
            folder.mkdir()
            count, orphans = _round(command, folder, seconds, chance, options.kills - killed)
            killed += count
            same = _digest(folder, results) == expected
            rows.append(
                {"work": options.work, "round": len(rows), "kills": count, "same bytes": same, "orphans": orphans}
            )
            print(
                f"round {len(rows)}: {count} kills, {'the same' if same else 'DIFFERENT'}, {orphans} orphans",
                flush=True,
            )
    bad = [row for row in rows if not row["same bytes"] or row["orphans"]]
    print(f"{options.work}: {killed} kills in {len(rows)} rounds, {len(bad)} rounds ended wrongly")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with options.out.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, rows[0], lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
    return int(bool(bad))


def _command(work: str, place: Path) -> tuple[list[str], list[str]]:
    """The command of a kind of work, and the files that it must leave."""
    if work == "train":
        return [sys.executable, "-c", _TRAIN.format(lib=str(ROOT / "lib"))], ["model/model.safetensors"]
    path = place / "layer.npz"
    subprocess.run([sys.executable, "-c", _LAYER.format(path=str(path))], check=True)
    more = {"scan": [], "jobs": ["--jobs", "2"], "dask": ["--jobs", "2", "--backend", "dask"]}[work]
    return [sys.executable, "-m", "softgeom.cli", "scan", str(path), "--out", "results", *more], [
        "results/verdicts.csv"
    ]


def _start(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=folder, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)


def _round(command: list[str], folder: Path, seconds: float, chance: random.Random, most: int) -> tuple[int, int]:
    """Kill and go on until the command ends by itself; how often it was killed, and how many processes stayed behind."""
    killed = orphans = 0
    while True:
        process = _start(command, folder)
        try:
            process.wait(chance.uniform(0.1, 1.0) * seconds if killed < min(most, 8) else None)
            return killed, orphans
        except subprocess.TimeoutExpired:
            process.send_signal(chance.choice(SIGNALS))
            process.wait()
            killed += 1
            orphans += _left(process.pid)


def _left(session: int) -> int:
    """Processes of a session that are still there after five seconds (they are ended then)."""
    end = time.monotonic() + 5
    while (left := _members(session)) and time.monotonic() < end:
        time.sleep(0.1)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return len(left)


def _members(session: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def _digest(folder: Path, results: list[str]) -> dict[str, str]:
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in results if (folder / name).is_file()
    }


if __name__ == "__main__":
    sys.exit(main())
