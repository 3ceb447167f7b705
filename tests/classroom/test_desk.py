"""Whatever is written, the desk answers with a sentence; only names can be wrong."""

import inspect
import re

import numpy as np
import pytest

import classroom
from classroom import folding, leaders, masks, pairs, rankings, trusting, winning
from classroom.exercise import is_missing

LESSONS = classroom.LESSONS.items()
NAMES = [f"{lesson}-{number}" for lesson, module in LESSONS for number in module.EXERCISES]
GUESSES = [f"{lesson}-{key}" for lesson, module in LESSONS for key in module.PREDICTIONS]
ODD = [
    "banana", "", -1, 0, 2.5, 10**400, 10**5000, {10**5000}, 1j, True, np.nan, [], {}, {1: 2},
    set(), (1, 2), [[1, 2], [3]], [["x"]], np.zeros(2),
    np.zeros((4, 2)), np.ones((4, 2)), np.zeros(7), np.full((4, 2), np.inf), [1e6] * 4,
    [[1e6, -1e6]] * 4, object(), len, b"A", range(3), [None],
]  # fmt: skip


def _nested(depth: int) -> list:
    answer: list = []
    for _ in range(depth):
        answer = [answer]
    return answer


HIDDEN = np.ma.masked_equal(np.arange(4.0), 2)
ODD += [
    np.array(3), np.array("A"), np.array(None), np.ma.masked, HIDDEN, HIDDEN[2:3], [np.ma.masked],
    _nested(2_000), (_nested(2_000),),
    range(10**9), [range(10**9)], np.ones((2, 2), dtype=object), [np.array(1.0)],
    np.array([[None]]), np.zeros((1,) * 32),
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES + GUESSES)
def test_every_answer_gets_a_sentence(name):
    for answer in ODD:
        text = (classroom.check if name in NAMES else classroom.reveal)(name, answer).text
        assert text.endswith((".", "?") if name in NAMES else (".", "!")), (answer, text)
        assert "\n" not in text or name in GUESSES


@pytest.mark.parametrize("missing", [..., None, "", " ... ", [..., 1], [[1, None]]])
def test_nothing_written_gets_a_nudge_and_reveals_nothing(missing):
    assert is_missing(missing)
    for name in NAMES:
        feedback = classroom.check(name, missing)
        assert (feedback.right, feedback.heading) == (None, "Your turn.")
    for name in GUESSES:
        assert "guess first" in classroom.reveal(name, missing).text


@pytest.mark.parametrize("name", NAMES)
def test_hints_come_one_at_a_time_and_end(name):
    lesson, number = name.split("-")
    hints = classroom.LESSONS[lesson].EXERCISES[number].hints
    for number in range(1, len(hints) + 1):
        given = classroom.hint(name, number)
        assert given.text.startswith(hints[number - 1])
        assert (f"{number + 1})" in given.text) == (number < len(hints))
    assert "solution" in classroom.hint(name, len(hints) + 1).text
    assert "solution" in classroom.hint(name, 0).text


@pytest.mark.parametrize("ask", [classroom.check, classroom.reveal])
def test_unknown_names_list_the_known_ones(ask):
    with pytest.raises(ValueError, match="the lessons are rankings, winning"):
        ask("ranking-1", 3)
    with pytest.raises(ValueError, match="rankings has rankings-"):
        ask("rankings-99", 3)


@pytest.mark.parametrize("lesson", [leaders, masks, pairs, rankings, folding, trusting, winning])
def test_every_answer_text_that_is_used_exists(lesson):
    """Words stand apart from what decides which of them are said; a name is no more than a text."""
    said = set(re.findall(r'SAY\("([^"{]+)"', inspect.getsource(lesson))) - {""}
    assert len(said) > 5
    assert said <= set(lesson.SAY.texts)
    numbers = {re.sub(r"\D", "", name) for name in lesson.SAY.texts if name.startswith("hint")}
    assert numbers == set(lesson.EXERCISES)
