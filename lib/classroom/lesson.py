"""A lesson: its questions, and the sentences that answer them.

The sentences of a lesson stand in `sentences/NAME.yaml`, where a teacher can change them. The
lesson's module registers a function for each question, which chooses among them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from classroom.reading import Reader

SENTENCES = Path(__file__).parent / "sentences"
SEEN = "You saw it"  # the sentence for a right guess begins so; static/lesson.js looks for it, too


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
class Question:
    """How an answer is read (`read` raises `ReadingError`), what is replied to a value that was
    read, and hints from a nudge to nearly everything.
    """

    read: Reader
    reply: Callable[[Any], Feedback]
    hints: tuple[str, ...] = ()


class Lesson:
    """The questions of a lesson by their keys: predictions, which are answered by any guess, and
    exercises, which are answered by a right value.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        text = (SENTENCES / f"{name}.yaml").read_text(encoding="utf-8")
        self.sentences: dict[str, str] = yaml.safe_load(text)
        self.predictions: dict[str, Question] = {}
        self.exercises: dict[str, Question] = {}

    def say(self, called: str, /, **values: Any) -> str:
        """The sentence of that name, with its places filled."""
        return self.sentences[called].format(**values)

    def prediction(self, key: str, read: Reader) -> Callable[..., Any]:
        """Register a function of a guess. It says what the library finds, and why one guesses so."""

        def register(compare: Callable[[Any], str]) -> Callable[[Any], str]:
            def reply(guess: Any) -> Feedback:
                text = compare(guess)
                return Feedback(text, heading="Right." if SEEN in text else "Compare.")

            self.predictions[key] = Question(read, reply)
            return compare

        return register

    def exercise(
        self,
        key: str,
        read: Reader,
        facts: Callable[[Any], dict[str, Any]] | None = None,
        *,
        right: Callable[[], Any] | None = None,
    ) -> Callable[..., Any]:
        """Register a function of an answer: what is wrong with it, None when it is right. Where
        there is one `right` answer, the function gets a wrong one and the right one.

        A right answer gets the sentence `right KEY`, in which `{answer}` stands for it; `facts`
        computes what else that sentence needs.
        """

        def register(find_fault: Callable[..., str | None]) -> Callable[..., str | None]:
            def fault_of(answer: Any) -> str | None:
                if right is None:
                    return find_fault(answer)
                return None if answer == (wanted := right()) else find_fault(answer, wanted)

            def reply(answer: Any) -> Feedback:
                fault = fault_of(answer)
                if fault is not None:
                    return Feedback(fault, right=False, heading="Not yet.")
                known = facts(answer) if facts else {}
                text = self.say(f"right {key}", answer=answer, **known)
                return Feedback(text, right=True, heading="Right.")

            hints = (name for name in self.sentences if name.rstrip("abc") == f"hint {key}")
            self.exercises[key] = Question(read, reply, tuple(map(self.say, hints)))
            return find_fault

        return register


def few_or_many(guess: float, right: float) -> str:
    """What a wrong guess of a number is too: "few" or "many"."""
    return "few" if guess < right else "many"
