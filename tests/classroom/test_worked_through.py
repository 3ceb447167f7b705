"""Each question of the lessons answered rightly and with every mistake that the desk knows by name;
and each lesson worked through as its learners do: not at all, oddly, wrongly, then rightly.
"""

from __future__ import annotations

import math
import re
import time
from fractions import Fraction

import nbformat
import numpy as np
import pytest

import classroom
from classroom import rankings, winning

# Right answers, as a learner types them; the first of each question goes into its notebook.
RIGHT = {
    "rankings-guess": ["12"],
    "rankings-1": ['"CDBA"'],
    "rankings-2": ["10"],
    "rankings-3": ["20"],
    "rankings-4": ["[[1, 1], [-1, 1], [-1, -1], [1, -1]]"],
    "rankings-guess_bias": ["18"],
    "rankings-5": ["[0, 0.1, 1.3, -2.4]", "rankings.BIAS"],
    "rankings-6": ["4", "4.0"],
    "rankings-guess_digits": ["5103"],
    "winning-guess": ["False"],
    "winning-1": ['{"F", "G"}'],
    "winning-2": ["[3.5, 3.5]"],
    "winning-3": ["[0.5, 0.125, 0.375]"],
    "winning-4": ["0.6875"],
    "winning-5": ["[0, 0, 0, 0, 0, 3, 3]", "-(np.square(winning.SEVEN.W).sum(axis=1)) / 2"],
    "winning-6": ["9"],
    "winning-guess_crowd": ["10"],
    "winning-guess_real": ["202"],
    "tearing-guess": ["1"],
    "tearing-1": ["8 / 3", "2.67"],
    "tearing-2": ["0.5"],
    "tearing-guess_mass": ['"more"'],
    "tearing-3": ["3"],
    "tearing-4": ["[-1, -3]"],
    "tearing-guess_real": ['"none"'],
    "tearing-5": ["1"],
    "tearing-6": ["4"],
    "leaders-guess": ["3"],
    "leaders-1": ["{3}", "3", "[3.0]"],
    "leaders-2": ["[-2 / 3, -5 / 6]", "[-0.667, -0.833]"],
    "leaders-3": ["7"],
    "leaders-4": ["[[2, 0], [-2, 0], [1, 0.25], [-1, 0.25]]"],
    "leaders-5": ["[0.4, 0]", "[0, -0.1]"],
    "leaders-6": ["{4}"],
    "leaders-guess_slower": ["True"],
    "leaders-guess_real": ["93"],
    "trusting-guess": ["False"],
    "trusting-1": ['["22/45", "2/9", "13/45"]', '[Fraction(22, 45), Fraction(10, 45), "13 / 45"]'],
    "trusting-2": ['{"P", "S"}'],
    "trusting-3": ['"8/15"', "[Fraction(8, 15)]"],
    "trusting-4": ["25"],
    "trusting-guess_captors": ["121"],
    "asking-guess": ["2"],
    "asking-1": ['{"A", "B", "C"}', '"BCE"'],
    "asking-2": ['{"A", "C", "D", "E", "G"}'],
    "asking-guess_pairs": ["6"],
    "asking-3": ["[0, 1]"],
    "asking-4": ['["1/3", "2/3", "2/3", "1/3"]'],
    "asking-5": ["4"],
    "asking-guess_real": ["100"],
}

# Wrong ones, with the words by which the desk names the mistake; so does the first of these.
WRONG = [
    ("rankings-guess", "24", "chosen freely"),
    ("rankings-guess", "math.comb(4, 2)", "cross each of them twice"),
    ("rankings-guess", "4", "number of winners"),
    ("rankings-guess", "8", "belongs to a *pair*"),
    ("rankings-guess", "2**6", "whoever beats A"),
    ("rankings-guess", "18", "With a bias"),
    ("rankings-guess", "11", "Too few"),
    ("rankings-guess", "13", "Too many"),
    ("rankings-1", '"ABDC"', "wrong direction"),
    ("rankings-1", '"CDAB"', "B does not have the largest logit"),
    ("rankings-1", '"DCBA"', "winner is right"),
    ("rankings-2", "20", "twice"),
    ("rankings-2", "5", "pair"),
    ("rankings-2", "9", "too few"),
    ("rankings-2", "25", "too many"),
    ("rankings-3", "120", "all orders"),
    ("rankings-3", "10", "cross each line"),
    ("rankings-3", "12", "too few"),
    ("rankings-3", "25", "too many"),
    ("rankings-4", "[[1, 1], [2, 2], [3, 3], [4, 4]]", "Too many tie lines"),
    ("rankings-4", "rankings.LAYER.W", "fall together"),
    ("rankings-4", "[[1, 1], [1, 1], [3, 3], [4, 5]]", "equal"),
    ("rankings-guess_bias", "24", "a third feature"),
    ("rankings-guess_bias", "12", "without a bias"),
    ("rankings-guess_bias", "1 + 6 + 15", "always meet in one point"),
    ("rankings-guess_bias", "17", "Too few"),
    ("rankings-5", "[2, 2, 2, 2]", "as without a bias"),
    ("rankings-5", "rankings.LAYER.W @ [3, -1]", "as without a bias"),
    ("rankings-6", "5", "fewer features suffice"),
    ("rankings-6", "2", "With 2 features"),
    ("rankings-6", "1", "With 1 feature a"),
    ("rankings-guess_digits", "768", "not by ten"),
    ("rankings-guess_digits", "214445", "nearly all orders"),
    ("rankings-guess_digits", "9", "two features"),
    ("rankings-guess_digits", "107222", "square root"),
    ("rankings-guess_digits", "9999", "Too many"),
    ("winning-guess", "True", "lies *farthest*"),
    ("winning-1", '{"F"}', "somebody is still missing"),
    ("winning-1", "{}", "can never win"),
    ("winning-1", '"AFG"', "1 class that can win"),
    ("winning-2", "[0, 0]", "ties"),
    ("winning-2", "winning.OWN_ROW.W[3]", "There A wins, and D is"),
    ("winning-3", "[1, 0.25, 0.75]", "sum to 2"),
    ("winning-3", "[1, -1, 1]", "negative"),
    ("winning-3", "[0.4, 0.3, 0.3]", "(0, -0.4)"),
    ("winning-3", "[0.5, 0.1251, 0.3749]", "rounding spoils"),
    ("winning-4", "0.5", "plain mean"),
    ("winning-4", "1", "weighted mean"),
    ("winning-4", "0.6", "still never wins"),
    ("winning-4", "0.8", "a smaller one would do"),
    ("winning-5", "[0, 0, 0, 0, 0, 0, 3]", "With this bias F cannot win"),
    ("winning-5", "np.zeros(7)", "F, G cannot win"),
    ("winning-6", "8", "a tie is no win"),
    ("winning-6", "7", "never wins"),
    ("winning-6", "10", "a smaller one"),
    ("winning-guess_crowd", "50", "even chance"),
    ("winning-guess_crowd", "100", "circle"),
    ("winning-guess_crowd", "1", "turn $x$ round"),
    ("winning-guess_crowd", "3", "a triangle"),
    ("winning-guess_crowd", "30", "rubber band"),
    ("winning-guess_real", "0", "among copies at most one"),
    ("winning-guess_real", "6000", "nearly every row is a corner"),
    ("winning-guess_real", "20", "Too few"),
    ("winning-guess_real", "900", "Too many"),
    ("tearing-guess", "0", "slope is one everywhere"),
    ("tearing-guess", "-1", "never below one"),
    ("tearing-guess", "1 / 2**2", "whole distance"),
    ("tearing-guess", "1 / np.var([-1, 1], ddof=1)", "one less than the number"),
    ("tearing-guess", "2", "reach the distance"),
    ("tearing-guess", "4", "*easier*"),
    ("tearing-guess", "0.7", "Too small"),
    ("tearing-guess", "9", "Too large"),
    ("tearing-1", "4", "one less than the number"),
    ("tearing-1", "1", "That is the mean"),
    ("tearing-1", "11 / 3", "mean square"),
    ("tearing-1", "1.633", "standard deviation"),
    ("tearing-1", "7", "Begin with the weights"),
    ("tearing-2", "1", "already folded"),
    ("tearing-2", "0", "positive"),
    ("tearing-2", "0.25", "may lie farther apart"),
    ("tearing-guess_mass", '"equal"', "only where it is one-to-one"),
    ("tearing-guess_mass", '"less"', "slope vanishes"),
    ("tearing-3", "2", "odd number"),
    ("tearing-3", "5", "how often"),
    ("tearing-4", "[0, 0]", "not negative"),
    ("tearing-4", "[1e6, -1e6]", "not negative"),
    ("tearing-guess_real", '"some"', "nothing holds the coupling positive"),
    ("tearing-5", "0", "no negative eigenvalue"),
    ("tearing-5", "2", "smaller"),
    ("tearing-6", "1", "no covariance"),
    ("tearing-6", "5", "another has a smaller one"),
    ("leaders-guess", "8", "a place for each"),
    ("leaders-guess", "1", "averages"),
    ("leaders-guess", "2", "Two camps"),
    ("leaders-guess", "6", "nearest neighbour"),
    ("leaders-guess", "5", "Too many"),
    ("leaders-1", "{2, 3}", "only the largest"),
    ("leaders-1", "[]", "never empty"),
    ("leaders-1", "{7}", "others score more"),
    ("leaders-1", "{5}", "not the distance"),
    ("leaders-1", "{2}", "0.75; compute all eight"),
    ("leaders-2", "[-0.5, -2]", "own place"),
    ("leaders-2", "[-0.625, -1.125]", "1 + \\alpha"),
    ("leaders-2", "[-0.75, -0.25]", "where it stands now"),
    ("leaders-2", "[9, 9]", "not where it lands"),
    ("leaders-3", "6", "1.56%"),
    ("leaders-3", "8", "fewer layers"),
    ("leaders-4", "[[1, 0], [2, 0], [3, 0], [4, 0]]", "1 leader: give"),
    ("leaders-4", "[[2, 0], [-2, 0], [0, 1], [0, -1]]", "4 leaders"),
    ("leaders-4", "[[2, 0], [-2, 0], [0, 0], [1, 0]]", "nonzero"),
    ("leaders-4", "[[2, 0], [-2, 0], [1, 0], [1, 0]]", "distinct"),
    ("leaders-5", "[4, 1]", "a leader itself"),
    ("leaders-5", "[0.4, 0.1]", "leader 1"),
    ("leaders-5", "[0, 0]", "nonzero"),
    ("leaders-6", "{3, 4}", "leads from the start"),
    ("leaders-6", "{1}", "never leads"),
    ("leaders-6", "[]", "Somebody does"),
    ("leaders-guess_slower", "False", "take the lead"),
    ("leaders-guess_real", "40", "whoever leads decides"),
    ("leaders-guess_real", "80", "Too few"),
    ("leaders-guess_real", "100", "Too many"),
    ("trusting-guess", "True", "for *every* feature"),
    ("trusting-1", '["1/2", "1/4", "1/4"]', "misses D's by (0, -1/4)"),
    ("trusting-1", '["1/2", "1/2", "1/4"]', "sum to 5/4"),
    ("trusting-1", '["3/2", "-1/4", "-1/4"]', "negative"),
    ("trusting-1", "[22 / 45, 10 / 45, 13 / 45]", "is stored as"),
    ("trusting-2", '{"P", "Q", "S"}', "Q is no proof"),
    ("trusting-2", '{"P"}', "There is another"),
    ("trusting-2", '{"R"}', "negative"),
    ("trusting-3", '"1/2"', "plain mean"),
    ("trusting-3", "0.533", "close"),
    ("trusting-3", "1", "prove nothing"),
    ("trusting-3", "0", "larger by 8/15"),
    ("trusting-4", "50", "collects both"),
    ("trusting-4", "26", "more than the gap"),
    ("trusting-4", "10", "larger boxes too"),
    ("trusting-guess_captors", "3", "enough in the plane"),
    ("trusting-guess_captors", "120", "one too few"),
    ("trusting-guess_captors", "6624", "thinned out"),
    ("trusting-guess_captors", "40", "simplex"),
    ("asking-guess", "0", "a dead class stays dead"),
    ("asking-guess", "4", "one may stand in for another"),
    ("asking-guess", "1", "Find the triangles"),
    ("asking-1", '{"A", "B", "C", "E"}', "2 of them can be spared"),
    ("asking-1", '{"A", "C", "E"}', "D wins for some features"),
    ("asking-1", '{"A", "D"}', "cannot block itself"),
    ("asking-2", '{"A", "B", "C", "D", "E", "F", "G"}', "D, E, F never win"),
    ("asking-2", '{"A", "B"}', "E is to be among"),
    ("asking-2", '{"A", "C", "D", "E"}', "a larger set"),
    ("asking-guess_pairs", "15", "whoever lies between them"),
    ("asking-guess_pairs", "3", "each document has two of them"),
    ("asking-guess_pairs", "0", "halfway both are ahead"),
    ("asking-guess_pairs", "9", "Too many"),
    ("asking-3", "[1, 1]", "returns B and A"),
    ("asking-3", "[0, 0]", "length zero"),
    ("asking-3", "[1, 0]", "returns A and"),
    ("asking-3", "[-2, 3]", "tie for the second place"),
    ("asking-4", '["1/2", "1/2", "1/2", "1/2"]', "they differ"),
    ("asking-4", '["1/3", "1/3", "2/3", "1/3"]', "sum to 2/3"),
    ("asking-4", '["-1", "2", "1/2", "1/2"]', "negative"),
    ("asking-5", "2", "the plane you saw"),
    ("asking-5", "3", "five documents"),
    ("asking-5", "6", "fewer dimensions will do"),
    ("asking-guess_real", "5", "surround nobody"),
    ("asking-guess_real", "3", "surround nobody"),
    ("asking-guess_real", "50", "captors all around it"),
]

NAMES = {"np": np, "math": math, "Fraction": Fraction, "rankings": rankings, "winning": winning}


def _reply(question: str, typed: str) -> classroom.Feedback:
    ask = classroom.reveal if "guess" in question else classroom.check
    return ask(question, eval(typed, dict(NAMES)))


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
def test_the_thought_behind_a_mistake_is_named(question, typed, says):
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
    """Put a cell for each of `answers(question)` before every cell that asks; the questions, in the
    order of the lesson.
    """
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


def _replies(notebook, text_of):
    """What the desk said to each answer: lists of texts by question."""
    replies: dict[str, list[str]] = {}
    for cell in notebook.cells:
        if question := cell.metadata.get("asked"):
            (output,) = cell.outputs
            replies.setdefault(question, []).append(text_of(output))
    return replies


@pytest.mark.parametrize("name", classroom.LESSONS)
def test_odd_answers_and_none_get_one_sentence_and_learn_nothing(
    lesson, execute, text_of, given_away, explorers, name
):
    notebook = lesson(name)
    asked = _answer(notebook, lambda _: ["...", *ODD])
    started = time.monotonic()
    texts = execute(notebook)  # a traceback in any cell would raise here
    assert time.monotonic() - started < 60
    replies = _replies(notebook, text_of)
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
    assert given_away(name, texts) == []
    assert explorers(notebook)
    assert all(state["veiled"] and not state["presets"] for state in explorers(notebook))
    assert any("**Guess first.**" in text for text in texts)


@pytest.mark.parametrize("name", classroom.LESSONS)
def test_wrong_answers_right_ones_and_the_lesson_s_own_solutions(
    lesson, execute, text_of, given_away, spoilers, explorers, tmp_path, name
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
    for question, (wrong, right) in _replies(notebook, text_of).items():
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
    assert len(re.findall(r"\d: Right\.", texts[-2])) == len(numbers), texts[-2]
    assert texts[-1] == "False"
    (sheet,) = tmp_path.glob("answers_*.html")
    page = sheet.read_text(encoding="utf-8")
    assert asked[0] in page
    assert "Because." in page
