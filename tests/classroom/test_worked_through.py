"""Each lesson's notebook, worked through in a kernel, and its page without one."""

import re
import time

import nbformat
import pytest
from lesson_cases import RIGHT, WRONG, text_of

from classroom import LESSONS, pages, rankings

ODD = ['"banana"', "[1, 2, [3]]"]  # test_questions.py asks with many more
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
    """The replies to each answer: lists of texts by question."""
    replies: dict[str, list[str]] = {}
    for cell in notebook.cells:
        if question := cell.metadata.get("asked"):
            (output,) = cell.outputs
            replies.setdefault(question, []).append(text_of(output))
    return replies


def _given_away(patterns, texts):
    return [each for each in patterns if any(re.search(each, text) for text in texts)]


@pytest.mark.parametrize("name", LESSONS)
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
    assert all(state["hidden"] and not state["presets"] for state in explorers(notebook))
    assert any("**Guess first.**" in text for text in texts)


@pytest.mark.parametrize("name", LESSONS)
def test_wrong_answers_right_ones_and_the_lesson_s_own_solutions(
    lesson, execute, spoilers, explorers, tmp_path, name
):
    notebook = lesson(name)
    mistakes = {question: typed for question, typed, _ in reversed(WRONG)}
    asked = _answer(notebook, lambda question: [mistakes[question], RIGHT[question][0]])
    numbers = list(LESSONS[name].exercises)
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
            assert wrong.startswith("> **Compare.** "), (question, wrong)
            assert right.startswith("> **Right.** "), (question, right)
            assert "You saw it" in right, (question, right)
        else:
            assert wrong.startswith("> **Not yet.** "), (question, wrong)
            assert right.startswith("> **Right.** "), (question, right)
    # Whatever waited for an answer shows itself now: the positive control of the test above.
    assert _given_away(spoilers(name), texts) == spoilers(name)
    assert not any(state["hidden"] for state in explorers(notebook))
    assert not any("**Guess first.**" in text for text in texts)
    assert len(re.findall(r"\d: Right\.", texts[-2])) == len(numbers), texts[-2]
    assert texts[-1] == "False"
    (sheet,) = tmp_path.glob("answers_*.html")
    page = sheet.read_text(encoding="utf-8")
    assert asked[0] in page
    assert "Because." in page


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


@pytest.mark.parametrize("notebook", pages.names())
def test_a_page_has_all_of_its_lesson(notebook):
    page = pages.page(notebook)
    key, lesson = list(LESSONS.items())[int(notebook[0]) - 1]
    for question in (*lesson.predictions, *lesson.exercises):
        assert page.count(f'data-question="{key}-{question}"') == 1
    assert page.count("<details>") == len(lesson.exercises)
    body = page[page.index("<main") : page.index("</main>")]
    assert not any(word in body for word in ("$", "classroom.", "Shift+Enter", "run the cell"))
    assert "data-figure" in body
    assert "<noscript>" in body  # else its answer boxes stand empty without a word
    assert len(page.encode()) < 200_000
