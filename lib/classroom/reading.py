"""Readers: from what a learner wrote to a value, or a sentence that says what kind of answer is
expected.

Each function here makes a reader, which is called with an answer and raises `ReadingError`. They are
generous in form (a list, tuple or array; 12 or 12.0) and strict in meaning (no text for a number,
no NaN, no truth value for a count).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np


class ReadingError(Exception):
    """An answer of the wrong type, shape or range; the message is a sentence for the learner."""


@dataclass(frozen=True)
class Reader:
    """Reads an answer; `form` says of what kind it is, for a page that reads without Python."""

    read: Callable[[Any], Any]
    form: dict[str, Any]

    def __call__(self, answer: Any) -> Any:
        return self.read(answer)


# of a coordinate: beyond it a figure shows nothing, and squares lose the small differences that are
# asked about
LARGEST = 1e6


_MOST = 10_000  # entries of an answer: lessons ask for a dozen numbers
_DEEPEST = 3  # lists inside lists


def simplified(answer: Any) -> Any:
    """The answer as the readers take it: an array without axes is its number, a range its list.

    ReadingError for what no lesson asks for and no reader should walk through: lists nested deeply,
    more entries than anybody writes.
    """
    if isinstance(answer, np.ndarray) and answer.ndim == 0:
        return simplified(answer.item())
    level: list[Any] = [answer]
    for _ in range(_DEEPEST + 1):
        lists = [part for part in level if isinstance(part, (list, tuple, set, frozenset, range))]
        if sum(map(len, lists)) > _MOST:
            raise ReadingError("That is far more than is asked for: write a few numbers or names.")
        level = [part for one in lists for part in one]
    if level:
        raise ReadingError("The lists are nested too deeply: write a list of numbers or of lists.")
    return list(answer) if isinstance(answer, range) else answer


def number(unit: str = "a number") -> Reader:
    """A finite real number as a float; `unit` says in the message what it is."""

    def read(answer: Any) -> float:
        value = _scalar(answer)
        if value is None:
            raise ReadingError(
                f"Write {unit}, such as 0.5, without quotes or brackets; this is "
                f"{_describe(answer)}."
            )
        if not np.isfinite(value):
            raise ReadingError(f"Write {unit}: this one is not finite.")
        return value

    return Reader(read, {"kind": "number"})


def whole_number(low: int = 0, high: int | None = None) -> Reader:
    """An integer between `low` and `high`; 12.0 counts as 12, True does not count as 1."""

    def read(answer: Any) -> int:
        value = _scalar(answer)
        if value is None or not np.isfinite(value) or value != round(value):
            what = _describe(answer) if value is None else written(answer, 20)
            raise ReadingError(
                f"Write a whole number, such as {low + 3}, without quotes; this is {what}."
            )
        if value < low or (high is not None and value > high):
            limits = f"at least {low}" if high is None else f"between {low} and {high}"
            raise ReadingError(f"The answer is a whole number {limits}.")
        return int(value)

    return Reader(read, {"kind": "whole", "low": low, "high": high})


def truth() -> Reader:
    """True or False."""

    def read(answer: Any) -> bool:
        if not isinstance(answer, (bool, np.bool_)):
            raise ReadingError(f"Write True or False, without quotes; this is {_describe(answer)}.")
        return bool(answer)

    return Reader(read, {"kind": "truth"})


def choice(*options: str) -> Reader:
    """One of a few words, in quotes; capitals do not matter."""

    def read(answer: Any) -> str:
        if not isinstance(answer, str) or answer.strip().lower() not in options:
            raise ReadingError(
                f"Write one of {', '.join(repr(option) for option in options)}, in quotes."
            )
        return answer.strip().lower()

    return Reader(read, {"kind": "choice", "options": options})


def array(shape: tuple[int | tuple[int, int], ...], what: str) -> Reader:
    """Finite numbers of a shape, in which (low, high) allows that many; `what` names it."""

    def read(answer: Any) -> np.ndarray:
        try:
            if isinstance(answer, (str, bytes, dict, set, frozenset)):
                raise TypeError
            value = np.array(answer)
            if value.dtype.kind not in "iuf":
                raise TypeError
        except (TypeError, ValueError):
            raise ReadingError(
                f"Write {what} as {_example(shape)}: numbers only, rows of equal length; "
                f"this is {_describe(answer)}."
            ) from None
        if value.ndim != len(shape) or not all(
            _fits(n, asked) for n, asked in zip(value.shape, shape, strict=True)
        ):
            seen = f"has {_shape_text(value.shape)}" if value.ndim else "is a single number"
            raise ReadingError(
                f"{_capital(what)} must have the shape {_shape_text(shape)}, such as "
                f"{_example(shape)}; yours {seen}."
            )
        value = value.astype(float)
        if not np.all(np.abs(value) <= LARGEST):  # also refuses NaN
            raise ReadingError(f"{_capital(what)} must be finite numbers, none beyond a million.")
        return value

    return Reader(read, {"kind": "array", "shape": shape})


def fractions(count: int, what: str) -> Reader:
    """So many exact fractions: `Fraction(1, 3)`, `"1/3"`, whole numbers, a float as it is."""

    def read(answer: Any) -> tuple[Fraction, ...]:
        parts = list(answer) if isinstance(answer, (list, tuple, np.ndarray)) else [answer]
        example = "[" + ", ".join(['"1/3"'] * count) + "]" if count > 1 else '"1/3"'
        if len(parts) != count:
            raise ReadingError(
                f"Write {what} as {example}: {count} fraction{'s' * (count > 1)}; yours are "
                f"{len(parts)}."
            )
        return tuple(
            _fraction(part, f"Write {what} as {example}, with a fraction in quotes")
            for part in parts
        )

    return Reader(read, {"kind": "fractions", "count": count})


def _fraction(part: Any, message: str) -> Fraction:
    if isinstance(part, np.generic):
        part = part.item()
    if isinstance(part, bool) or not isinstance(part, (int, float, str, Fraction)):
        raise ReadingError(f"{message}; this is {_describe(part)}.")
    try:
        value = _exact(part) if isinstance(part, str) else Fraction(part)
    except ZeroDivisionError:
        raise ReadingError(f"{message}; {written(part, 40)} divides by zero.") from None
    except (ValueError, OverflowError):
        raise ReadingError(f"{message}; {written(part, 40)} is none.") from None
    if abs(value) > LARGEST:
        raise ReadingError(f"{message}, none beyond a million.")
    return value


def _exact(text: str) -> Fraction:
    """The fraction or decimal that is written; an exponent could ask for a billion digits."""
    text = text.replace(" ", "")
    if len(text) > 60 or "e" in text.lower():
        raise ValueError
    return Fraction(text)


def members(names: Sequence[Any]) -> Reader:
    """A set of names, in any order: {"A", "C"}, ["A", "C"], "AC", or one name; it may be empty."""

    def read(answer: Any) -> frozenset[Any]:
        return frozenset(_named(answer, names, "a set"))

    return Reader(read, {"kind": "members", "names": list(names)})


def order(names: Sequence[str]) -> Reader:
    """All the names, each once, in an order: "DBAC" or ["D", "B", "A", "C"]."""

    def read(answer: Any) -> tuple[str, ...]:
        if isinstance(answer, (set, frozenset)):
            raise ReadingError(
                'A set in braces has no order: write a text such as "BA", or a list.'
            )
        value = tuple(_named(answer, names, "an order"))
        if len(value) != len(names) or len(set(value)) != len(names):
            raise ReadingError(
                f"Each of {', '.join(names)} must appear exactly once; you wrote "
                f"{', '.join(value) or 'none'}."
            )
        return value

    return Reader(read, {"kind": "order", "names": list(names)})


def _named(answer: Any, names: Sequence[Any], kind: str) -> list[Any]:
    letters = isinstance(names[0], str)
    example = repr({names[0], names[-1]} if kind == "a set" else [names[-1], names[0]])
    message = (
        f"Write {kind} of {'names' if letters else 'numbers'} from {', '.join(map(str, names))}, "
        f"such as {example}"
    )
    if isinstance(answer, (np.ndarray, np.generic)):
        answer = answer.tolist()
    if letters and isinstance(answer, str):
        parts: Iterable[Any] = [letter for letter in answer.upper() if letter not in " ,;<>"]
    elif isinstance(answer, (list, tuple, set, frozenset, range)):
        parts = [
            part.strip().upper() if letters and isinstance(part, str) else part for part in answer
        ]
    elif not letters and _scalar(answer) is not None:
        parts = [answer]
    elif isinstance(answer, dict) and not answer:  # {} is meant as the empty set
        parts = []
    else:
        raise ReadingError(f"{message}; this is {_describe(answer)}.")
    found = []
    for part in parts:
        value = part if letters else _scalar(part)
        if not isinstance(value, (str, float)) or value not in tuple(
            names
        ):  # a tuple: "AB" is a part of the text "ABC"
            raise ReadingError(f"{message}; {written(part, 40)} is none of them.")
        found.append(names[tuple(names).index(value)])
    return found


def written(answer: Any, longest: int) -> str:
    """What was written, as Python prints it, cut to so many characters; this never raises."""
    try:
        text = repr(answer)
    # of an object that somebody made, or of an integer with more digits than Python prints
    except Exception:
        text = _describe(answer)
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _scalar(answer: Any) -> float | None:
    """The number that `answer` is, None when it is no real number."""
    if isinstance(answer, np.ndarray) and answer.ndim == 0:
        answer = answer.item()
    if isinstance(answer, (bool, np.bool_, str, bytes)):
        return None
    if not hasattr(answer, "__float__") or isinstance(answer, np.ndarray):
        return None
    try:
        return float(answer)
    except (TypeError, ValueError):
        return None
    except OverflowError:  # an integer of more than 308 digits
        return float("inf")


_KINDS = {
    "str": "a text", "list": "a list", "tuple": "a tuple", "dict": "a dictionary", "set": "a set",
    "bool": "a truth value", "ndarray": "an array", "float": "a number", "int": "a number",
    "function": "a function", "complex": "a complex number",
}  # fmt: skip


def _describe(answer: Any) -> str:
    name = type(answer).__name__
    return _KINDS.get(name, f"of type {name}")


def _fits(n: int, asked: int | tuple[int, int]) -> bool:
    return asked[0] <= n <= asked[1] if isinstance(asked, tuple) else n == asked


def _shape_text(shape: tuple[Any, ...]) -> str:
    parts = [f"{n[0]} to {n[1]}" if isinstance(n, tuple) else str(n) for n in shape]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _example(shape: tuple[Any, ...]) -> str:
    sizes = [n[0] if isinstance(n, tuple) else n for n in shape]
    row = "[" + ", ".join(["0.5"] * sizes[-1]) + "]"
    if len(sizes) == 1:
        return row
    return f"[{row}, {row}]" if sizes[0] == 2 else f"[{row}, ...]"


def _capital(text: str) -> str:
    """For the beginning of a sentence; a single letter stays as it is, since b is not B."""
    return text if len(text) == 1 else text[:1].upper() + text[1:]
