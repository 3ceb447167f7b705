"""Try every hostile file, or every hostile hub, in a process of its own and write the table.

`python -m torture files|hub [--out TABLE.csv] [--only WORDS]`; the exit code is 1 when any case is answered wrongly.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from softgeom.cli import main as softgeom
from torture import hostile_files, hostile_hub, trial


def main() -> int:
    """Run one family of cases."""
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("family", choices=["files", "hub"])
    parser.add_argument("--out", type=Path, help="table of every case")
    parser.add_argument("--only", default="", help="cases whose names hold these words")
    parser.add_argument("--every", type=int, default=1, help="only each n-th case")
    options = parser.parse_args()
    trial.warm_up()
    rows = []
    for case, outcome, place in (_try_files if options.family == "files" else _try_hub)(options):
        miss = outcome.miss(case.expect, getattr(case, "declared", 0))
        last = (outcome.error.strip() or outcome.out.strip()).splitlines()[-1:]
        said = _printable("".join(last).replace(place, "..."))
        name = _printable(case.name)
        rows.append({"case": name, "expected": case.expect, "exit": outcome.code, "miss": miss, "said": said[:200]})
        if miss:
            print(f"{name}: {miss}: {said[:160]}", flush=True)
    missed = sum(bool(row["miss"]) for row in rows)
    print(f"{len(rows)} hostile cases, {missed} answered wrongly")
    if options.out:
        _write(options.out, rows)
    return int(missed > 0)


def _try_files(options: argparse.Namespace) -> Iterator[tuple[hostile_files.Case, trial.Outcome, str]]:
    for case in _chosen(hostile_files.cases(), options):
        with tempfile.TemporaryDirectory() as place:
            arguments = ["scan", *case.write(Path(place))]
            yield case, trial.run(softgeom, arguments, Path(place)), place


def _try_hub(options: argparse.Namespace) -> Iterator[tuple[hostile_hub.Case, trial.Outcome, str]]:
    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HF_HUB_OFFLINE"):
        os.environ.pop(name, None)
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    for case in _chosen(hostile_hub.cases(), options):
        with tempfile.TemporaryDirectory() as place, hostile_hub.serve(case) as address:
            os.environ |= {"HF_ENDPOINT": address, "SOFTGEOM_CACHE": place}
            yield case, trial.run(softgeom, ["scan", "someone/model"], Path(place)), address


def _chosen(cases: Iterator[Any], options: argparse.Namespace) -> Iterator[Any]:
    return itertools.islice((case for case in cases if options.only in case.name), 0, None, options.every)


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
