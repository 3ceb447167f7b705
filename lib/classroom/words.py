"""The words of a lesson, apart from what decides which of them are said.

A text of paragraphs `name: sentences`, their further lines indented, with values in braces. `right
3` is said to a right answer of exercise 3 (`{answer}`), `hint 3` and `hint 3b` are its hints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from classroom.exercise import Exercise
from classroom.reading import Reader


class Words:
    """`say(name, value=...)`: the sentences of that name."""

    def __init__(self, text: str) -> None:
        self.texts: dict[str, str] = {}
        name = ""
        for line in text.strip().splitlines():
            if line.startswith(" "):
                self.texts[name] += f" {line.strip()}"
            else:
                name, _, start = line.partition(": ")
                self.texts[name] = start

    def __call__(self, called: str, /, **values: Any) -> str:
        return self.texts[called].format(**values)

    def exercise(
        self,
        number: int,
        read: Reader,
        find_fault: Callable[[Any], str | None],
        remark: Callable[[Any], str] | None = None,
    ) -> Exercise:
        """The exercise of that number with its words, the remark where one sentence serves all."""
        hints = [name for name in self.texts if name.rstrip("abc") == f"hint {number}"]
        say = remark or (lambda answer: self(f"right {number}", answer=answer))
        return Exercise(read, find_fault, say, tuple(map(self, hints)))
