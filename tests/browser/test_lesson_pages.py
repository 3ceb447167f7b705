"""A lesson without a kernel: opened from a folder, worked through as a learner does, saved as one
file, and graded.
"""

from __future__ import annotations

import numpy as np
import pytest
from lesson_cases import RIGHT, WRONG, value

import classroom
from classroom import pages as lesson_pages
from classroom.grading import grade

pytestmark = pytest.mark.browser

NAME, KEY = "2_who_can_win", "winning"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("lesson") / f"{NAME}.html"
    path.write_text(lesson_pages.page(NAME), encoding="utf-8")
    return path.as_uri()


def _answer(box, answer):
    if isinstance(answer, bool):
        box.get_by_role("button", name=str(answer)).click()
        return
    parts = sorted(answer) if isinstance(answer, set) else np.atleast_1d(answer)
    box.get_by_role("textbox").fill(", ".join(map(str, parts)))
    box.get_by_role("button", name="Check").click()


def test_a_whole_lesson_in_a_tab(address, open_tab, screenshot, tmp_path):
    tab = open_tab(address)
    assert tab.locator(".sg-live").first.inner_text().startswith("Your turn first")
    mistakes = {question: typed for question, typed, _ in reversed(WRONG)}
    module = classroom.LESSONS[KEY]
    for box in tab.locator("[data-question]").all():
        question = box.get_attribute("data-question")
        _answer(box, value(mistakes[question]))
        said = box.locator(".reply > strong")
        assert said.inner_text() == ("Compare." if "guess" in question else "Not yet.")
        if "guess" not in question:
            _answer(box, value(RIGHT[question][0]))
            assert said.inner_text() == "Right.", question
    assert "D can never win" in tab.locator(".sg-live").first.inner_text()  # the veil is gone
    assert tab.locator(".after.told pre").first.is_visible()
    take = tab.get_by_role("button", name="Take the figure's")
    take.click()
    assert tab.locator('[data-question="winning-5"] input').input_value() == "0, 0, 0, 0, 0, 0, 0"
    tab.get_by_label("Your explanation").fill("D lies <inside>: weights are a proof.")
    tab.get_by_label("Your name").fill("Ada L.")
    screenshot(tab, "lesson_page")

    tab.reload()  # what was answered is still there
    assert tab.locator('[data-question="winning-6"] .reply > strong').inner_text() == "Right."
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save my answers").click()
    assert download.value.suggested_filename == "answers_2_Ada_L_.html"
    download.value.save_as(tmp_path / "answers.html")
    found = grade(tmp_path / "answers.html")
    assert (found.name, found.solved) == ("Ada L.", "1 2 3 4 5 6")
    assert found.guesses == len(module.PREDICTIONS)
    assert found.explanation == "D lies <inside>: weights are a proof."


@pytest.mark.parametrize("name", lesson_pages.names())
def test_every_lesson_fits_a_phone(name, tmp_path, open_tab, phone):
    path = tmp_path / f"{name}.html"
    path.write_text(lesson_pages.page(name), encoding="utf-8")
    tab = open_tab(path.as_uri(), **phone, color_scheme="dark")
    tab.locator(".ask button").first.wait_for()
    assert tab.evaluate("document.documentElement.scrollWidth") <= phone["viewport"]["width"]
