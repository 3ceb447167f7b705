"""What learners hand in from the lessons' pages, judged once more: a table of who solved what.

A page (`static/lesson.js`) saves every answer beside what it replied. Replies are not believed: the
desk reads and judges each answer again. Explanations are for a human reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from classroom import desk
from softgeom.checkpoints.tensors import plain

_DATA = re.compile(r'<script type="application/json" id="answers">(.*?)</script>', re.DOTALL)
_FORMULAS = (*"=+-@＝＋－＠\t\r",)  # a spreadsheet reads such a cell as a formula
_LONGEST = 10**7  # bytes of a file; an hour of answers takes some thousands


@dataclass(frozen=True)
class Grade:
    """One file: its learner, and what the desk finds in it."""

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
        told = "explained" if self.explanation.strip() else "no explanation"
        return (
            f"{self.name or '(no name)':24} {self.lesson:9} {count} of {self.exercises} solved "
            f"in {self.attempts} attempts ({self.solved or 'none'}), {self.guesses} guesses, {told}"
        )


COLUMNS = tuple(Grade.__dataclass_fields__)


def grade(path: Path) -> Grade:
    """Judge the answers in a file that a lesson's page saved.

    Raises
    ------
    ValueError
        When it is no such file; the message says why.
    """
    if path.stat().st_size > _LONGEST:
        raise ValueError("it is too large for a file of answers")
    found = _DATA.search(path.read_text(encoding="utf-8", errors="replace"))
    if found is None:
        raise ValueError("it holds no answers of a lesson's page")
    try:
        said = json.loads(found[1])
        name, lesson, explanation = (str(said[key]) for key in ("name", "lesson", "explanation"))
        attempts = [(str(asked), answer) for asked, answer in said["attempts"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("its answers are not written as a lesson's page writes them") from None
    if lesson not in desk.LESSONS:
        raise ValueError(f"there is no lesson {lesson[:40]!r}")
    exercises: Any = desk.LESSONS[lesson].EXERCISES
    tried = [(asked.removeprefix(f"{lesson}-"), answer) for asked, answer in attempts]
    solved = {
        key
        for key, answer in tried
        if key in exercises and desk.check(f"{lesson}-{key}", answer).right
    }
    guesses: Any = desk.LESSONS[lesson].PREDICTIONS
    return Grade(
        name=plain(" ".join(name.split()), 80),
        lesson=lesson,
        solved=" ".join(sorted(solved)),
        exercises=len(exercises),
        attempts=sum(key in exercises for key, _ in tried),
        guesses=len({key for key, _ in tried if key in guesses}),
        explanation=explanation,
        file=path.name,
    )


def files(places: Iterable[Path]) -> list[Path]:
    """The files named, and those of the folders named, that could be answers."""
    return [
        path
        for place in places
        for path in (sorted(place.glob("*.html")) if place.is_dir() else [place])
    ]


def row(found: Grade) -> tuple[Any, ...]:
    """A line of a table with `COLUMNS`; no cell begins as a spreadsheet's formula does."""
    return tuple(
        f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULAS) else cell
        for cell in astuple(found)
    )
