"""A lesson as data, for a page that answers without Python: forms, sentences and numbers.

Of a question with finitely many answers every reply is made here, and its page looks it up. Of
whole numbers there are runs of one reply each, in which `{n}` stands for the answer. The other
questions are judged by `static/lesson_answers.js`, with `words` and `data`.
"""

import re
from collections.abc import Callable, Iterator
from itertools import chain, combinations, permutations
from typing import Any

from classroom import asking, folding, leaders, rankings, trusting, winning
from classroom.lesson import Question
from classroom.questions import LESSONS
from papers.bottleneck.counting.regions import count_regions
from papers.hardmax.dynamics import hardmax_step

Reply = tuple[bool | None, str]

_EACH = 1000  # every whole number up to here is asked, thoughts behind larger ones span many
_FARTHEST = 10**9


def lesson(name: str) -> dict[str, Any]:
    """What a page has to know of a lesson: lists, numbers and texts in Markdown."""
    known = LESSONS[name]
    texts: list[Reply] = []
    questions = {
        f"{name}-{key}": {
            "form": asked.read.form,
            "table": _table(asked, texts),
            "hints": asked.hints,
            "right": None if key in known.predictions else False,
        }
        for key, asked in (known.predictions | known.exercises).items()
    }
    return {"questions": questions, "texts": texts, "words": known.sentences, "data": _DATA[name]()}


def _table(asked: Question, texts: list[Reply]) -> dict[str, Any] | None:
    form = asked.read.form

    def index(value: Any) -> int:
        feedback = asked.reply(value)
        text = _without(value, feedback.text) if form["kind"] == "whole" else feedback.text
        if (feedback.right, text) not in texts:
            texts.append((feedback.right, text))
        return texts.index((feedback.right, text))

    if form["kind"] == "whole" and asked is not trusting.LESSON.exercises["4"]:
        high = _FARTHEST if form["high"] is None else form["high"]
        runs = _runs(index, form["low"], high)
        return {"runs": [(last if last < high else None, reply) for last, reply in runs]}
    if form["kind"] not in _ALL:
        return None
    return {"keys": {key: index(value) for key, value in _ALL[form["kind"]](form)}}


def _without(n: int, text: str) -> str:
    """The text with a place where the number stood."""
    text = re.sub(rf"(?<![\w.,]){n:,}(?!\w|[.,]\d)", "{n,}" if n > 999 else "{n}", text)
    return re.sub(rf"(?<![\w.,]){n}(?!\w|[.,]\d)", "{n}", text)


def _runs(reply: Callable[[int], int], low: int, high: int) -> Iterator[tuple[int, int]]:
    """(last number, reply) of the runs from `low` to `high`."""
    asked = [*range(low, min(high, _EACH) + 1)]
    while asked[-1] < high:
        asked.append(min(high, asked[-1] * 21 // 20))
    before, said = low, reply(low)
    for n in asked[1:]:
        after = reply(n)
        while after != said:  # the last number before `n` with the reply of `before`
            left, right = before, n
            while right - left > 1:
                middle = (left + right) // 2
                left, right = (middle, right) if reply(middle) == said else (left, middle)
            yield left, said
            before, said = right, reply(right)
        before = n
    yield high, said


def _subsets(form: dict[str, Any]) -> Iterator[tuple[str, frozenset[Any]]]:
    names = form["names"]
    some = chain.from_iterable(combinations(names, k) for k in range(len(names) + 1))
    return ((",".join(map(str, each)), frozenset(each)) for each in some)


_ALL: dict[str, Callable[[dict[str, Any]], Any]] = {
    "truth": lambda _: [("true", True), ("false", False)],
    "choice": lambda form: [(option, option) for option in form["options"]],
    "members": _subsets,
    "order": lambda form: [("".join(some), some) for some in permutations(form["names"])],
}


def _leaders() -> dict[str, Any]:
    before = leaders.START[leaders.ASKED - 1]
    after = hardmax_step(leaders.START, leaders.IDENTITY, leaders.ALPHA)[leaders.ASKED - 1]
    goal = before + (after - before) * (1 + leaders.ALPHA) / leaders.ALPHA
    return {
        "before": before.tolist(),
        "after": after.tolist(),
        "goal": goal.tolist(),
        "half": (before + leaders.ALPHA * (goal - before)).tolist(),
        "rectangle": leaders.RECTANGLE.tolist(),
    }


# what the page's judges know of each lesson
_DATA: dict[str, Callable[[], dict[str, Any]]] = {
    "rankings": lambda: {
        "W": rankings.LAYER.W.tolist(),
        "most": count_regions(4, 2, bias=True),
        "general": count_regions(4, 2, bias=False),
    },
    "winning": lambda: {
        "triangle": winning.TRIANGLE.W.tolist(),
        "biases": winning.TRIANGLE_BIAS,
        "roof": float(winning.blocking_weights() @ winning.TRIANGLE_BIAS),
        "seven": winning.SEVEN.W.tolist(),
        "own": winning.OWN_ROW.W.tolist(),
        **winning.winner_at_the_row_of_d(),
    },
    "folding": lambda: {
        "past": folding.PAST.tolist(),
        "coupling": folding.PLANE_COUPLING,
        "strong": folding.STRONG,
    },
    "leaders": _leaders,
    "trusting": lambda: {
        "rows": [trusting.ROWS[name] for name in "ABCD"],
        "right": str(trusting.largest_bias()),
        "plain": str(sum(trusting.BIASES.values()) / 3),
        "box": trusting.largest_box(),
        "miss": str(sum(map(abs, trusting.residual(trusting.printed_weights())))),
        "gap": str(trusting.GAP),
    },
    "asking": lambda: {"index": asking.INDEX.W.tolist()},
    "parts": lambda: {},  # each of its questions has finitely many answers
}
