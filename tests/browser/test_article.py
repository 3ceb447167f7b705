"""The story in a browser: its figures follow the reader, a sign is dragged free by mouse and keys,
the wall tells of each sign; all of it stands there without a script, and on a phone.
"""

from __future__ import annotations

import pytest

from compendium.pages import article

pytestmark = pytest.mark.browser

TO_STEP = "([id, at]) => { const box = document.querySelector(`#${id} .words`)"
TO_STEP += ".getBoundingClientRect(); scrollBy(0, box.top + at * box.height - innerHeight / 2); }"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("story") / "story.html"
    path.write_text(article.page(), encoding="utf-8")
    return path.as_uri()


def test_figures_follow_the_reader(address, open_tab, screenshot):
    tab = open_tab(address)
    for step in ("score", "point", "inside", "drag", "proof", "sure", "why", "mend"):
        tab.evaluate(TO_STEP, [step, 0.5])
        tab.locator(f"#{step}.on").wait_for()
        assert tab.locator(".step.on").count() == (1 if step not in ("why", "mend") else 2)
    moved = []
    for at in (0.1, 0.6):
        tab.evaluate(TO_STEP, ["inside", at])
        tab.wait_for_timeout(100)
        moved.append(tab.locator(".dead .dot.gone").count())
    assert moved == [0, 1]  # it dies while one scrolls
    screenshot(tab.locator("#inside figure"), "story_inside")


def test_a_sign_is_dragged_free_and_walks_back(address, open_tab, drag):
    tab = open_tab(address)
    tab.evaluate(TO_STEP, ["drag", 0.5])
    letter = tab.get_by_role("button", name="Ğ,")
    assert letter.get_attribute("aria-label") == "Ğ, can never win"
    drag(tab, letter, 160, 150, steps=5)
    assert letter.get_attribute("aria-label") == "Ğ, can win"
    for key in ["ArrowLeft"] * 14 + ["ArrowDown"] * 12:
        letter.press(key)
    assert letter.get_attribute("aria-label") == "Ğ, can never win"


def test_the_wall_tells_of_the_sign_under_pointer_and_keys(address, open_tab, screenshot):
    tab = open_tab(address)
    tab.get_by_label("Find a sign").fill("Ğ")
    told = tab.locator("#told")
    assert "can never be said. Latin, U+011E." in told.inner_text()
    assert "never exceeds 0.0186%" in told.inner_text()
    box = tab.locator(".ring").bounding_box()
    seen = []
    for right in (60, 0):
        tab.mouse.move(box["x"] + box["width"] / 2 + right, box["y"] + box["height"] / 2)
        seen.append(told.locator("strong").inner_text())
    assert seen[0] != "Ğ" == seen[1]
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        tab.locator("#signs").press(key)
    assert told.locator("strong").inner_text() == "ğ"
    tab.get_by_label("Find a sign").fill("A")
    assert "can be said." in told.inner_text()
    screenshot(tab.locator("#told"), "story_told")


def test_without_a_script_every_step_stands(address, open_tab):
    tab = open_tab(address, java_script_enabled=False)
    for figure in tab.locator("figure").all():
        assert figure.is_visible()
    assert tab.locator(".scripted:visible").count() == 0
    assert tab.locator("#signs b").first.is_visible()


def test_it_fits_a_phone(address, open_tab, screenshot, phone):
    tab = open_tab(address, **phone, color_scheme="dark")
    assert tab.evaluate("document.documentElement.scrollWidth") <= phone["viewport"]["width"]
    screenshot(tab.locator("header"), "story_phone_dark")
