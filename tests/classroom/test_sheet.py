"""The answer sheet holds every attempt as text, and a file that cannot be written is a sentence."""

from html.parser import HTMLParser

import numpy as np
import pytest

import classroom
from classroom import desk, rankings, sheet
from papers.explorers import AttentionExplorer, FoldExplorer, HardmaxExplorer, SoftmaxExplorer


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
    monkeypatch.setattr(sheet, "_attempts", {})
    monkeypatch.setattr(desk, "_answered", set())
    monkeypatch.setattr(desk, "_veiled", {})


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


@pytest.mark.parametrize(
    "make", [SoftmaxExplorer, FoldExplorer, AttentionExplorer, HardmaxExplorer]
)
def test_a_hidden_explorer_appears_after_any_readable_guess(make):
    explorer = classroom.veil(make(), until="rankings-guess")
    other = classroom.veil(make(), until="winning-guess")
    assert explorer.veiled
    assert explorer.presets == []
    classroom.reveal("rankings-guess", ...)
    classroom.reveal("rankings-guess", "banana")
    assert explorer.veiled
    classroom.reveal("rankings-guess", 7)
    assert not explorer.veiled
    assert other.veiled
    assert not classroom.veil(make(), until="rankings-guess").veiled


def test_exercises_and_gates_wait_for_their_answers():
    explorer = classroom.veil(SoftmaxExplorer(), until="rankings-2")
    classroom.check("rankings-2", 11)
    assert explorer.veiled
    classroom.check("rankings-2", 10)
    assert not explorer.veiled
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
    with pytest.raises(ValueError, match="rankings has rankings-guess"):
        classroom.veil(SoftmaxExplorer(), until="rankings-guss")
    with pytest.raises(ValueError, match="There is no"):
        classroom.after("rankings-1", print)  # an exercise: its answer is not printed by any cell
