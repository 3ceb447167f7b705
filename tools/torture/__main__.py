"""Try every hostile file in a process of its own and write the table: `python -m torture [--out TABLE.csv] [--only WORDS]`."""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from pathlib import Path

from softgeom.cli import main as softgeom
from torture import hostile_files, trial


def main() -> int:
    """Exit code 1 when any case is answered wrongly."""
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--out", type=Path, help="table of every case")
    parser.add_argument("--only", default="", help="cases whose names hold these words")
    options = parser.parse_args()
    trial.warm_up(softgeom)
    rows = []
    for case in hostile_files.cases():
        if options.only not in case.name:
            continue
        with tempfile.TemporaryDirectory() as place:
            outcome = trial.run(softgeom, ["scan", *case.write(Path(place))], Path(place))
        miss = outcome.miss(case.expect, case.declared)
        last = (outcome.error.strip() or outcome.out.strip()).splitlines()[-1:]
        said = "".join(last).replace(place, "...").encode("ascii", "backslashreplace").decode()
        rows.append(
            {
                "case": _printable(case.name),
                "expected": case.expect,
                "exit": outcome.code,
                "miss": miss,
                "said": said[:200],
            }
        )
        if miss:
            print(f"{_printable(case.name)}: {miss}: {said[:160]}", flush=True)
    missed = sum(bool(row["miss"]) for row in rows)
    print(f"{len(rows)} hostile inputs, {missed} answered wrongly")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with options.out.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, rows[0], lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
    return int(missed > 0)


def _printable(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()


if __name__ == "__main__":
    sys.exit(main())
