"""The answer sheet holds every attempt as text; what a page saved is judged again, whatever it
claims. A file that cannot be written or read gets a sentence.
"""

import csv
import json
from html.parser import HTMLParser

import numpy as np
import pytest

import classroom
from classroom import answer_sheet
from classroom.grading import grade, main


class _Reader(HTMLParser):
    def __init__(self, page: str):
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.words.append(data)


class _Unprintable:
    def __repr__(self):
        raise RuntimeError


@pytest.fixture(autouse=True)
def nothing_answered(monkeypatch):
    monkeypatch.setattr(answer_sheet, "_attempts", {})


def test_every_attempt_is_on_the_page_in_order(tmp_path):
    classroom.reveal("rankings-guess", ...)
    assert classroom.export(tmp_path / "answers.html").heading == "I cannot write that."
    classroom.reveal("rankings-guess", 24)
    classroom.check("rankings-2", 20)
    classroom.check("rankings-2", 10)
    told = {"name": "Ada", "explanation": "A line\nfor each pair."}
    feedback = classroom.export(tmp_path / "answers.html", **told)
    assert feedback.heading == "Written."
    text = " ".join(_Reader((tmp_path / "answers.html").read_text(encoding="utf-8")).words)
    parts = ["Answers of Ada", "rankings-guess", "24", "rankings-2", "Not yet.", "Right."]
    places = [text.index(part) for part in (*parts, "A line\nfor")]
    assert places == sorted(places)
    assert "2 questions tried, 1 exercises solved" in text


def test_nothing_that_was_written_becomes_markup():
    hostile = '</code><script>alert("x")</script><img src=x onerror=alert(1)>'
    plain = _Reader(sheet_of(1)).tags
    assert _Reader(sheet_of(hostile, name=hostile, explanation=hostile)).tags == [*plain, "h2", "p"]


def sheet_of(answer, **words) -> str:
    answer_sheet._attempts.clear()
    classroom.check("rankings-2", answer)
    return answer_sheet.page(**words)


def test_odd_answers_leave_a_small_page_and_none_comes_before_the_explanation(tmp_path):
    classroom.check("rankings-2", 10)
    assert classroom.export(tmp_path / "answers.html", explanation=...).heading == "To hand in."
    assert not list(tmp_path.iterdir())
    for answer in (np.zeros(10**5), "x" * 10**6, [[1] * 10**4], 10**5000, _Unprintable(), "\ud800"):
        answer_sheet._attempts.clear()
        classroom.check("rankings-2", answer)
        assert classroom.export(tmp_path / "answers.html").heading == "Written."
        assert (tmp_path / "answers.html").stat().st_size < 10_000


@pytest.mark.parametrize(
    "path", ["answers.txt", "lesson.ipynb", "", 3, None, "no/such/folder/a.html", "a\0.html"]
)
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
    [
        ({"lesson": "flying"}, "no lesson 'flying'"),
        ({"attempts": 3}, "not written as"),
        ({"attempts": [["winning-1"]]}, "not written as"),
    ],
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
