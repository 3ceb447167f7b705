"""Every question, answered rightly, wrongly, oddly and not at all: the reply is a sentence that
names the mistake. The pages without a kernel reply the same.
"""

import functools
import inspect
import re
from importlib import import_module

import numpy as np
import pytest
from lesson_cases import RIGHT, WRONG, value

import classroom
from classroom import LESSONS, answer_sheet, pages, questions, rankings, tables
from papers.explorers import AttentionExplorer, FoldExplorer, HardmaxExplorer, SoftmaxExplorer

EXERCISES = [f"{name}-{key}" for name, lesson in LESSONS.items() for key in lesson.exercises]
GUESSES = [f"{name}-{key}" for name, lesson in LESSONS.items() for key in lesson.predictions]


def reply(question, answer):
    return (classroom.reveal if question in GUESSES else classroom.check)(question, answer)


@pytest.fixture(autouse=True)
def nothing_answered(monkeypatch):
    monkeypatch.setattr(answer_sheet, "_attempts", {})
    monkeypatch.setattr(questions, "_answered", set())
    monkeypatch.setattr(questions, "_hidden", {})


@pytest.mark.parametrize("question", EXERCISES + GUESSES)
def test_right_answers(question):
    for typed in RIGHT[question]:
        feedback = reply(question, value(typed))
        assert feedback.right is (None if question in GUESSES else True), feedback
        assert feedback.heading == "Right."
        assert question in EXERCISES or "You saw it" in feedback.text
    assert question in {wrong for wrong, _, _ in WRONG}


@pytest.mark.parametrize(("question", "typed", "says"), WRONG)
def test_the_reason_for_a_mistake_is_named(question, typed, says):
    feedback = reply(question, value(typed))
    assert says in feedback.text
    assert feedback.right is (None if question in GUESSES else False)
    assert "You saw it" not in feedback.text
    assert question in GUESSES or feedback._repr_markdown_().startswith("> **Not yet.**")


def nested(depth):
    answer = []
    for _ in range(depth):
        answer = [answer]
    return answer


ODD = [
    "banana", -1, 0, 2.5, 10**400, 10**5000, {10**5000}, 1j, True, np.nan, [], {}, {1: 2}, set(),
    [[1, 2], [3]], np.zeros(2), np.zeros((4, 2)), np.full((4, 2), np.inf), [[1e6, -1e6]] * 4,
    len, b"A", np.array("A"), np.array(None), nested(2_000), range(10**9), np.zeros((1,) * 32),
]  # fmt: skip


@pytest.mark.parametrize("question", EXERCISES + GUESSES)
def test_odd_answers_get_a_sentence_and_missing_ones_a_nudge(question):
    for answer in ODD:
        text = reply(question, answer).text
        assert text.endswith((".", "?", "!")), (answer, text)
        assert "\n" not in text
    for missing in (..., None, "", " ... ", [..., 1], [[1, None]]):
        feedback = reply(question, missing)
        assert (feedback.right, feedback.heading) == (None, "Your turn.")
        assert question in EXERCISES or "guess first" in feedback.text


@pytest.mark.parametrize("question", EXERCISES)
def test_hints_come_one_at_a_time_and_end(question):
    lesson, key = question.split("-")
    hints = LESSONS[lesson].exercises[key].hints
    assert hints
    for number, hint in enumerate(hints, 1):
        given = classroom.hint(question, number)
        assert given.text.startswith(hint)
        assert (f"{number + 1})" in given.text) == (number < len(hints))
    for number in (0, len(hints) + 1):
        assert "solution" in classroom.hint(question, number).text


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: classroom.check("ranking-1", 3), "the lessons are rankings, winning"),
        (lambda: classroom.reveal("rankings-1", 3), "rankings has rankings-guess"),
        (lambda: classroom.check("rankings-guess", 3), "rankings has rankings-1"),
        (lambda: classroom.hint("rankings-99"), "There is no 'rankings-99'"),
        (lambda: classroom.hide(SoftmaxExplorer(), "rankings-guss"), "has rankings-guess"),
        # an exercise: its answer is not printed by any cell
        (lambda: classroom.after("rankings-1", print), "There is no 'rankings-1'"),
    ],
)
def test_unknown_names_list_the_known_ones(call, says):
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.parametrize("lesson", LESSONS.values(), ids=LESSONS)
def test_every_sentence_that_is_used_exists_and_every_hint_has_its_exercise(lesson):
    module = import_module(f"classroom.{lesson.name}")
    used = set(re.findall(r'say\("([^"{]+)"', inspect.getsource(module)))
    assert len(used) > 5
    assert used <= set(lesson.sentences)
    hinted = {re.sub(r"\D", "", name) for name in lesson.sentences if name.startswith("hint")}
    assert hinted == set(lesson.exercises)


@pytest.mark.parametrize(
    "make", [SoftmaxExplorer, FoldExplorer, AttentionExplorer, HardmaxExplorer]
)
def test_a_hidden_explorer_appears_after_its_answer(make):
    """After any readable guess, and after a right answer of an exercise."""
    explorer = classroom.hide(make(), until="rankings-guess")
    other = classroom.hide(make(), until="rankings-2")
    assert explorer.presets == []
    for guess in (..., "banana"):
        classroom.reveal("rankings-guess", guess)
        assert explorer.hidden
    classroom.reveal("rankings-guess", 7)
    assert not explorer.hidden
    assert not classroom.hide(make(), until="rankings-guess").hidden
    classroom.check("rankings-2", 11)
    assert other.hidden
    classroom.check("rankings-2", 10)
    assert not other.hidden


def test_a_cell_waits_for_the_guess_that_it_would_give_away():
    calls = []

    def show():
        calls.append(1)
        return rankings.realised(rankings.LAYER.W)

    closed = classroom.after("rankings-guess", show)
    assert closed.heading == "Guess first."
    assert "classroom.reveal('rankings-guess', guess)" in closed.text
    assert not calls
    classroom.reveal("rankings-guess", 7)
    assert classroom.after("rankings-guess", show) == 12


JUDGE = """
const modules = await Promise.all(argument.modules.map((url) => import(url)));
const tools = Object.assign({}, ...modules);
return argument.asked.map(([name, typed]) => {
  const { form } = argument.lesson.questions[name];
  const isTyped = typeof typed === "string" && !form.options;
  const { value, problem } = isTyped ? m.read(typed, form) : { value: typed };
  return problem ? { problem } : { value, ...m.judge(name, value, argument.lesson, tools) };
});
"""
LEAST = 40  # answers to each question that are drawn at random


@pytest.fixture(scope="module")
def judged(javascript, scripts_folder):
    """`judged(lesson, asked)`: what its page makes of (question, what is typed or pressed)."""
    names = ("geometry", "hardmax", "attention")
    modules = [(scripts_folder / f"{name}.js").as_uri() for name in names]
    # seconds each
    lesson = functools.cache(lambda name: pages.for_page(tables.lesson(name)))

    def judged_(name, asked):
        argument = {"modules": modules, "lesson": lesson(name), "asked": asked}
        return javascript("lesson_answers", JUDGE, argument)

    return judged_


def typed_on_a_page(answer):
    if isinstance(answer, bool | str):
        return answer
    if isinstance(answer, dict | set | frozenset):
        return ", ".join(sorted(map(str, answer)))
    if isinstance(answer, list | tuple | np.ndarray):
        parts = [typed_on_a_page(part) for part in answer]
        return ("; " if np.ndim(answer) == 2 else ", ").join(parts)
    return format(answer) if not isinstance(answer, float) else repr(float(answer))


def at_random(form, rng):
    kind = form["kind"]
    if kind == "whole":
        high = form["high"] or 10**6
        return str(min(high, form["low"] + int(10 ** rng.uniform(0, 6)) - 1))
    if kind in ("truth", "choice"):
        return bool(rng.integers(2)) if kind == "truth" else str(rng.choice(form["options"]))
    if kind in ("members", "order"):
        names = rng.permutation(form["names"])
        return " ".join(map(str, names[: None if kind == "order" else rng.integers(len(names))]))
    if kind == "fractions":
        tops = rng.integers(-1, 9, size=form["count"])
        return " ".join(f"{n}/{rng.integers(1, 9)}" for n in tops)
    shape = [int(rng.integers(n[0], n[1] + 1)) if np.ndim(n) else n for n in form.get("shape", ())]
    return typed_on_a_page((rng.integers(-24, 25, size=shape) / 8).tolist())


@pytest.mark.parametrize("name", LESSONS)
def test_a_page_judges_an_answer_as_python_does(judged, name):
    rng, lesson = np.random.default_rng(5), LESSONS[name]
    stored = [(question, typed) for question, some in RIGHT.items() for typed in some]
    stored += [(question, typed) for question, typed, _ in WRONG]
    asked = [(q, typed_on_a_page(value(typed))) for q, typed in stored if q.startswith(f"{name}-")]
    for key, question in (lesson.predictions | lesson.exercises).items():
        asked += [(f"{name}-{key}", at_random(question.read.form, rng)) for _ in range(LEAST)]
    for (question, typed), found in zip(asked, judged(name, asked), strict=True):
        assert "problem" not in found, (question, typed, found)
        feedback = reply(question, found["value"])
        assert found["text"] == pages.inline(feedback.text), (question, typed)
        assert found["right"] == feedback.right, (question, typed)


@pytest.mark.parametrize(
    ("question", "typed", "says"),
    [
        ("rankings-2", "", "Write an answer first"),
        ("rankings-2", "ten", "Write a whole number"),
        ("rankings-2", "1.5", "Write a whole number"),
        ("rankings-6", "101", "between 1 and 100"),
        ("rankings-1", "ABCC", "exactly once"),
        ("rankings-4", "1 2 3", "8 numbers, row after row; these are 3"),
        ("rankings-5", "1, 2, 3, 1e7", "none beyond a million"),
    ],
)
def test_what_a_page_cannot_read_gets_a_sentence(judged, question, typed, says):
    (found,) = judged("rankings", [(question, typed)])
    assert says in found["problem"]
