"""The story in a browser: its figures follow the reader, and a sign is dragged free."""

import pytest

pytestmark = pytest.mark.browser

TO_STEP = "([id, at]) => { const box = document.querySelector(`#${id} .words`)"
TO_STEP += ".getBoundingClientRect(); scrollBy(0, box.top + at * box.height - innerHeight / 2); }"


def test_figures_follow_the_reader_and_a_sign_is_dragged_free(pages, open_tab, drag):
    tab = open_tab((pages / "story.html").as_uri())
    moved = []
    for at in (0.1, 0.6):
        tab.evaluate(TO_STEP, ["inside", at])
        tab.locator("#inside.on").wait_for()
        tab.wait_for_timeout(100)
        moved.append(tab.locator(".dead .dot.gone").count())
    assert moved == [0, 1]  # the class can no longer win while one scrolls
    tab.evaluate(TO_STEP, ["drag", 0.5])
    letter = tab.get_by_role("button", name="Ğ,")
    assert letter.get_attribute("aria-label") == "Ğ, can never win"
    drag(tab, letter, 160, 150, steps=5)
    assert letter.get_attribute("aria-label") == "Ğ, can win"
    tab.get_by_label("Type your name").fill("Ğ")
    assert "can never be said. Latin, U+011E." in tab.locator("#told").inner_text()
    tab.get_by_label("Type your name").fill("Oğuz Ŵ")
    assert tab.locator("#told").inner_text() == "Ŵ can never be said."
