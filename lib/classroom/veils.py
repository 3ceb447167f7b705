"""What waits for an answer: figures under a veil, and cells that would print what is asked.

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

from classroom.exercise import Feedback

Explorer = TypeVar("Explorer")

_answered: set[str] = set()
_veiled: dict[str, WeakSet[Any]] = {}


def veil(explorer: Explorer, until: str) -> Explorer:
    """Hide what an explorer counts and concludes until `until` was answered, and hand the explorer
    back.

    Its presets go for good: their names and notes answer exercises of every lesson.
    """
    explorer.presets = []  # type: ignore[attr-defined]
    explorer.veiled = until not in _answered  # type: ignore[attr-defined]
    _veiled.setdefault(until, WeakSet()).add(explorer)
    return explorer


def after(name: str, show: Callable[[], Any]) -> Any:
    """What `show` returns, once the prediction `name` was made; an invitation to guess until
    then.
    """
    if name in _answered:
        return show()
    ask = (
        f"This cell tells what `classroom.reveal({name!r}, guess)` asks: write your guess there, "
        f"and run this again."
    )
    return Feedback(ask, heading="Guess first.")


def lift(name: str) -> None:
    """Remember that `name` was answered, and lift the veils that waited for it."""
    _answered.add(name)
    for explorer in _veiled.get(name, ()):
        explorer.veiled = False
