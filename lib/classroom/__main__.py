"""`python -m classroom FILES_OR_FOLDERS [--csv TABLE]`: grade what learners handed in."""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

from classroom import grading
from softgeom.checkpoints.tensors import plain


def main(words: list[str] | None = None) -> int:
    """Print a line for each file, and write the table that is asked for; 1 when a file cannot be
    graded.
    """
    parser = argparse.ArgumentParser(prog="python -m classroom", description=__doc__)
    parser.add_argument("places", nargs="+", type=Path, metavar="FILE_OR_FOLDER")
    parser.add_argument("--csv", type=Path, help="also write a table, with the explanations")
    asked = parser.parse_args(words)
    grades, failed = [], 0
    for path in grading.files(asked.places):
        try:
            grades.append(grading.grade(path))
            print(grades[-1])
        except (OSError, ValueError) as problem:
            print(f"{plain(path, 400)}: not graded, {problem}", file=sys.stderr)
            failed = 1
    if asked.csv:
        with asked.csv.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(grading.COLUMNS)
            table.writerows(map(grading.row, grades))
    return failed


if __name__ == "__main__":
    sys.exit(main())
