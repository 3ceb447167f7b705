"""A lesson as a learner meets it: as a page without a kernel, and in JupyterLab."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from lesson_cases import RIGHT, WRONG, value

import classroom
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
        if "guess" not in question:
            _answer(box, value(RIGHT[question][0]))
            assert said.inner_text() == "Right.", question
    assert "D can never win" in tab.locator(".sg-live").first.inner_text()  # no longer veiled
    tab.get_by_label("Your explanation").fill("D lies <inside>: weights are a proof.")
    tab.get_by_label("Your name").fill("Ada L.")
    tab.reload()  # what was answered is still there
    assert tab.locator('[data-question="winning-6"] .reply > strong').inner_text() == "Right."
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save my answers").click()
    download.value.save_as(tmp_path / "answers.html")
    found = grade(tmp_path / "answers.html")
    assert (found.name, found.solved) == ("Ada L.", "1 2 3 4 5 6")
    assert found.guesses == len(classroom.LESSONS["winning"].PREDICTIONS)
    assert found.explanation == "D lies <inside>: weights are a proof."


def test_a_lesson_runs_in_jupyterlab_and_answers_the_learner(repository, jupyterlab, open_tab):
    address, folder = jupyterlab
    shutil.copy(repository / "notebooks" / "lessons" / "1_rankings_and_regions.ipynb", folder)
    # A workspace of its own: JupyterLab would open what an earlier test left open.
    page = f"{address}/lab/workspaces/lesson/tree/1_rankings_and_regions.ipynb"
    tab = open_tab(page, viewport={"width": 1300, "height": 1000})
    tab.set_default_timeout(120_000)  # a busy machine takes a minute to run all cells
    tab.locator(".jp-Notebook .jp-Cell").first.click()
    idle = tab.locator(".jp-Notebook-ExecutionIndicator[data-status='idle']")
    idle.wait_for()
    # solutions are collapsed
    tab.locator(".jp-mod-noInput, .jp-Placeholder").first.wait_for(state="attached")
    tab.get_by_role("menuitem", name="Run", exact=True).click()
    tab.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    tab.locator(".jp-RenderedText", has_text="214,445 digits").wait_for()  # the last cell's output
    idle.wait_for()
    cell = tab.locator(".jp-CodeCell", has_text='classroom.check("rankings-2", answer)')
    cell.scroll_into_view_if_needed()
    for answer, says in (("20", "counts every pair twice"), ("10", "10 pairs, 10 lines")):
        cell.locator(".cm-content").click()
        tab.keyboard.press("Control+a")
        tab.keyboard.type(f'answer = {answer}\nclassroom.check("rankings-2", answer)')
        tab.keyboard.press("Control+Enter")
        cell.locator("blockquote", has_text=says).wait_for()
