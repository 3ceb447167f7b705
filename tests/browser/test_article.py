"""The explorable article in a browser: nothing before a guess, an answer and a live figure after
it, on a phone and in the dark.
"""

from __future__ import annotations

import pytest

from compendium import findings
from compendium.pages import article

pytestmark = pytest.mark.browser

PHONE = {
    "viewport": {"width": 375, "height": 800},
    "has_touch": True,
    "is_mobile": True,
    "color_scheme": "dark",
}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("article") / "one_softmax.html"
    path.write_text(article.page(findings.of_run("default")[0], "default"), encoding="utf-8")
    return path.as_uri()


def test_a_guess_brings_the_answer_and_its_figure(address, open_tab, screenshot):
    tab = open_tab(address)
    assert tab.locator(".tells:visible").count() == 0
    first = tab.locator("form.step").first
    first.get_by_role("button", name="Guess").click()
    assert "Guess first" in first.locator(".said").inner_text()
    assert tab.locator(".tells:visible").count() == 0
    first.get_by_label("yes").check()
    first.get_by_role("button", name="Guess").click()
    assert first.locator(".said").inner_text() == "You said yes."
    first.frame_locator("iframe").locator(
        '[aria-live="polite"]', has_text="c₄ can never win."
    ).wait_for()
    second = tab.locator("form.step").nth(1)
    second.get_by_label("Your guess").fill("5000")
    second.get_by_label("Your guess").press("Enter")
    assert second.locator(".said").inner_text() == "You saw it."
    assert "1 of 2 seen" in tab.locator(".score").inner_text()
    screenshot(tab, "article")


def test_it_fits_a_phone_with_every_answer_open(address, open_tab, screenshot):
    tab = open_tab(address, **PHONE)
    for step in tab.locator("form.step").all():
        field = step.locator('input[type="number"]')
        if field.count():
            field.fill("1")
        else:
            step.locator('input[type="radio"]').first.check()
        step.get_by_role("button", name="Guess").click()
    tab.frame_locator("iframe").last.locator(".sg-plane").first.wait_for()
    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]
    screenshot(tab, "article_phone_dark")
