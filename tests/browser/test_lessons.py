"""A lesson as a learner meets it: as a page without a kernel."""

import numpy as np
import pytest
from lesson_cases import RIGHT, WRONG, value

from classroom import LESSONS
from classroom.grading import grade

pytestmark = pytest.mark.browser


def _answer(box, answer):
    if isinstance(answer, bool):
        box.get_by_role("button", name=str(answer)).click()
        return
    parts = sorted(answer) if isinstance(answer, set) else np.atleast_1d(answer)
    box.get_by_role("textbox").fill(", ".join(map(str, parts)))
    box.get_by_role("button", name="Check").click()


def test_a_whole_lesson_in_a_tab(pages, open_tab, tmp_path):
    """Every question wrong, then right; saved as one file, and graded."""
    tab = open_tab((pages / "lessons" / "2_who_can_win.html").as_uri())
    assert tab.locator(".sg-live").first.inner_text().startswith("Your turn first")
    mistakes = {question: typed for question, typed, _ in reversed(WRONG)}
    for box in tab.locator("[data-question]").all():
        question = box.get_attribute("data-question")
        _answer(box, value(mistakes[question]))
        said = box.locator(".reply > strong")
        assert said.inner_text() == ("Compare." if "guess" in question else "Not yet.")
        _answer(box, value(RIGHT[question][0]))
        assert said.inner_text() == "Right.", question
    assert "D can never win" in tab.locator(".sg-live").first.inner_text()  # no longer hidden
    tab.get_by_label("Your explanation").fill("D lies <inside>: weights are a proof.")
    tab.get_by_label("Your name").fill("Ada L.")
    tab.reload()  # what was answered is still there
    assert tab.locator('[data-question="winning-6"] .reply > strong').inner_text() == "Right."
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save my answers").click()
    download.value.save_as(tmp_path / "answers.html")
    found = grade(tmp_path / "answers.html")
    assert (found.name, found.solved) == ("Ada L.", "1 2 3 4 5 6 7")
    assert found.guesses == len(LESSONS["winning"].predictions)
    assert found.explanation == "D lies <inside>: weights are a proof."
