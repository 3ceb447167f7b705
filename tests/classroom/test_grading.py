"""Files from the lessons' pages are judged by the desk, whatever they claim."""

import csv
import json

import pytest

from classroom.__main__ import main
from classroom.grading import grade


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
    assert (found.exercises, found.attempts, found.guesses) == (6, 5, 1)
    assert "2 of 6 solved in 5 attempts (1 3), 1 guesses, explained" in str(found)


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
    assert "1 of 6 solved" in printed.out
    assert r"other\x1b[2J.html: not graded, it holds no answers" in printed.err
    assert "\x1b" not in printed.out + printed.err
    with (tmp_path / "grades.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert (row["solved"], row["explanation"], row["name"]) == ("1", "x < y", r"'＝cmd()\x1b[2J")
