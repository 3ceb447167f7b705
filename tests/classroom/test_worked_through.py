"""Each lesson worked through as its learners work: every question with odd answers, and every
question with a wrong answer and then a right one.
"""

from __future__ import annotations

import re

import nbformat
import pytest

import classroom

# For each question: a plausible wrong answer, what the desk says to it, and a right one; all as a
# learner types them.
ANSWERS = {
    "rankings-guess": ("24", "chosen freely", "12"),
    "rankings-1": ('"ABDC"', "wrong direction", '"CDBA"'),
    "rankings-2": ("20", "twice", "10"),
    "rankings-3": ("120", "all orders", "20"),
    "rankings-4": (
        "[[1, 1], [2, 2], [3, 3], [4, 4]]",
        "Too many tie lines",
        "[[1, 1], [-1, 1], [-1, -1], [1, -1]]",
    ),
    "rankings-guess_bias": ("24", "a third feature", "18"),
    "rankings-5": ("[2, 2, 2, 2]", "as without a bias", "[0, 0.1, 1.3, -2.4]"),
    "rankings-6": ("5", "fewer features suffice", "4"),
    "rankings-guess_digits": ("768", "not by ten", "5103"),
    "winning-guess": ("True", "lies *farthest*", "False"),
    "winning-1": ('{"F"}', "somebody is still missing", '{"F", "G"}'),
    "winning-2": ("[0, 0]", "ties", "[3.5, 3.5]"),
    "winning-3": ("[1, 0.25, 0.75]", "sum to 2", "[0.5, 0.125, 0.375]"),
    "winning-4": ("0.5", "plain mean", "0.6875"),
    "winning-5": ("[0, 0, 0, 0, 0, 0, 3]", "With this bias F cannot win", "[0, 0, 0, 0, 0, 3, 3]"),
    "winning-6": ("8", "a tie is no win", "9"),
    "winning-guess_crowd": ("50", "even chance", "10"),
    "winning-guess_real": ("0", "among copies at most one", "202"),
    "tearing-guess": ("0", "slope is one everywhere", "1"),
    "tearing-1": ("4", "one less than the number", "8 / 3"),
    "tearing-2": ("1", "already folded", "0.5"),
    "tearing-guess_mass": ('"equal"', "only where it is one-to-one", '"more"'),
    "tearing-3": ("2", "odd number", "3"),
    "tearing-4": ("[0, 0]", "not negative", "[-1, -3]"),
    "tearing-guess_real": ('"some"', "nothing holds the coupling positive", '"none"'),
    "tearing-5": ("0", "no negative eigenvalue", "1"),
    "tearing-6": ("1", "no covariance", "4"),
    "leaders-guess": ("8", "a place for each", "3"),
    "leaders-1": ("{2, 3}", "only the largest", "{3}"),
    "leaders-2": ("[-0.5, -2]", "own place", "[-2 / 3, -5 / 6]"),
    "leaders-3": ("6", "1.56%", "7"),
    "leaders-4": (
        "[[1, 0], [2, 0], [3, 0], [4, 0]]",
        "1 leader: give",
        "[[2, 0], [-2, 0], [1, 0.25], [-1, 0.25]]",
    ),
    "leaders-5": ("[4, 1]", "a leader itself", "[0.4, 0]"),
    "leaders-6": ("{3, 4}", "leads from the start", "{4}"),
    "leaders-guess_slower": ("False", "take the lead", "True"),
    "leaders-guess_real": ("40", "whoever leads decides", "93"),
    "trusting-guess": ("True", "for *every* feature", "False"),
    "trusting-1": ('["1/2", "1/4", "1/4"]', "misses D's by (0, -1/4)", '["22/45", "2/9", "13/45"]'),
    "trusting-2": ('{"P", "Q", "S"}', "Q is no proof", '{"P", "S"}'),
    "trusting-3": ('"1/2"', "plain mean", '"8/15"'),
    "trusting-4": ("50", "collects both", "25"),
    "trusting-guess_captors": ("3", "enough in the plane", "121"),
    "asking-guess": ("0", "a dead class stays dead", "2"),
    "asking-1": ('{"A", "B", "C", "E"}', "2 of them can be spared", '{"A", "B", "C"}'),
    "asking-2": (
        '{"A", "B", "C", "D", "E", "F", "G"}',
        "D, E, F never win",
        '{"A", "C", "D", "E", "G"}',
    ),
    "asking-guess_pairs": ("15", "whoever lies between them", "6"),
    "asking-3": ("[1, 1]", "returns B and A", "[0, 1]"),
    "asking-4": ('["1/2", "1/2", "1/2", "1/2"]', "they differ", '["1/3", "2/3", "2/3", "1/3"]'),
    "asking-5": ("2", "in the plane you saw", "4"),
    "asking-guess_real": ("5", "surround nobody", "100"),
}
ODD = ["None", '"banana"', "float('nan')", "[1, 2, [3]]", "10**400", "{1: 2}", "lambda: 3", "print"]
ASKING = re.compile(r'classroom\.(check|reveal)\("([^"]+)", (answer|guess)\)')
REFUSALS = ("Your turn.", "I cannot read that.", "Not yet.")


def _answer(notebook, answers):
    """Put a cell for each of `answers(question)` in the place of every cell that asks; the
    questions, in the order of the lesson.
    """
    cells, asked = [], []
    for cell in notebook.cells:
        found = ASKING.search(cell.source) if cell.cell_type == "code" else None
        if found is None:
            cells.append(cell)
            continue
        asked.append(found[2])
        for written in answers(found[2]):
            cells.append(
                nbformat.v4.new_code_cell(
                    f"{found[3]} = {written}\n{found[0]}", metadata={"asked": found[2]}
                )
            )
    notebook.cells = cells
    return asked


def _replies(notebook, text_of):
    """What the desk said to each answer: lists of texts by question."""
    replies: dict[str, list[str]] = {}
    for cell in notebook.cells:
        if question := cell.metadata.get("asked"):
            (output,) = cell.outputs
            replies.setdefault(question, []).append(text_of(output))
    return replies


def test_every_question_is_answered_here():
    """With the answers that the tests of each lesson give to the desk, and no question left out."""
    assert set(ANSWERS) == {
        f"{name}-{key}"
        for name, lesson in classroom.LESSONS.items()
        for key in (*lesson.EXERCISES, *lesson.PREDICTIONS)
    }


@pytest.mark.parametrize("name", classroom.LESSONS)
def test_odd_answers_get_one_sentence_and_learn_nothing(
    lesson, execute, text_of, given_away, explorers, name
):
    notebook = lesson(name)
    asked = _answer(notebook, lambda _: ODD)
    texts = execute(notebook)  # a traceback in any cell would raise here
    replies = _replies(notebook, text_of)
    assert list(replies) == asked
    for question, said in replies.items():
        assert len(said) == len(ODD)
        for text in said:
            heading = re.match(r"> \*\*([^*]+)\*\* ", text)
            assert heading, (question, text)
            assert heading[1] in REFUSALS[: 2 if "guess" in question else 3], (question, text)
            assert "\n" not in text
            assert text.endswith((".", "?"))
    assert given_away(name, texts) == []
    assert all(state["veiled"] and not state["presets"] for state in explorers(notebook))
    assert any("**Guess first.**" in text for text in texts)


@pytest.mark.parametrize("name", classroom.LESSONS)
def test_wrong_answers_meet_their_misconception_and_right_ones_are_confirmed(
    lesson, execute, text_of, given_away, spoilers, explorers, tmp_path, name
):
    notebook = lesson(name)
    asked = _answer(notebook, lambda question: ANSWERS[question][::2])
    for cell in notebook.cells:
        cell.source = cell.source.replace("explanation = ...", 'explanation = "Because."')
    texts = execute(notebook)
    for question, (wrong, right) in _replies(notebook, text_of).items():
        expected = ANSWERS[question][1]
        assert expected.lower() in wrong.lower(), (question, wrong)
        if "guess" in question:
            assert "You saw it" not in wrong
            assert right.startswith("> **Compare.** "), (question, right)
            assert "You saw it" in right, (question, right)
        else:
            assert wrong.startswith("> **Not yet.** "), (question, wrong)
            assert right.startswith("> **Right.** "), (question, right)
    # Whatever waited for an answer shows itself now: the positive control of the test above.
    assert given_away(name, texts) == spoilers(name)
    assert not any(state["veiled"] for state in explorers(notebook))
    assert not any("**Guess first.**" in text for text in texts)
    (sheet,) = tmp_path.glob("answers_*.html")
    page = sheet.read_text(encoding="utf-8")
    assert asked[0] in page
    assert "Because." in page
