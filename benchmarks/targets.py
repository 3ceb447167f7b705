"""Time, memory and disk of the make targets, for the README: each in turn, in this clone, on this
machine.

Usage: `python benchmarks/targets.py [target ...]`; rows of targets that are not named are kept.
Start from a clean clone (`make clean`), since a target that is up to date costs nothing.
`python3 benchmarks/targets.py --alarm target ...` records nothing: it runs the targets, as CI does,
and holds their CPU minutes, which a busy machine hardly changes, against the committed ones.
`python benchmarks/targets.py notebooks` only notes what each notebook took when it last ran here,
one by one (by kind of work, with its dearest cell) and chapter by chapter.
"""

from __future__ import annotations

import csv
import json
import os
import platform
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "results" / "bench" / "targets.csv"
TARGETS = ("env", "smoke", "test", "all", "check", "lint", "report")
CPU = "CPU (minutes)"
GROWN, FAILED = 1.25, 2.0  # times the committed CPU minutes: is said, and ends with an error
SLACK = 0.1  # CPU minutes that no target is blamed for
_POLL_SECONDS = 0.5


def main(targets: list[str]) -> int:
    if targets[:1] == ["--alarm"]:
        return alarm(targets[1:])
    import pandas as pd  # an alarm is asked before there is an environment

    if targets == ["notebooks"]:
        add_up().to_csv(TABLE.with_name("chapters.csv"), index=False, lineterminator="\n")
        each().to_csv(TABLE.with_name("notebooks.csv"), index=False, lineterminator="\n")
        return 0
    rows = pd.read_csv(TABLE).to_dict("records") if TABLE.is_file() else []
    known = {row["target"]: row for row in rows}
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    for target in targets or TARGETS:
        known[target] = measure(target)
        print(known[target], flush=True)
        # Written after each, so that a target that fails takes no earlier measurement with it.
        names = [name for name in (*TARGETS, *sorted(set(known) - set(TARGETS))) if name in known]
        pd.DataFrame([known[name] for name in names]).to_csv(
            TABLE, index=False, lineterminator="\n"
        )
    return 0


def alarm(targets: list[str]) -> int:
    """Run targets and say of each what it took; 1 when one fails or has doubled its CPU time."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        committed = {row["target"]: row.get(CPU) for row in csv.DictReader(file)}
    grown = []
    for target in targets:
        print(f"== make {target}", flush=True)
        started, before = time.monotonic(), _cpu_minutes()
        if subprocess.run(["make", target], cwd=ROOT).returncode:
            print(f"== make {target} failed")
            return 1
        minutes, cpu = (time.monotonic() - started) / 60, _cpu_minutes() - before
        print(f"== make {target} took {minutes:.1f} minutes, {cpu:.1f} of CPU", flush=True)
        if committed.get(target) and cpu > GROWN * float(committed[target]) + SLACK:
            grown.append((target, cpu, float(committed[target])))
    for target, cpu, usual in grown:
        print(
            f"ALARM: make {target} took {cpu:.1f} CPU minutes, {cpu / usual:.1f} times as many as"
            f" the {usual:.1f} in results/bench/targets.csv"
        )
    return int(any(cpu > FAILED * usual + SLACK for _, cpu, usual in grown))


def _cpu_minutes() -> float:
    """Of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) / 60


def add_up() -> pd.DataFrame:
    """Seconds of each chapter's notebooks in the default profile, as each execution noted."""
    import pandas as pd

    from compendium import profiles

    chapters = {"data and language models": ("0",), **profiles.CHAPTERS, "summary": ("9",)}
    folder = ROOT / "executed" / "default"
    notes = {
        path.stem: json.loads(path.read_text())
        for path in sorted(folder.glob("*.json"))
        if "." not in path.stem
    }
    seconds = {name: note["seconds"] for name, note in notes.items()}
    rows = [
        {
            "chapter": title,
            "notebooks": sum(name.startswith(digits) for name in seconds),
            "seconds": round(
                sum(value for name, value in seconds.items() if name.startswith(digits))
            ),
        }
        for title, digits in chapters.items()
    ]
    total = {"chapter": "all", "notebooks": len(seconds), "seconds": round(sum(seconds.values()))}
    return pd.DataFrame([*rows, total])


def each() -> pd.DataFrame:
    """Wall and CPU seconds of each notebook in each profile, start included, as `make all` noted
    them; rows of what has not run here are kept. The progress line counts with them. `before` the
    seconds of the longest chain of notebooks that ends with it: the largest is the least that any
    number of processors takes.
    """
    import pandas as pd

    from compendium import edges

    path = TABLE.with_name("notebooks.csv")
    rows = pd.read_csv(path).to_dict("records") if path.is_file() else []
    known = {(row["profile"], row["notebook"]): row for row in rows}
    for note in sorted((ROOT / "executed").glob("*/*.inputs.json")):
        said, name = json.loads(note.read_text()), note.name.removesuffix(".inputs.json")
        if said.get("seconds"):
            took = {key: said[key] for key in ("seconds", "cpu_seconds")}
            key = (note.parent.name, name)
            parts = _cells(*key, took["seconds"])
            known[key] = {"profile": key[0], "notebook": name} | took | parts
    needs = edges.derive(ROOT)
    known = {key: row for key, row in known.items() if key[1] in needs}
    for profile, name in sorted(known):
        above = [known.get((profile, other), {}) for other in needs[name].notebooks]
        longest = max((row.get("before", 0.0) for row in above), default=0.0)
        known[profile, name]["before"] = round(longest + known[profile, name]["seconds"], 1)
    return pd.DataFrame([known[key] for key in sorted(known)])


def _cells(profile: str, name: str, seconds: float) -> dict[str, object]:
    """Seconds by kind of work, from the times that papermill left in the executed notebook: before
    the first cell and after the last, in cells that draw, in the others; and the dearest cell.
    """
    path = ROOT / "executed" / profile / f"{name}.ipynb"
    cells = [
        (cell["metadata"]["papermill"]["duration"] or 0.0, "".join(cell["source"]))
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]
    drawing = sum(took for took, code in cells if "book.figure(" in code)
    computing = sum(took for took, _ in cells) - drawing
    dearest, code = max(cells)
    parts = {
        "start and end": seconds - drawing - computing,
        "cells that draw": drawing,
        "other cells": computing,
        "dearest cell": dearest,
    }
    said = {part: round(took, 1) for part, took in parts.items()}
    return said | {"it begins with": code.strip().splitlines()[0][:60]}


def measure(target: str) -> dict[str, object]:
    """Wall and CPU time, largest memory of the process tree (sampled), growth of the clone."""
    before = _disk()
    command = ["make", target]
    took = run(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    if took.status:
        raise SystemExit(f"make {target} failed with status {took.status}; nothing is recorded")
    return {
        "target": target,
        "minutes": round(took.seconds / 60, 1),
        CPU: round(took.cpu_seconds / 60, 2),
        "peak memory (GB)": round(took.peak_gb, 1),
        "disk (GB)": round(max(0.0, _disk() - before), 2),
        "cores": os.cpu_count(),
        "machine": f"{platform.system()} {platform.machine()}, no GPU",
    }


class Took(NamedTuple):
    """What a command took; its memory is that of all its processes together (sampled)."""

    status: int
    seconds: float
    cpu_seconds: float
    peak_gb: float


def run(command: Sequence[str], **how: Any) -> Took:
    """Run a command to its end, as `subprocess.Popen` would with these options."""
    cpu, started = _cpu_minutes(), time.monotonic()
    process = subprocess.Popen(command, **how)
    peak = [0.0]
    sampler = threading.Thread(target=_sample, args=(process, peak), daemon=True)
    sampler.start()
    status = process.wait()
    seconds = time.monotonic() - started
    sampler.join()
    return Took(status, seconds, 60 * (_cpu_minutes() - cpu), peak[0])


def _sample(process: subprocess.Popen[bytes], peak: list[float]) -> None:
    while process.poll() is None:
        peak[0] = max(peak[0], _resident(process.pid) / 2**30)
        time.sleep(_POLL_SECONDS)


def _resident(pid: int) -> int:
    """Bytes that a process and all its descendants hold (Linux; zero elsewhere). What several hold
    in common counts once: notebooks run in forks of a process that has imported everything, and
    their resident sizes add up to three times the memory that they take.
    """
    total = 0
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        total = 1024 * next(int(row.split()[1]) for row in rollup.splitlines() if row[:4] == "Pss:")
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                total += _resident(int(child))
    except (OSError, StopIteration):  # it ended meanwhile, or the system has no /proc
        pass
    return total


def _disk() -> float:
    files = (path for path in ROOT.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files) / 2**30


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
