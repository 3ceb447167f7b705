"""Every question answered rightly and wrongly; each lesson worked through."""

import re
import time

import nbformat
import pytest
from lesson_cases import RIGHT, WRONG, text_of, value

import classroom
from classroom import rankings


def _reply(question: str, typed: str) -> classroom.Feedback:
    ask = classroom.reveal if "guess" in question else classroom.check
    return ask(question, value(typed))


def test_every_question_is_answered_here():
    asked = {
        f"{name}-{key}"
        for name, lesson in classroom.LESSONS.items()
        for key in (*lesson.EXERCISES, *lesson.PREDICTIONS)
    }
    assert set(RIGHT) == {question for question, _, _ in WRONG} == asked


@pytest.mark.parametrize("question", RIGHT)
def test_right_answers(question):
    for typed in RIGHT[question]:
        feedback = _reply(question, typed)
        if "guess" in question:
            assert "You saw it" in feedback.text
            assert feedback.right is None
        else:
            assert repr(feedback).startswith("Right."), feedback
            assert feedback.right is True


@pytest.mark.parametrize(("question", "typed", "says"), WRONG)
def test_the_reason_for_a_mistake_is_named(question, typed, says):
    feedback = _reply(question, typed)
    assert says in feedback.text
    if "guess" in question:
        assert "You saw it" not in feedback.text
        assert feedback.right is None
    else:
        assert feedback._repr_markdown_().startswith("> **Not yet.**")
        assert feedback.right is False


ODD = ['"banana"', "[1, 2, [3]]"]  # test_desk.py asks with many more
ASKING = re.compile(r'classroom\.(check|reveal)\("([^"]+)", (answer|guess)\)')
REFUSALS = ("Your turn.", "I cannot read that.", "Not yet.")


def _answer(notebook, answers):
    """A cell for each of `answers(question)` before every cell that asks; the questions."""
    cells, asked = [], []
    for cell in notebook.cells:
        if found := ASKING.search(cell.source) if cell.cell_type == "code" else None:
            asked.append(found[2])
            for typed in answers(found[2]):
                source = f"{found[3]} = {typed}\n{found[0]}"
                cells.append(nbformat.v4.new_code_cell(source, metadata={"asked": found[2]}))
        else:
            cells.append(cell)
    notebook.cells = cells
    return asked


def _replies(notebook):
    """What the desk said to each answer: lists of texts by question."""
    replies: dict[str, list[str]] = {}
    for cell in notebook.cells:
        if question := cell.metadata.get("asked"):
            (output,) = cell.outputs
            replies.setdefault(question, []).append(text_of(output))
    return replies


def _given_away(patterns, texts):
    return [each for each in patterns if any(re.search(each, text) for text in texts)]


@pytest.mark.parametrize("name", classroom.LESSONS)
def test_odd_answers_and_none_get_one_sentence_and_learn_nothing(
    lesson, execute, spoilers, explorers, name
):
    notebook = lesson(name)
    asked = _answer(notebook, lambda _: ["...", *ODD])
    started = time.monotonic()
    texts = execute(notebook)  # a traceback in any cell would raise here
    assert time.monotonic() - started < 60
    replies = _replies(notebook)
    assert list(replies) == asked
    for question, (nothing, *said) in replies.items():
        assert "**Your turn.**" in nothing
        assert len(said) == len(ODD)
        for text in said:
            heading = re.match(r"> \*\*([^*]+)\*\* ", text)
            assert heading, (question, text)
            assert heading[1] in REFUSALS[: 2 if "guess" in question else 3], (question, text)
            assert "\n" not in text
            assert text.endswith((".", "?"))
    assert _given_away(spoilers(name), texts) == []
    assert explorers(notebook)
    assert all(state["veiled"] and not state["presets"] for state in explorers(notebook))
    assert any("**Guess first.**" in text for text in texts)


@pytest.mark.parametrize("name", classroom.LESSONS)
def test_wrong_answers_right_ones_and_the_lesson_s_own_solutions(
    lesson, execute, spoilers, explorers, tmp_path, name
):
    notebook = lesson(name)
    mistakes = {question: typed for question, typed, _ in reversed(WRONG)}
    asked = _answer(notebook, lambda question: [mistakes[question], RIGHT[question][0]])
    numbers = list(classroom.LESSONS[name].EXERCISES)
    solutions = ", ".join(f"{number}: solution_{number}" for number in numbers)
    judged = f"{{k: classroom.check(f'{name}-{{k}}', v) for k, v in {{{solutions}}}.items()}}"
    for code in (judged, "import sys; 'torch' in sys.modules"):
        notebook.cells.append(nbformat.v4.new_code_cell(code))
    for cell in notebook.cells:
        cell.source = cell.source.replace("explanation = ...", 'explanation = "Because."')
    texts = execute(notebook)
    for question, (wrong, right) in _replies(notebook).items():
        if "guess" in question:
            assert "You saw it" not in wrong
            assert right.startswith("> **Compare.** "), (question, right)
            assert "You saw it" in right, (question, right)
        else:
            assert wrong.startswith("> **Not yet.** "), (question, wrong)
            assert right.startswith("> **Right.** "), (question, right)
    # Whatever waited for an answer shows itself now: the positive control of the test above.
    assert _given_away(spoilers(name), texts) == spoilers(name)
    assert not any(state["veiled"] for state in explorers(notebook))
    assert not any("**Guess first.**" in text for text in texts)
    assert len(re.findall(r"\d: Right\.", texts[-2])) == len(numbers), texts[-2]
    assert texts[-1] == "False"
    (sheet,) = tmp_path.glob("answers_*.html")
    page = sheet.read_text(encoding="utf-8")
    assert asked[0] in page
    assert "Because." in page


@pytest.mark.parametrize("name", classroom.LESSONS)
def test_a_lesson_has_its_parts(lesson, name):
    cells = lesson(name).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    for part in ("# Lesson", "**You will learn**", "**You need**", "## What to take away"):
        assert part in text
    assert re.search(r"about \d\d minutes", text)
    assert re.search(r"^#+ .*\bmodel\b", text, re.MULTILINE)
    opening = text[text.index("**You will learn**") : text.index("**You need**")]
    assert opening.count("\n- ") == 3
    solutions = [cell for cell in cells if "solution" in cell.metadata.get("tags", [])]
    assert len(solutions) == len(classroom.LESSONS[name].EXERCISES)
    assert all(cell.metadata["jupyter"] == {"source_hidden": True} for cell in solutions)
    # JupyterLab shows a collapsed cell's first line
    assert all(cell.source.startswith("# Solution") for cell in solutions)
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    for number in classroom.LESSONS[name].EXERCISES:
        assert f'classroom.check("{name}-{number}", answer)' in code
    for key in classroom.LESSONS[name].PREDICTIONS:
        assert f'classroom.reveal("{name}-{key}", guess)' in code
    assert len(re.findall(r"Explorer\(", code)) == code.count("classroom.veil(") > 0
    assert "explanation = ...\nclassroom.export(" in code
    assert text.index("## Explain it to your neighbour") < text.index("## What to take away")


def test_the_start_page_runs(repository, execute, explorers):
    notebook = nbformat.read(repository / "notebooks" / "start.ipynb", as_version=4)
    said = "\n".join(execute(notebook))
    assert "SoftmaxExplorer" in said
    (count,) = re.findall(r"rankings realised: (\d+)", said)
    asked = (rankings.LAYER.W, None), (rankings.LAYER.W, rankings.BIAS), (rankings.FIVE.W, None)
    # other numbers than the first lesson asks for
    assert int(count) not in {rankings.realised(W, b) for W, b in asked}
    # the second lesson asks whether that can be
    assert not re.search("unargmaxable|never wins", said)
    assert not any(state["presets"] for state in explorers(notebook))
    for cell in notebook.cells:
        for target in re.findall(r"\]\(([^)#:]+)\)", cell.source):
            assert (repository / "notebooks" / target).exists(), target
