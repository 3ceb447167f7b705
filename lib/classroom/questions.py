"""What a learner calls: `check`, `reveal`, `hint`, and `hide` and `after` for what waits for an
answer. The reply is always a sentence.

A lesson runs from top to bottom in one kernel, so what was answered is kept here, in the kernel's
memory, and nowhere else.
"""

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakSet

from classroom import answer_sheet, asking, folding, leaders, parts, rankings, trusting, winning
from classroom.lesson import Feedback, Question
from classroom.reading import ReadingError, simplified

LESSONS = {
    module.LESSON.name: module.LESSON
    for module in (rankings, winning, folding, leaders, trusting, asking, parts)
}

Explorer = TypeVar("Explorer")

_answered: set[str] = set()
_hidden: dict[str, WeakSet[Any]] = {}


def check(name: str, answer: Any) -> Feedback:
    """Judge an answer to an exercise ("rankings-3"), whatever it is: the result is a sentence and
    no error. ValueError when there is no exercise of that name.
    """
    invitation = (
        "Replace the `...` above by your answer and run the cell again. A wrong answer costs "
        "nothing."
    )
    return _respond(name, _find(name, exercises=True), answer, invitation)


def reveal(name: str, guess: Any) -> Feedback:
    """Compare a prediction, such as "rankings-guess", with what the library finds. Without a guess
    nothing is revealed; a guess is answered and not judged: `right` stays None. ValueError when
    there is no prediction of that name.
    """
    invitation = "Write a guess first, any guess: you will remember the answer better for it."
    return _respond(name, _find(name, predictions=True), guess, invitation)


def hide(explorer: Explorer, until: str) -> Explorer:
    """Hide what an explorer counts and concludes until `until` was answered, a prediction or an
    exercise, and hand the explorer back. ValueError when there is neither of that name.

    Its presets go for good: their names and notes answer exercises of every lesson.
    """
    _find(until, predictions=True, exercises=True)
    explorer.presets = []  # type: ignore[attr-defined]
    explorer.hidden = until not in _answered  # type: ignore[attr-defined]
    _hidden.setdefault(until, WeakSet()).add(explorer)
    return explorer


def after(name: str, show: Callable[[], Any]) -> Any:
    """What `show()` returns once the prediction `name` was made, an invitation to guess until then;
    ValueError when there is no prediction of that name.
    """
    _find(name, predictions=True)
    if name in _answered:
        return show()
    ask = (
        f"This cell tells what `classroom.reveal({name!r}, guess)` asks: write your guess there, "
        f"and run this again."
    )
    return Feedback(ask, heading="Guess first.")


def hint(name: str, number: int = 1) -> Feedback:
    """The hint of that number (from 1) for an exercise; ValueError if there is no such exercise."""
    hints = _find(name, exercises=True).hints
    if number not in range(1, len(hints) + 1):
        count = "one hint" if len(hints) == 1 else f"{len(hints)} hints, numbered from 1"
        return Feedback(
            f"{name} has {count}; after them comes the solution, in the collapsed cell below "
            f"the check."
        )
    text = hints[number - 1]
    if number < len(hints):
        text += f" There is another: `classroom.hint({name!r}, {number + 1})`."
    return Feedback(text, heading=f"Hint {number}.")


def is_missing(answer: Any, depth: int = 3) -> bool:
    """Whether nothing was written yet: `...`, None, an empty text, or a list that still holds one
    of them; no answer has lists nested more deeply than `depth`.
    """
    if isinstance(answer, (list, tuple, set, frozenset)):
        return depth > 0 and any(is_missing(part, depth - 1) for part in answer)
    if isinstance(answer, str):
        return answer.strip() in ("", "...")
    return answer is ... or answer is None


def _respond(name: str, asked: Question, answer: Any, invitation: str) -> Feedback:
    if is_missing(answer):
        return Feedback(invitation, heading="Your turn.")
    try:
        feedback = asked.reply(asked.read(simplified(answer)))
    except ReadingError as problem:
        feedback = Feedback(str(problem), right=False, heading="I cannot read that.")
    if feedback.right is not False:
        _answered.add(name)
        for explorer in _hidden.get(name, ()):
            explorer.hidden = False
    answer_sheet.note(name, answer, feedback)
    return feedback


def _find(name: str, *, predictions: bool = False, exercises: bool = False) -> Question:
    lesson, _, key = str(name).partition("-")
    if lesson not in LESSONS:
        raise ValueError(f"There is no lesson {lesson!r}: the lessons are {', '.join(LESSONS)}.")
    found = LESSONS[lesson].predictions if predictions else {}
    if exercises:
        found = found | LESSONS[lesson].exercises
    if key not in found:
        known = ", ".join(f"{lesson}-{each}" for each in found)
        raise ValueError(f"There is no {name!r}: {lesson} has {known}.")
    return found[key]
