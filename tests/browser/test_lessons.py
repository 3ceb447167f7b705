"""A lesson as a learner meets it: opened in JupyterLab, run from top to bottom, answered wrongly
and rightly.
"""

from __future__ import annotations

import shutil

import pytest

pytestmark = pytest.mark.browser

NAME = "1_rankings_and_regions"


def test_a_lesson_runs_in_jupyterlab_and_answers_the_learner(
    repository, jupyterlab, open_tab, screenshot
):
    address, folder = jupyterlab
    shutil.copy(repository / "notebooks" / "lessons" / f"{NAME}.ipynb", folder)
    # A workspace of its own: JupyterLab would open what an earlier test left open.
    page = f"{address}/lab/workspaces/lesson/tree/{NAME}.ipynb"
    tab = open_tab(page, viewport={"width": 1300, "height": 1000})
    tab.set_default_timeout(60_000)
    tab.locator(".jp-Notebook .jp-Cell").first.click()
    idle = tab.locator(".jp-Notebook-ExecutionIndicator[data-status='idle']")
    idle.wait_for()
    # solutions are collapsed
    tab.locator(".jp-mod-noInput, .jp-Placeholder").first.wait_for(state="attached")

    tab.get_by_role("menuitem", name="Run", exact=True).click()
    tab.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    tab.locator(".jp-RenderedText", has_text="214,445 digits").wait_for()  # the last cell's output
    idle.wait_for()
    tab.locator(".softgeom [aria-live]").scroll_into_view_if_needed()
    tab.locator(".softgeom .sg-mark").first.wait_for()
    assert tab.locator(".softgeom .sg-region").count() == 0  # nothing is given away before a guess
    tab.wait_for_timeout(500)  # JupyterLab draws the cells that scrolled into view a little later
    screenshot(tab, "lesson")

    cell = tab.locator(".jp-CodeCell", has_text='classroom.check("rankings-2", answer)')
    cell.scroll_into_view_if_needed()
    for answer, says in (
        ("20", "counts every pair twice"),
        ("'ten'", "whole number"),
        ("10", "10 pairs, 10 lines"),
    ):
        cell.locator(".cm-content").click()
        tab.keyboard.press("Control+a")
        tab.keyboard.type(f'answer = {answer}\nclassroom.check("rankings-2", answer)')
        tab.keyboard.press("Control+Enter")
        cell.locator("blockquote", has_text=says).wait_for()
    screenshot(tab, "lesson_answered")
