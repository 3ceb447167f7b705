"""Try every hostile file, folder of results, hub, or full disk, and write a table of each.

`python -m torture files inspect results hub disk [--out FOLDER] [--only WORDS]`; the exit code is 1
when any case is answered wrongly. Each case runs in a process of its own. `torture.kills` kills and
goes on; docs/torture.md sums up.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from softgeom.cli import main as softgeom
from torture import full_disk, hostile_files, hostile_hub, hostile_results, large_files, trial
from torture.trial import Outcome

_LONGEST = 300  # characters of a sentence in the table


def main() -> int:
    """Run one family of cases."""
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("families", nargs="+", choices=list(FAMILIES))
    parser.add_argument("--out", type=Path, help="folder for a table of every case, by family")
    parser.add_argument("--only", default="", help="cases whose names hold these words")
    parser.add_argument(
        "--every", type=int, default=1, help="only each n-th case, from the middle of the first n"
    )
    parser.add_argument("--at-a-time", type=int, default=1, help="cases that run at the same time")
    options = parser.parse_args()
    trial.warm_up()
    missed = 0
    for family in options.families:
        made, attempt = FAMILIES[family]
        cases = [case for case in made() if options.only in f"{case.kind} {case.name}"]
        # forked after the cases were made, as they are: making them fills memory
        empty = trial.empty_run(softgeom, lambda place: ["scan", *hostile_files.good(place)])
        _CHOSEN.update(
            cases=cases[options.every // 2 :: options.every], attempt=attempt, empty=empty
        )
        rows = _rows(options.at_a_time)
        wrong = sum(bool(row["wrong"]) for row in rows)
        print(f"{family}: {len(rows)} hostile cases, {wrong} answered wrongly", flush=True)
        missed += wrong
        if options.out and rows:
            _write(options.out / f"{family}.csv", rows)
    return int(missed > 0)


# What the processes of the pool are forked with: cases hold functions, which cannot be sent.
_CHOSEN: dict[str, Any] = {}


def _rows(at_a_time: int) -> list[dict[str, Any]]:
    rows = []
    with multiprocessing.get_context("fork").Pool(at_a_time) as pool:
        for row in pool.imap(_row, range(len(_CHOSEN["cases"]))):
            rows.append(row)
            if row["wrong"]:
                print(f"{row['kind']} {row['case']}: {row['wrong']}: {row['sentence']}", flush=True)
    return rows


def _row(number: int) -> dict[str, Any]:
    case, empty = _CHOSEN["cases"][number], _CHOSEN["empty"]
    with tempfile.TemporaryDirectory() as place:
        outcome, hidden = _CHOSEN["attempt"](case, Path(place))
    last = (outcome.said() or outcome.out.strip().splitlines())[-1:]
    return {
        "kind": case.kind,
        "case": _printable(case.name),
        "expected": case.expect,
        "answer": outcome.answer(),
        "wrong": outcome.miss(case.expect, empty, case.declared),
        "seconds": round(outcome.seconds, 1),
        "megabytes": max(0, round((outcome.memory - empty) / 1e6)),
        "sentence": _printable("".join(last).replace(hidden, "..."))[:_LONGEST],
    }


def _scan(case: hostile_files.Case, place: Path) -> tuple[Outcome, str]:
    return trial.run(softgeom, ["scan", *case.write(place)], place), str(place)


def _inspect(case: hostile_files.Case, place: Path) -> tuple[Outcome, str]:
    return trial.run(softgeom, ["inspect", case.write(place)[0]], place), str(place)


def _any_verb(case: hostile_results.Case, place: Path) -> tuple[Outcome, str]:
    return trial.run(softgeom, case.write(place), place), str(place)


def _fetch(case: hostile_hub.Case, place: Path) -> tuple[Outcome, str]:
    for name in ("HF_HUB_OFFLINE", *(f"{kind}_PROXY" for kind in ("HTTPS", "HTTP", "ALL"))):
        os.environ.pop(name, None)
        os.environ.pop(name.lower(), None)
    with hostile_hub.serve(case) as address:
        os.environ |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_ENDPOINT": address}
        os.environ["SOFTGEOM_CACHE"] = str(place / "cache")
        return trial.run(softgeom, ["scan", "someone/model"], place), address


def _files() -> Iterator[hostile_files.Case]:
    yield from hostile_files.cases()
    yield from large_files.cases()


_Attempt = Callable[[Any, Path], tuple[Outcome, str]]
FAMILIES: dict[str, tuple[Callable[[], Iterable[Any]], _Attempt]] = {
    "files": (_files, _scan),
    "inspect": (hostile_files.models, _inspect),
    "results": (hostile_results.cases, _any_verb),
    "hub": (hostile_hub.cases, _fetch),
    "disk": (full_disk.cases, full_disk.attempt),
}


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def _printable(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()


if __name__ == "__main__":
    sys.exit(main())
