"""Lessons without a kernel: their pages read and judge as the desk does."""

import functools

import numpy as np
import pytest
from lesson_cases import RIGHT, WRONG, value

import classroom
from classroom import pages as lesson_pages
from classroom import tables

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
    lesson = functools.cache(lambda name: lesson_pages.for_page(tables.lesson(name)))

    def judged_(name, asked):
        argument = {"modules": modules, "lesson": lesson(name), "asked": asked}
        return javascript("lesson_answers", JUDGE, argument)

    return judged_


def _typed(answer):
    """An answer as it is written or pressed on a page."""
    if isinstance(answer, bool | str):
        return answer
    if isinstance(answer, dict | set | frozenset):
        return ", ".join(sorted(map(str, answer)))
    if isinstance(answer, list | tuple | np.ndarray):
        parts = [_typed(part) for part in answer]
        return ("; " if np.ndim(answer) == 2 else ", ").join(parts)
    return format(answer) if not isinstance(answer, float) else repr(float(answer))


def _random(form, rng):
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
    return _typed((rng.integers(-24, 25, size=shape) / 8).tolist())


@pytest.mark.parametrize("name", classroom.LESSONS)
def test_a_page_judges_an_answer_as_the_library_does(judged, name):
    rng = np.random.default_rng(5)
    stored = [(question, typed) for question, some in RIGHT.items() for typed in some]
    stored += [(question, typed) for question, typed, _ in WRONG]
    asked = [(q, _typed(value(typed))) for q, typed in stored if q.startswith(f"{name}-")]
    module = classroom.LESSONS[name]
    for key, question in (module.PREDICTIONS | module.EXERCISES).items():
        asked += [(f"{name}-{key}", _random(question.read.form, rng)) for _ in range(LEAST)]
    for (question, typed), found in zip(asked, judged(name, asked), strict=True):
        assert "problem" not in found, (question, typed, found)
        ask = classroom.reveal if "guess" in question else classroom.check
        feedback = ask(question, found["value"])
        assert found["text"] == lesson_pages.inline(feedback.text), (question, typed)
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
def test_what_cannot_be_read_gets_a_sentence(judged, question, typed, says):
    (found,) = judged("rankings", [(question, typed)])
    assert says in found["problem"]


@pytest.mark.parametrize("notebook", lesson_pages.names())
def test_a_page_has_all_of_its_lesson(notebook):
    page = lesson_pages.page(notebook)
    key = list(classroom.LESSONS)[int(notebook[0]) - 1]
    module = classroom.LESSONS[key]
    for question in (*module.PREDICTIONS, *module.EXERCISES):
        assert page.count(f'data-question="{key}-{question}"') == 1
    assert page.count("<details>") == len(module.EXERCISES)
    body = page[page.index("<main") : page.index("</main>")]
    assert not any(word in body for word in ("$", "classroom.", "Shift+Enter", "run the cell"))
    assert "data-figure" in body
    assert "<noscript>" in body  # else its answer boxes stand empty without a word
    assert len(page.encode()) < 200_000
