"""The explorers, opened from a folder: mouse, finger, keys, wrong input, a phone in the dark."""

import re

import pytest

from papers.explorers import NAMES, page

pytestmark = pytest.mark.browser


@pytest.fixture
def open_page(tmp_path, open_tab):
    """`open_page(name, state=None, **options)` opens an explorer from a folder, and its controls
    unless `folded`.
    """

    def open_(name, state=None, *, folded=False, **options):
        path = tmp_path / f"{name}.html"
        path.write_text(page(name, state), encoding="utf-8")
        tab = open_tab(path.as_uri(), **options)
        if not folded:
            tab.get_by_text("Presets, controls, missions").click()
        return tab

    return open_


def _live(tab, starts: str) -> None:
    """Wait for the announced line: a browser answers at once, a busy machine a little later."""
    pattern = re.compile("^" + re.escape(starts))
    tab.locator('[aria-live="polite"]', has_text=pattern).wait_for()


def test_a_class_dragged_out_of_the_hull_can_win(open_page, drag):
    tab = open_page("softmax")
    _live(tab, "c₄ can never win.")
    tab.get_by_role("button", name="Why?", exact=True).click()
    why = tab.locator(".sg-reason").inner_text()
    proof = re.search(r"c₄ = (0\.\d\d) c₁ \+ (0\.\d\d) c₂ \+ (0\.\d\d) c₃", why)
    assert sum(map(float, proof.groups())) == pytest.approx(1, abs=1e-9)
    assert tab.locator(".sg-region").count() == 3
    sure = tab.locator(".sg-ranking + .sg-note")
    assert "c₄ gets at most 25.3%" in sure.inner_text()
    drag(tab, "class-3", 0, -180)
    _live(tab, "Every class can win.")
    assert tab.locator(".sg-region").count() == 4
    assert "c₄ gets more than 99%" in sure.inner_text()
    counted = tab.locator(".sg-detail").inner_text()
    assert "Rankings realised: 12. Formula: 12. All orders: 24." in counted


def test_the_keyboard_does_what_the_mouse_does(open_page):
    tab = open_page("softmax")
    handle = tab.locator('[data-name="class-3"]')
    handle.focus()
    tab.keyboard.press("ArrowRight")
    tab.locator('[data-name="class-3"][aria-label*="(0.31, 0.00)"]').wait_for()
    for _ in range(17):
        tab.keyboard.press("ArrowDown")
    _live(tab, "Every class can win.")
    for _ in range(17):
        tab.keyboard.press("ArrowUp")
    _live(tab, "c₄ can never win.")
    tab.get_by_role("button", name="Bias", exact=True).click()
    handle.focus()
    for _ in range(12):
        tab.keyboard.press("+")
    tab.locator('[data-name="class-3"][aria-label*="bias 0.75"]').wait_for()
    _live(tab, "Every class can win.")
    assert "bounded region" in tab.locator(".sg-reason").inner_text()


def test_a_finger_drags_the_point_and_not_the_page(open_page, phone):
    tab = open_page("softmax", folded=True, **phone)
    box = tab.locator('[data-name="class-3"] .sg-mark').bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = tab.context.new_cdp_session(tab)
    for kind, down in (("touchStart", 0), *(("touchMove", 10 * k) for k in range(1, 14))):
        points = [{"x": x, "y": y + down}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    _live(tab, "Every class can win.")
    assert tab.evaluate("scrollY") == 0


def test_numbers_typed_wrongly_are_refused_in_place(open_page):
    tab = open_page("softmax")
    tab.get_by_text("Keyboard and numbers").click()
    editor, alert = tab.locator("textarea"), tab.get_by_role("alert")
    editor.fill("0 2\n-2 NaN\n2 -1")
    editor.press("Tab")
    assert alert.inner_text() == "Row 2 of W has an entry that is not a finite number."
    assert tab.locator(".sg-region").count() == 3  # the last good picture stays
    editor.fill("0 2 0.5\n-2 -1 0\n2 -1 0\n0 0 1\n0.5 0.25 -1")
    editor.press("Tab")
    assert alert.count() == 0
    _live(tab, "c₅ can never win.")


SETTLED = (
    "() => { const was = window.was; return (window.was = location.hash) && was === window.was }"
)


def test_attention_folds_where_the_token_is_dragged_and_the_link_holds_it(
    open_page, open_tab, drag
):
    tab = open_page("attention")
    _live(tab, "Regular")
    before = tab.locator("tbody").inner_text()
    drag(tab, "token-4", -80, -80)
    _live(tab, "Beyond the fold")
    assert "places in the plane share this residual" in tab.locator(".sg-detail").inner_text()
    assert tab.locator("tbody").inner_text() != before
    tab.wait_for_function(SETTLED, polling=500)
    again = open_tab(tab.url)
    _live(again, "Beyond the fold")
    assert again.locator("tbody").text_content() == tab.locator("tbody").text_content()


def test_a_hardmax_start_that_is_dragged_outside_becomes_a_leader(open_page, drag):
    tab = open_page("hardmax")
    _live(tab, "Leaders at layer 0: z₁, z₂.")  # a third emerges
    tab.locator("select").select_option("0")
    for _ in range(4):
        tab.get_by_role("button", name="Step one layer on").click()
    _live(tab, "Leaders at layer 4")
    drag(tab, "token-7", 100, -80)
    _live(tab, "Leaders at layer 4: z₁, z₂, z₃, z₈.")


def test_a_line_folds_when_the_coupling_is_turned_up(open_page, drag):
    tab = open_page("fold")
    _live(tab, "One token has this residual.")
    tab.get_by_label("coupling c").fill("2")
    _live(tab, "3 tokens have this residual")
    assert tab.locator(".sg-crease").count() == 2  # of the curve, and of its slope
    drag(tab, "token-1", -120, 0)  # the two come together
    _live(tab, "One token has this residual.")


CONCLUSIONS = ("never win", "can win", "together", "Rankings realised", "this window", "det J =")
CONCLUSIONS += ("Support token:", "a leader", "Leaders", "follows z")


@pytest.mark.parametrize("name", NAMES)
def test_a_page_with_hidden_answers_fits_a_phone_and_shows_no_conclusion(open_page, phone, name):
    tab = open_page(name, {"hidden": True}, **phone, color_scheme="dark")
    _live(tab, "Your turn first")
    labelled = tab.locator("#explorer [aria-label]")
    labels = labelled.evaluate_all("(all) => all.map((e) => e.ariaLabel)")
    shown = " ".join([tab.locator("#explorer").inner_text(), *labels])
    assert [words for words in CONCLUSIONS if words in shown] == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= phone["viewport"]["width"]
    paper = tab.locator("main").evaluate("(e) => getComputedStyle(e).backgroundColor")
    assert max(map(int, re.findall(r"\d+", paper)[:3])) < 64
