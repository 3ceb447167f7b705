"""What learners hand in from the lessons' pages, judged once more: a table of who solved what.

A page (`static/lesson.js`) saves every answer beside what it replied. Replies are not believed:
each answer is read and judged again. Explanations are for a human reader.
"""

import argparse
import csv
import json
import re
import sys
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from classroom.questions import LESSONS, check
from softgeom.checkpoints.tensors import plain

_DATA = re.compile(r'<script type="application/json" id="answers">(.*?)</script>', re.DOTALL)
_FORMULAS = (*"=+-@＝＋－＠\t\r",)  # a spreadsheet reads a cell that begins so as a formula
_LONGEST = 10**7  # bytes of a file; an hour of answers takes some thousands


@dataclass(frozen=True)
class Grade:
    """One file: its learner, and what is found in it."""

    name: str
    lesson: str
    solved: str  # numbers of the exercises, such as "1 2 4"
    exercises: int  # that the lesson has
    attempts: int  # at exercises
    guesses: int  # predictions made
    explanation: str
    file: str

    def __str__(self) -> str:
        count = len(self.solved.split())
        explained = "explained" if self.explanation.strip() else "no explanation"
        return (
            f"{self.name or '(no name)':24} {self.lesson:9} {count} of {self.exercises} solved "
            f"in {self.attempts} attempts ({self.solved or 'none'}), {self.guesses} guesses, "
            f"{explained}"
        )


def grade(path: Path) -> Grade:
    """Judge the answers in a file that a lesson's page saved; ValueError if it is no such file."""
    if path.stat().st_size > _LONGEST:
        raise ValueError("it is too large for a file of answers")
    found = _DATA.search(path.read_text(encoding="utf-8", errors="replace"))
    if found is None:
        raise ValueError("it holds no answers of a lesson's page")
    try:
        saved = json.loads(found[1])
        name, key, explanation = (str(saved[field]) for field in ("name", "lesson", "explanation"))
        tried = [
            (str(asked).removeprefix(f"{key}-"), answer) for asked, answer in saved["attempts"]
        ]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("its answers are not written as a lesson's page writes them") from None
    if key not in LESSONS:
        raise ValueError(f"there is no lesson {key[:40]!r}")
    lesson = LESSONS[key]
    attempts = [(asked, answer) for asked, answer in tried if asked in lesson.exercises]
    solved = {asked for asked, answer in attempts if check(f"{key}-{asked}", answer).right}
    return Grade(
        name=plain(" ".join(name.split()), 80),
        lesson=key,
        solved=" ".join(sorted(solved)),
        exercises=len(lesson.exercises),
        attempts=len(attempts),
        guesses=len({asked for asked, _ in tried if asked in lesson.predictions}),
        explanation=explanation,
        file=path.name,
    )


def main(words: list[str] | None = None) -> int:
    """Print a line for each file, and write the table; 1 when a file cannot be graded."""
    about = "Grade what learners handed in from the lessons' pages."
    parser = argparse.ArgumentParser(prog="python -m classroom", description=about)
    parser.add_argument("places", nargs="+", type=Path, metavar="FILE_OR_FOLDER")
    parser.add_argument("--csv", type=Path, help="also write a table, with the explanations")
    asked = parser.parse_args(words)
    grades, failed = [], 0
    for place in asked.places:
        for path in sorted(place.glob("*.html")) if place.is_dir() else [place]:
            try:
                grades.append(grade(path))
                print(grades[-1])
            except (OSError, ValueError) as problem:
                print(f"{plain(path, 400)}: not graded, {problem}", file=sys.stderr)
                failed = 1
    if asked.csv:
        with asked.csv.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(field.name for field in fields(Grade))
            table.writerows(map(_row, grades))
    return failed


def _row(found: Grade) -> list[Any]:
    """A line of the table, in which no cell begins as a spreadsheet's formula does."""
    guarded = (isinstance(cell, str) and cell.startswith(_FORMULAS) for cell in astuple(found))
    return [f"'{cell}" if odd else cell for cell, odd in zip(astuple(found), guarded, strict=True)]
