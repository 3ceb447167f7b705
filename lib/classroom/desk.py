"""The teacher's desk: finds the exercise by its name, reads the answer, and always answers with a
sentence; and keeps what waits for an answer, figures under a veil and cells that would print what
is asked.

A prediction is answered by any guess that can be read, an exercise by a right answer. A lesson runs
from top to bottom in one kernel, so what was answered is kept here, in the kernel, and nowhere
else.

    explorer = classroom.veil(SoftmaxExplorer(W), until="rankings-guess")     # shows no count and no verdict yet
    classroom.after("rankings-guess", count)                                  # calls count() once the guess is made
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakSet

from classroom import asking, folding, leaders, rankings, sheet, trusting, winning
from classroom.exercise import Exercise, Feedback, Prediction, is_missing
from classroom.reading import ReadingError, simplified

LESSONS = {
    "rankings": rankings,
    "winning": winning,
    "folding": folding,
    "leaders": leaders,
    "trusting": trusting,
    "asking": asking,
}

Explorer = TypeVar("Explorer")

_answered: set[str] = set()
_veiled: dict[str, WeakSet[Any]] = {}


def check(name: str, answer: Any) -> Feedback:
    """Judge an answer to an exercise ("rankings-3"), whatever it is: the result is a sentence and
    no error. ValueError when there is no exercise of that name.
    """
    invitation = (
        "Replace the `...` above by your answer and run the cell again. A wrong answer costs "
        "nothing."
    )
    return _respond(name, "EXERCISES", answer, invitation)


def reveal(name: str, guess: Any) -> Feedback:
    """Compare a prediction, such as "rankings-guess", with what the library finds, and answer it:
    right, or the misconception behind it. Without a guess nothing is revealed. A guess is answered
    and not judged: `right` stays None. ValueError when there is no prediction of that name.
    """
    invitation = "Write a guess first, any guess: you will remember the answer better for it."
    return _respond(name, "PREDICTIONS", guess, invitation)


def veil(explorer: Explorer, until: str) -> Explorer:
    """Hide what an explorer counts and concludes until `until` was answered, a prediction or an
    exercise, and hand the explorer back. ValueError when there is neither of that name.

    Its presets go for good: their names and notes answer exercises of every lesson.
    """
    _find(until, "PREDICTIONS", "EXERCISES")
    explorer.presets = []  # type: ignore[attr-defined]
    explorer.veiled = until not in _answered  # type: ignore[attr-defined]
    _veiled.setdefault(until, WeakSet()).add(explorer)
    return explorer


def after(name: str, show: Callable[[], Any]) -> Any:
    """What `show()` returns once the prediction `name` was made, an invitation to guess until then;
    ValueError when there is no prediction of that name.
    """
    _find(name, "PREDICTIONS")
    if name in _answered:
        return show()
    ask = (
        f"This cell tells what `classroom.reveal({name!r}, guess)` asks: write your guess there, "
        f"and run this again."
    )
    return Feedback(ask, heading="Guess first.")


def hint(name: str, number: int = 1) -> Feedback:
    """Give the hint of that number (from 1) for an exercise; ValueError when there is none of that
    name.
    """
    hints = _find(name, "EXERCISES").hints
    if number not in range(1, len(hints) + 1):
        count = "one hint" if len(hints) == 1 else f"{len(hints)} hints, numbered from 1"
        return Feedback(
            f"{name} has {count}; after them comes the solution, in the collapsed cell below "
            f"the check."
        )
    more = (
        f" There is another: `classroom.hint({name!r}, {number + 1})`."
        if number < len(hints)
        else ""
    )
    return Feedback(hints[number - 1] + more, heading=f"Hint {number}.")


def _lift(name: str) -> None:
    """Remember that `name` was answered, and lift the veils that waited for it."""
    _answered.add(name)
    for explorer in _veiled.get(name, ()):
        explorer.veiled = False


def _respond(name: str, kind: str, answer: Any, invitation: str) -> Feedback:
    asked = _find(name, kind)
    if is_missing(answer):
        return Feedback(invitation, heading="Your turn.")
    try:
        feedback = asked.reply(asked.read(simplified(answer)))
    except ReadingError as problem:
        return sheet.note(
            name, answer, Feedback(str(problem), right=False, heading="I cannot read that.")
        )
    if feedback.right is not False:
        _lift(name)
    return sheet.note(name, answer, feedback)


def _find(name: str, *kinds: str) -> Any:
    lesson, _, rest = str(name).partition("-")
    if lesson not in LESSONS:
        raise ValueError(f"There is no lesson {lesson!r}: the lessons are {', '.join(LESSONS)}.")
    found: dict[str, Exercise | Prediction] = {}
    for kind in kinds:
        found |= getattr(LESSONS[lesson], kind)
    if rest not in found:
        raise ValueError(
            f"There is no {name!r}: {lesson} has {', '.join(f'{lesson}-{key}' for key in found)}."
        )
    return found[rest]
