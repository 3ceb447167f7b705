"""The answer sheet holds every attempt as text; what a page saved is judged again, whatever it
claims. A file that cannot be written or read gets a sentence.
"""

import csv
import json
from html import unescape

import numpy as np
import pytest

import classroom
from classroom import answer_sheet
from classroom.grading import grade, main


class _Unprintable:
    def __repr__(self):
        raise RuntimeError


@pytest.fixture(autouse=True)
def nothing_answered(monkeypatch):
    monkeypatch.setattr(answer_sheet, "_attempts", {})


def test_every_attempt_is_on_the_page_in_order_and_none_becomes_markup(tmp_path):
    classroom.reveal("rankings-guess", ...)
    assert classroom.export(tmp_path / "answers.html").heading == "I cannot write that."
    classroom.reveal("rankings-guess", 24)
    classroom.check("rankings-2", 20)
    classroom.check("rankings-2", 10)
    classroom.check("rankings-2", "<script>")
    told = {"name": "<b>Ada", "explanation": "<img src=x>\nfor each pair."}
    feedback = classroom.export(tmp_path / "answers.html", **told)
    assert feedback.heading == "Written."
    page = (tmp_path / "answers.html").read_text(encoding="utf-8")
    body = page[page.index("<main>") :]
    assert not any(markup in body for markup in ("<script", "<b>", "<img"))
    text = unescape(body)
    parts = ["Answers of <b>Ada", "2 questions tried, 1 exercises solved", "rankings-guess", "24"]
    parts += ["rankings-2", "Not yet.", "Right.", "<script>", "<img src=x>\nfor"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_odd_answers_leave_a_small_page_and_none_comes_before_the_explanation(tmp_path):
    classroom.check("rankings-2", 10)
    assert classroom.export(tmp_path / "answers.html", explanation=...).heading == "To hand in."
    assert not list(tmp_path.iterdir())
    for answer in (np.zeros(10**5), "x" * 10**6, [[1] * 10**4], 10**5000, _Unprintable(), "\ud800"):
        answer_sheet._attempts.clear()
        classroom.check("rankings-2", answer)
        assert classroom.export(tmp_path / "answers.html").heading == "Written."
        assert (tmp_path / "answers.html").stat().st_size < 10_000


@pytest.mark.parametrize("path", ["answers.txt", 3, "no/such/folder/a.html", "a\0.html"])
def test_a_file_that_cannot_be_written_is_a_sentence(path):
    classroom.check("rankings-2", 10)
    feedback = classroom.export(path)
    assert feedback.heading == "I cannot write that."
    assert feedback.text.endswith(".")
    assert "\n" not in feedback.text


@pytest.fixture
def handed_in(tmp_path):
    """`handed_in(attempts, **more)`: a file as a lesson's page saves it."""

    def write(tried, **more):
        said = {"lesson": "winning", "name": "Ada", "explanation": "", "attempts": tried} | more
        path, text = tmp_path / "answers.html", json.dumps(said).replace("<", "\\u003c")
        script = f'<script type="application/json" id="answers">{text}</script>'
        path.write_text(f"<p>Right.</p>{script}", encoding="utf-8")
        return path

    return write


def test_answers_are_judged_again(handed_in):
    attempts = [
        ["winning-guess", True], ["winning-guess", False], ["winning-1", ["A"]],
        ["winning-1", ["B", "E"]], ["winning-2", [0, 0]], ["winning-3", [0.5, 0.125, 0.375]],
        ["winning-99", 1], ["rankings-2", 10], ["winning-4", {"a": [1]}],
    ]  # fmt: skip
    found = grade(handed_in(attempts, explanation="corners"))
    assert (found.name, found.lesson, found.solved) == ("Ada", "winning", "1 3")
    assert (found.exercises, found.attempts, found.guesses) == (7, 5, 1)
    assert "2 of 7 solved in 5 attempts (1 3), 1 guesses, explained" in str(found)


@pytest.mark.parametrize(
    ("said", "says"),
    [({"lesson": "flying"}, "no lesson 'flying'"), ({"attempts": [["winning-1"]]}, "not written")],
)
def test_a_file_without_answers_gets_a_sentence(handed_in, said, says):
    path = handed_in([], **said)
    with pytest.raises(ValueError, match=says):
        grade(path)


def test_one_command_grades_a_folder(handed_in, tmp_path, capsys):
    handed_in([["winning-1", ["B", "E"]]], name="＝cmd()\x1b[2J", explanation="x < y")
    (tmp_path / "other\x1b[2J.html").write_text("<p>a page</p>", encoding="utf-8")
    assert main([str(tmp_path), "--csv", str(tmp_path / "grades.csv")]) == 1
    printed = capsys.readouterr()
    assert "1 of 7 solved" in printed.out
    assert r"other\x1b[2J.html: not graded, it holds no answers" in printed.err
    assert "\x1b" not in printed.out + printed.err
    with (tmp_path / "grades.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert (row["solved"], row["explanation"], row["name"]) == ("1", "x < y", r"'＝cmd()\x1b[2J")
