"""The answer sheet holds every attempt as text, and a file that cannot be written is a sentence."""

from html.parser import HTMLParser

import numpy as np
import pytest

import classroom
from classroom import sheet


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
def empty_sheet(monkeypatch):
    monkeypatch.setattr(sheet, "_attempts", {})


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
    sheet._attempts.clear()
    classroom.check("rankings-2", answer)
    return sheet.page(**words)


def test_odd_answers_leave_a_small_page_and_none_comes_before_the_explanation(tmp_path):
    classroom.check("rankings-2", 10)
    assert classroom.export(tmp_path / "answers.html", explanation=...).heading == "To hand in."
    assert not list(tmp_path.iterdir())
    for answer in (np.zeros(10**5), "x" * 10**6, [[1] * 10**4], 10**5000, _Unprintable(), "\ud800"):
        sheet._attempts.clear()
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
