"""The static explorers, opened from a folder: mouse, finger, keyboard, wrong input, both themes, a
phone.
"""

from __future__ import annotations

import re

import pytest

from softgeom.explorers import NAMES, page

pytestmark = pytest.mark.browser


@pytest.fixture
def open_page(tmp_path, open_tab):
    """`open_page(name, state=None, **options)` writes the page to a folder, opens it from there and
    unfolds its controls, unless told `folded=True`.
    """

    def open_(name, state=None, *, folded=False, **options):
        path = tmp_path / f"{name}.html"
        path.write_text(page(name, state), encoding="utf-8")
        tab = open_tab(path.as_uri(), **options)
        if not folded:
            tab.get_by_text("Presets, controls, missions").click()
        return tab

    return open_


def _live(tab, starts: str, *, whole: bool = True) -> None:
    """Wait for the announced line: a browser answers at once, a busy machine a little later."""
    pattern = re.compile("^" + re.escape(starts) + ("$" if whole else ""))
    tab.locator('[aria-live="polite"]', has_text=pattern).wait_for()


def _label(tab, name: str, part: str) -> None:
    """Wait until the point of that name is labelled so for screen readers."""
    tab.locator(f'[data-name="{name}"][aria-label*="{part}"]').wait_for()


def _press(tab, label: str) -> None:
    tab.get_by_role("button", name=label, exact=True).click()


def test_a_class_dragged_out_of_the_hull_can_win(open_page, drag, screenshot):
    tab = open_page("softmax")
    _live(tab, "c₄ can never win.")
    _press(tab, "Why?")
    why = tab.locator(".sg-reason").inner_text()
    proof = re.search(r"c₄ = (0\.\d\d) c₁ \+ (0\.\d\d) c₂ \+ (0\.\d\d) c₃", why)
    assert sum(map(float, proof.groups())) == pytest.approx(1, abs=1e-9)
    assert tab.locator(".sg-captor").count() == 3
    assert tab.locator(".sg-region").count() == 3
    # towards x, and across it through the winner
    assert tab.locator(".sg-direction line").count() == 2
    sure = tab.locator(".sg-ranking + .sg-note")
    assert "c₄ gets at most 25.3%" in sure.inner_text()
    screenshot(tab, "softmax")
    drag(tab, "class-3", 0, -180)
    _live(tab, "Every class can win.")
    assert tab.locator(".sg-region").count() == 4
    assert "c₄ gets more than 99%" in sure.inner_text()
    counted = tab.locator(".sg-detail").inner_text()
    assert "Rankings realised: 12. Formula: 12. All orders: 24." in counted
    screenshot(tab, "softmax_bias")


def test_the_keyboard_alone_does_what_the_mouse_does(open_page):
    tab = open_page("softmax")
    tab.locator("summary").first.focus()
    for _ in range(4):  # backwards over the window's slider, "Why?" and x to the last class
        tab.keyboard.press("Shift+Tab")
    handle = tab.locator('[data-name="class-3"]')
    assert handle.evaluate("(element) => element === document.activeElement")
    _label(tab, "class-3", "class c₄ at (0.25, 0.00), can never win")
    tab.keyboard.press("ArrowRight")
    _label(tab, "class-3", "(0.31, 0.00)")
    tab.keyboard.press("Shift+ArrowLeft")
    _label(tab, "class-3", "(0.30, 0.00)")
    for _ in range(17):
        tab.keyboard.press("ArrowDown")
    _live(tab, "Every class can win.")
    for _ in range(17):
        tab.keyboard.press("ArrowUp")
    _live(tab, "c₄ can never win.")
    _press(tab, "Bias")
    handle.focus()
    for _ in range(12):
        tab.keyboard.press("+")
    _label(tab, "class-3", "bias 0.75")
    _live(tab, "Every class can win.")
    assert "bounded region" in tab.locator(".sg-reason").inner_text()
    # with a bias the farthest class need not win
    assert tab.locator(".sg-direction line").count() == 0
    tab.keyboard.press("-")
    _label(tab, "class-3", "bias 0.69")


def test_a_finger_drags_too(open_page, screenshot, phone):
    tab = open_page("softmax", folded=True, **phone)
    if tab.context.browser.browser_type.name == "firefox":
        pytest.skip("Playwright has no such touch there: test_firefox_touch.py")
    box = tab.locator('[data-name="class-3"] .sg-mark').bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = tab.context.new_cdp_session(tab)
    for kind, down in (("touchStart", 0), *(("touchMove", 10 * k) for k in range(1, 14))):
        points = [{"x": x, "y": y + down}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    _live(tab, "Every class can win.")
    assert tab.evaluate("scrollY") == 0  # the finger moved the point, not the page
    screenshot(tab, "softmax_phone")


def test_numbers_typed_wrongly_are_refused_in_place(open_page):
    tab = open_page("softmax")
    tab.get_by_text("Keyboard and numbers").click()
    editor = tab.locator("textarea")

    def type_(text: str) -> None:
        editor.focus()
        tab.keyboard.press("ControlOrMeta+a")
        tab.keyboard.type(text)
        # by keys throughout: a value that a script sets is no change to Firefox
        tab.keyboard.press("Tab")

    type_("0 2\n-2 NaN\n2 -1")
    alert = tab.get_by_role("alert")
    assert alert.inner_text() == "Row 2 of W has an entry that is not a finite number."
    # the last good picture stays, and so does the layer
    assert tab.locator(".sg-region").count() == 3
    tab.locator('[data-name="class-3"]').press("ArrowRight")
    assert alert.count() == 0
    type_("0 2 0.5\n-2 -1 0\n2 -1 0\n0 0 1\n0.5 0.25 -1")
    assert alert.count() == 0
    _live(tab, "c₅ can never win.")
    assert tab.locator(".sg-handles > g").count() == 6  # five classes and x


def test_a_page_with_a_bad_layer_says_so(open_page):
    tab = open_page("softmax", {"W": [[0, 1], [1]]})
    assert tab.get_by_role("alert").inner_text() == "Row 2 of W must be a pair of numbers."


def test_all_rankings(open_page, screenshot):
    tab = open_page("softmax", color_scheme="dark")
    tab.locator("select").select_option("3")
    _press(tab, "All rankings")
    assert tab.locator(".sg-tie").count() == 6
    screenshot(tab, "softmax_dark")


def test_among_fewer_rivals_an_unargmaxable_class_wins(open_page, screenshot):
    tab = open_page("softmax")
    menu = tab.locator("select")
    menu.select_option(label="Candidates: fewer rivals")
    _live(tab, "c₄ can never win.")
    screenshot(tab, "softmax_candidates")
    for corner in ("c₁", "c₂", "c₃"):
        chip = tab.get_by_role("button", name=f"{corner} competes", exact=True)
        chip.click()
        assert chip.get_attribute("aria-pressed") == "false"
        rest = [name for name in ("c₁", "c₂", "c₃", "c₄") if name != corner]
        _live(tab, f"Among {rest[0]}, {rest[1]} and {rest[2]}: every class can win.")
        assert tab.locator('.sg-region[data-class="3"]').count() == 1
        if corner == "c₃":
            screenshot(tab, "softmax_candidates_fewer")
        chip.press("Enter")
        _live(tab, "c₄ can never win.")
    _press(tab, "Candidates")
    tab.get_by_role("group", name="Which classes compete").wait_for(state="hidden")


def test_only_neighbours_are_returned_together(open_page, drag, screenshot):
    tab = open_page("softmax", color_scheme="dark")
    tab.locator("select").select_option(label="Retrieval: which pairs come back?")
    _live(tab, "6 of 15 pairs can come first together.")
    assert tab.locator(".sg-region").count() == 6
    _press(tab, "Why?")
    assert "a mean of the pair is a mean of others" in tab.locator(".sg-reason").inner_text()
    screenshot(tab, "softmax_pairs")
    drag(tab, "class-0", -110, 10)  # to the middle: now it lies inside, and is never first
    tab.locator(".sg-detail", has_text="c₁ c₄").wait_for()
    _press(tab, "Pairs")
    _live(tab, "c₁ can never win.")
    _press(tab, "Bias")
    assert tab.get_by_role("button", name="Pairs", exact=True).count() == 1  # all biases are 0 yet
    tab.locator('[data-name="class-0"]').press("+")
    tab.get_by_role("button", name="Pairs", exact=True).wait_for(state="hidden")


def test_attention_folds_where_the_token_is_dragged(open_page, drag, screenshot):
    tab = open_page("attention")
    _live(tab, "Regular", whole=False)
    before = tab.locator("tbody").inner_text()
    screenshot(tab, "attention")
    drag(tab, "token-4", -80, -80)
    _live(tab, "Beyond the fold", whole=False)
    assert "places in the plane share this residual" in tab.locator(".sg-detail").inner_text()
    assert tab.locator("tbody").inner_text() != before
    screenshot(tab, "attention_torn")
    assert tab.locator(".sg-curve path").get_attribute("d")
    assert tab.locator(".sg-folded .sg-turned").get_attribute("d")
    tab.locator("select").select_option("1")  # two tokens: a symmetric past
    _live(tab, "Beyond the fold", whole=False)
    # in a fold always an odd number
    assert "3 places in the plane share" in tab.locator(".sg-detail").inner_text()
    tab.get_by_label("coupling c").fill("-1")
    assert not tab.locator(".sg-curve path").get_attribute("d")  # nothing folds any more
    assert not tab.locator(".sg-folded .sg-turned").get_attribute("d")
    _live(tab, "Regular", whole=False)
    assert "No token is under pressure" in tab.locator(".sg-detail").inner_text()


DRAGGED = """async () => {
  const point = document.querySelector('[data-name="token-1"]');
  const length = () => document.querySelector("path.sg-sheet").getAttribute("d").length;
  const fine = length();
  for (let k = 0; k < 3; k++) {
    point.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true }));
    await Promise.resolve();
  }
  const coarse = length();
  for (let k = 0; k < 100 && length() < 0.9 * fine; k++)
    await new Promise((done) => setTimeout(done, 50));
  return [fine, coarse, length()];
}"""


def test_a_field_is_coarse_while_its_past_is_dragged(open_page):
    fine, moving, at_rest = open_page("attention").evaluate(DRAGGED)
    assert moving < 0.8 * fine
    assert at_rest > 0.9 * fine


def test_hardmax_steps_and_its_start_can_be_dragged(open_page, drag, screenshot):
    tab = open_page("hardmax")
    _live(tab, "Leaders at layer 0: z₁, z₂.")  # a third emerges
    for _ in range(3):
        tab.get_by_role("button", name="Step one layer on").click()
    _live(tab, "Leaders at layer 3: z₁, z₂, z₃.")
    screenshot(tab, "hardmax")
    tab.locator("select").select_option("0")
    for _ in range(3):
        tab.get_by_role("button", name="Step one layer on").click()
    _live(tab, "Leaders at layer 3: z₁, z₂, z₃.")
    tab.get_by_role("button", name="Step one layer on").click()
    _live(tab, "Leaders at layer 4", whole=False)
    drag(tab, "token-7", 100, -80)  # pulled outside the triangle it becomes a leader itself
    _live(tab, "Leaders at layer 4: z₁, z₂, z₃, z₈.")
    tab.get_by_role("button", name="Play").click()
    # it may be past 6 by the time that we look
    tab.locator("[aria-live]", has_text=re.compile(r"layer ([6-9]|[1-9]\d)")).wait_for()
    tab.get_by_role("button", name="Pause").click()
    screenshot(tab, "hardmax_played")


def test_a_line_folds_when_the_coupling_is_turned_up(open_page, drag, screenshot):
    tab = open_page("fold")
    _live(tab, "One token has this residual.")
    assert tab.locator(".sg-crease").count() == 0
    tab.get_by_label("coupling c").fill("2")
    _live(tab, "3 tokens have this residual", whole=False)
    assert tab.locator(".sg-crease").count() == 2  # of the curve, and of its slope
    assert "Smallest slope −1.00, at x = 0.00" in tab.locator(".sg-detail").inner_text()
    screenshot(tab, "fold")
    tab.get_by_label("coupling c").fill("-1")
    assert "The slope is above 1 everywhere" in tab.locator(".sg-detail").inner_text()
    tab.get_by_label("coupling c").fill("2")
    drag(tab, "token-1", -120, 0)  # the two come together
    _live(tab, "One token has this residual.")


def test_a_link_holds_what_was_dragged(open_page, open_tab, drag):
    tab = open_page("attention")
    drag(tab, "token-4", -80, -80)
    _live(tab, "Beyond the fold", whole=False)
    tab.wait_for_url(re.compile("#"))
    again = open_tab(tab.url)
    _live(again, "Beyond the fold", whole=False)
    assert again.locator("tbody").text_content() == tab.locator("tbody").text_content()


MODES = [("softmax", {"first": 2}), ("softmax", {"among": [1, 1, 1, 1]})]
CONCLUSIONS = ("never win", "can win", "together", "Rankings realised", "this window", "det J =")
CONCLUSIONS += ("Support token:", "a leader", "Leaders", "follows z")


@pytest.mark.parametrize(("name", "state"), [*((name, {}) for name in NAMES), *MODES])
def test_a_veil_hides_every_conclusion(open_page, screenshot, name, state):
    tab = open_page(name, {"veiled": True, **state})
    _live(tab, "Your turn first", whole=False)
    labelled = tab.locator("#explorer [aria-label]")
    labels = labelled.evaluate_all("(all) => all.map((e) => e.ariaLabel)")
    told = " ".join([tab.locator("#explorer").inner_text(), *labels])
    assert [words for words in CONCLUSIONS if words in told] == []
    assert tab.locator(".sg-region, .sg-ringed, .sg-crease, .sg-star").count() == 0
    assert not tab.locator("select").is_visible()
    screenshot(tab, "_".join([name, *state, "veiled"]))


@pytest.mark.parametrize("name", NAMES)
def test_pages_fit_a_phone_and_follow_the_dark_theme(open_page, screenshot, name, phone):
    tab = open_page(name, **phone, color_scheme="dark")
    assert tab.evaluate("document.documentElement.scrollWidth") <= phone["viewport"]["width"]
    paper = tab.locator("main").evaluate("(e) => getComputedStyle(e).backgroundColor")
    assert max(map(int, re.findall(r"\d+", paper)[:3])) < 64
    screenshot(tab, f"{name}_phone_dark")


def test_inside_an_iframe_a_page_takes_the_theme_and_tells_its_height(tmp_path, open_tab):
    (tmp_path / "softmax.html").write_text(page("softmax"), encoding="utf-8")
    outer = "<iframe src='softmax.html#dark' width='700' height='300'></iframe>"
    outer += "<script>onmessage = (e) => document.title = e.data.softgeomHeight</script>"
    (tmp_path / "outer.html").write_text(outer, encoding="utf-8")
    tab = open_tab((tmp_path / "outer.html").as_uri(), color_scheme="light")
    inner = tab.frame_locator("iframe")
    assert inner.locator("html").get_attribute("data-theme") == "dark"
    paper = inner.locator("main").evaluate("(e) => getComputedStyle(e).backgroundColor")
    assert paper == "rgb(20, 24, 29)"
    tab.wait_for_function("Number(document.title) > 500")


def test_the_bias_is_lifted_and_turned(open_page, screenshot):
    tab = open_page("softmax")
    assert not tab.get_by_role("button", name="Lift", exact=True).is_visible()  # nothing to lift
    tab.locator("select").select_option(label="A bias lets the inner class win")
    _press(tab, "Lift")
    assert tab.locator(".sg-face").count() == 3  # c₄ is the top of a tent over three corners
    assert tab.locator(".sg-gap").count() == 0
    before = tab.locator(".sg-face").first.get_attribute("d")
    tab.get_by_label("turn").fill("60")
    assert tab.locator(".sg-face").first.get_attribute("d") != before
    screenshot(tab, "softmax_lifted")
    tab.locator('[data-name="class-3"]').focus()
    for _ in range(24):
        tab.keyboard.press("-")
    _live(tab, "c₄ can never win.")
    assert tab.locator(".sg-face").count() == 1
    assert tab.locator(".sg-gap").count() == 1  # below the roof, by as much as the proof leaves
    _press(tab, "Why?")
    short = tab.locator(".sg-gaps text").text_content()
    assert f"put that mean {short} above c₄" in tab.locator(".sg-reason").inner_text()


MISSION = {
    "softmax": lambda tab, drag: drag(tab, "class-3", 0, -180),
    "attention": lambda tab, drag: tab.get_by_label("coupling c").fill("-1"),
    "fold": lambda tab, drag: tab.get_by_label("coupling c").fill("2"),
    "hardmax": lambda tab, drag: drag(tab, "token-3", -140, -60),
}


@pytest.mark.parametrize("name", NAMES)
def test_missions_count_what_the_reader_does_and_no_preset(open_page, drag, screenshot, name):
    tab = open_page(name)
    score = tab.locator(".sg-missions summary")
    total = tab.locator(".sg-missions li").count()
    for index in range(tab.locator("select option").count() - 1):
        tab.locator("select").select_option(str(index))
    tab.locator("select").select_option("3" if name == "hardmax" else "0")
    assert score.inner_text() == f"Missions: 0 of {total}"
    MISSION[name](tab, drag)
    tab.locator(".sg-missions summary", has_text=f"Missions: 1 of {total}").wait_for()
    score.click()
    assert tab.locator(".sg-missions .sg-done").count() == 1
    screenshot(tab, f"{name}_missions")


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_comes_first_and_a_hand_shows_the_gesture(open_page, screenshot, name):
    tab = open_page(name, folded=True, viewport={"width": 390, "height": 844})
    assert not tab.locator("select").is_visible()
    picture = tab.locator(".sg-plane").first.bounding_box()
    assert picture["y"] + picture["height"] <= 844
    screenshot(tab, f"{name}_first")
    assert tab.locator(".sg-ghost").count() == 1
    tab.locator(".sg-handle").first.press("ArrowLeft")
    assert tab.locator(".sg-ghost").count() == 0


def test_numbers_are_said_in_plain_words(open_page, drag):
    assert "can give 3 of its 4 answers" in open_page("softmax").locator(".sg-plain").inner_text()
    tab = open_page("attention")
    plain = tab.locator(".sg-plain")
    far = re.search(r"x is (\d\.\d\d) away from the fold", plain.inner_text())
    assert far
    drag(tab, "token-4", -20, -20)
    nearer = re.search(r"x is (\d\.\d\d) away", plain.inner_text())
    assert nearer is None or float(nearer[1]) < float(far[1])
    tab.get_by_label("coupling c").fill("-1")
    assert re.search(r"nothing in this window folds.*grows to \d", plain.inner_text())
