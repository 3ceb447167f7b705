"""An exercise, and the feedback on an answer.

An exercise is three functions: `read` turns what was written into a value or says in a sentence why
it cannot; `find_fault` says what is wrong with a value, or None; `remark` says what a right answer
shows. A prediction is read in the same way and then compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from classroom.reading import Reader


@dataclass(frozen=True)
class Feedback:
    """What the learner sees: a sentence or two with formulas between dollar signs, shown as
    Markdown in a notebook behind a heading. `right` is None where nothing was judged (no answer
    yet, a hint, a prediction).
    """

    text: str
    right: bool | None = None
    heading: str = ""

    def __repr__(self) -> str:
        return f"{self.heading} {self.text}".strip()

    def _repr_markdown_(self) -> str:
        return f"> **{self.heading}** {self.text}" if self.heading else f"> {self.text}"


@dataclass(frozen=True)
class Exercise:
    """One task of a lesson: how it is read (raises `ReadingError`), what is wrong with a value
    (None when it is right), what a right one shows, and hints from a nudge to nearly everything.
    """

    read: Reader
    find_fault: Callable[[Any], str | None]
    remark: Callable[[Any], str]
    hints: tuple[str, ...]

    def reply(self, value: Any) -> Feedback:
        """What is said to a value that was read."""
        fault = self.find_fault(value)
        if fault is not None:
            return Feedback(fault, right=False, heading="Not yet.")
        return Feedback(self.remark(value), right=True, heading="Right.")


@dataclass(frozen=True)
class Prediction:
    """A guess before a reveal: how it is read; a sentence with the guess and what the library
    finds; and one about the guess, why it is right, or the thought that probably led to it and
    where that goes wrong.
    """

    read: Reader
    compare: Callable[[Any], str]
    answer: Callable[[Any], str]

    def reply(self, value: Any) -> Feedback:
        """What is said to a guess that was read."""
        return Feedback(f"{self.compare(value)} {self.answer(value)}", heading="Compare.")


def is_missing(answer: Any, depth: int = 3) -> bool:
    """Whether nothing was written yet: `...`, None, an empty text, or a list that still holds one
    of them; no answer has lists nested more deeply than `depth`.
    """
    if isinstance(answer, (list, tuple, set, frozenset)):
        return depth > 0 and any(is_missing(part, depth - 1) for part in answer)
    return (
        answer is ...
        or answer is None
        or (isinstance(answer, str) and answer.strip() in ("", "..."))
    )
