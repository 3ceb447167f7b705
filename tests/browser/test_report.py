"""The report as a reader meets it: a folder opened from the disk, on a desk and on a phone, in
daylight and in the dark.

conftest.py builds it once.
"""

from __future__ import annotations

import re

import pytest

from softgeom.explorers import NAMES

pytestmark = pytest.mark.browser


@pytest.fixture
def open_page(site, open_tab):
    """`open_page("claims", **options)` opens a page of the site from the disk."""

    def open_(name: str, **options):
        return open_tab((site / f"{name}.html").as_uri(), **options)

    return open_


def _width(tab) -> int:
    return tab.evaluate("document.documentElement.scrollWidth")


def test_every_page_is_linked_and_nothing_it_links_to_is_missing(site):
    """From the front page on, every link and every picture inside the site leads to a file of the
    site.
    """
    seen, waiting = set(), [site / "index.html"]
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        text = re.sub(r"(?s)<script\b.*?</script>", "", page.read_text(encoding="utf-8"))
        for address in re.findall(r'(?:href|src)="(?![a-z]+:)([^"#?]+)[^"]*"', text):
            target = (page.parent / address).resolve()
            assert target.is_file(), f"{page.relative_to(site)} leads to {address}: it is missing"
            if target.suffix == ".html":
                waiting.append(target)
    pages = {page for page in site.rglob("*.html") if "_static" not in page.parts}
    assert {page.stem for page in pages - seen} <= {"search"}  # which the search field opens


DOORS = {"scan yours": "scan", "learn or teach": "lessons/1_rankings_and_regions"}
DOORS["reproduce four papers"] = "running"


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)], ids=["a desk", "a phone"])
def test_the_first_screen_has_its_doors(open_page, width, height):
    tab = open_page("index", viewport={"width": width, "height": height})
    assert "softgeom scan" in tab.locator("article p code").nth(1).inner_text()
    for name, page in DOORS.items():
        door = tab.get_by_role("link", name=name, exact=True).first
        assert door.get_attribute("href") == f"{page}.html"
        box = door.bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= height


def test_the_front_page_answers_and_leads_to_the_evidence(open_page, screenshot):
    answers = open_page("answers").locator("section:has(> h2) img")
    assert answers.count() >= 4
    assert all(answers.nth(k).get_attribute("alt") for k in range(answers.count()))
    tab = open_page("index")
    assert tab.locator("article img").first.get_attribute("alt")
    screenshot(tab, "report_front")
    tab.locator("article").get_by_role("link", name="claim", exact=True).click()
    tab.locator("article h1", has_text="Register of claims").wait_for()
    rows = tab.locator("details.claim")
    shown = rows.locator("visible=true")
    tab.locator("#claim-filters output").wait_for()  # made when all of the page is there
    everything = rows.count()
    tab.get_by_label("Kind").select_option("theorem")
    assert 0 < shown.count() < everything
    told = tab.locator("#claim-filters output").inner_text()
    assert told == f"{shown.count()} of {everything} rows"
    row = shown.filter(has=tab.locator("ul a", has_text="20_scalar_margins")).first
    row.locator("summary").focus()
    tab.keyboard.press("Enter")
    screenshot(tab, "report_claims")
    row.locator("a", has_text="20_scalar_margins").first.click()
    picture = tab.locator("figure img").first
    picture.evaluate("(image) => image.scrollIntoView()")  # it is fetched when it comes near
    picture.wait_for()
    assert picture.evaluate("(image) => image.complete && image.naturalWidth") > 300
    assert len(picture.get_attribute("alt")) > 20
    assert tab.locator("article").get_by_text("Provenance.").count() == 1
    screenshot(tab, "report_notebook")


def test_formulas_are_typeset_without_a_script(site, open_page):
    texts = {page.stem: page.read_text("utf-8") for page in (site / "notebooks").glob("*.html")}
    formulas = {name: text.count("<math ") for name, text in texts.items()}
    page = max(formulas, key=formulas.__getitem__)
    tab = open_page(f"notebooks/{page}")
    assert tab.locator("math").count() == formulas[page] > 3
    assert tab.locator("merror").count() == 0
    assert tab.locator("article math:visible").first.bounding_box()["height"] > 5
    assert tab.locator("script[src*=mathjax]").count() == 0


def test_long_code_is_folded_and_the_keyboard_opens_it(site, open_page):
    page = next((site / "notebooks").glob("*.html"))
    tab = open_page(f"notebooks/{page.stem}")
    folded = tab.locator("details.hide").first
    assert not folded.locator("pre").first.is_visible()
    folded.locator("summary").focus()
    tab.keyboard.press("Enter")
    folded.locator("pre").first.wait_for()


def test_the_search_finds_without_a_server(open_page):
    tab = open_page("index")
    tab.keyboard.press("Control+k")
    tab.keyboard.type("unargmaxable")
    tab.keyboard.press("Enter")
    tab.locator("#search-results li a").first.wait_for()
    assert tab.locator("#search-results li").count() > 1


@pytest.mark.parametrize("name", NAMES)
def test_explorers_live_inside_the_report(open_page, drag, screenshot, name):
    tab = open_page(f"explorers/{name}")
    frame = tab.frame_locator("iframe.explorer")
    live = frame.locator('[aria-live="polite"]').first
    live.wait_for()
    before = (live.inner_text(), frame.locator(".sg-detail").inner_text())
    handle = frame.locator(".sg-handle").first
    drag(tab, handle.locator(".sg-mark"), 10, -150)
    dragged = handle.get_attribute("aria-label")
    assert (live.inner_text(), frame.locator(".sg-detail").inner_text()) != before
    tab.keyboard.press("ArrowLeft")  # the point that was dragged has the keyboard's focus
    assert handle.get_attribute("aria-label") != dragged
    inner = frame.locator("main").evaluate("(element) => element.getBoundingClientRect().height")
    # no bar of its own to scroll
    assert abs(tab.locator("iframe.explorer").bounding_box()["height"] - inner) < 4
    screenshot(tab, f"report_explorer_{name}")


def test_the_theme_switch_reaches_explorers_and_pictures(open_page, screenshot):
    tab = open_page("explorers/softmax", color_scheme="dark")
    tab.frame_locator("iframe.explorer").locator("html[data-theme='dark']").wait_for()
    tab.get_by_role("button", name="Color mode").click()
    tab.get_by_role("button", name="Light").click()
    tab.frame_locator("iframe.explorer").locator("html[data-theme='light']").wait_for()
    tab = open_page("index", color_scheme="dark")
    assert tab.locator("html").get_attribute("data-theme") == "dark"
    picture = tab.locator("article img").first
    # drawn on white, shown dark
    assert "invert" in picture.evaluate("(image) => getComputedStyle(image).filter")
    screenshot(tab, "report_front_dark")


def test_a_figure_is_enlarged_by_click_and_by_keyboard(open_page, screenshot, phone):
    tab = open_page("answers", **phone)
    picture = tab.locator("article img").first
    large = tab.locator("dialog.enlarged img")
    picture.click()
    assert large.bounding_box()["width"] >= 1100  # it scrolls
    assert _width(tab) <= phone["viewport"]["width"]
    screenshot(tab.locator("dialog.enlarged"), "report_enlarged")
    tab.keyboard.press("Escape")
    assert not large.is_visible()
    tab.locator("button.enlarge").nth(1).focus()
    tab.keyboard.press("Enter")
    assert large.get_attribute("alt") == tab.locator("article img").nth(1).get_attribute("alt")
    tab.get_by_role("button", name="Close").click()
    assert not large.is_visible()


def test_a_layer_is_scanned_inside_the_site(open_page, screenshot):
    tab = open_page("index")
    tab.locator("article").get_by_role("link", name="Scan yours", exact=True).click()
    frame = tab.frame_locator("iframe.explorer")
    frame.get_by_role("button", name="Try it").click()
    frame.get_by_role("button", name="Scan", exact=True).click()
    frame.locator("#found").wait_for()
    assert "1 of 4 classes can never be" in frame.locator("#headline").inner_text()
    inner = frame.locator("main").evaluate("(element) => element.getBoundingClientRect().height")
    tab.wait_for_timeout(300)
    assert abs(tab.locator("iframe.explorer").bounding_box()["height"] - inner) < 4
    screenshot(tab, "report_scan")


def test_every_page_fits_a_phone_and_makes_no_request(site, open_page, screenshot, phone):
    """One page of each kind is photographed; all are opened: the tab's errors and requests are
    checked when the test ends.
    """
    tab = open_page("index", **phone)
    shown = {"index", "claims", "comparisons", "lessons/2_who_can_win"}
    for page in sorted(site.rglob("*.html")):
        name = page.relative_to(site).with_suffix("").as_posix()
        if name.startswith("_static/"):
            continue
        tab.goto(page.as_uri(), wait_until="domcontentloaded")
        assert _width(tab) <= phone["viewport"]["width"], f"{name} is wider than a phone"
        if name in shown:
            screenshot(tab, f"report_phone_{name.replace('/', '_')}")


MAIN = "index claims notebooks/20_scalar_margins lessons/TEACHING lessons/2_who_can_win".split()
ALONE = "story scan 2_who_can_win 3_where_attention_folds explorers/hardmax".split()
AXE = """axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'], iframes: false,
  preload: false }).then(({ violations }) => violations.map(({ id, nodes }) =>
  [id, ...nodes.map(({ html }) => html)]))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [*MAIN, *(f"_static/{page}" for page in ALONE)])
def test_axe_finds_nothing(site, open_tab, name, scheme):
    axe = site.parent / "npm" / "node_modules" / "axe-core" / "axe.min.js"
    if not axe.is_file():
        pytest.skip("axe-core is not here: npm ci could not fetch it")
    # only the policy of our own pages forbids what the test adds
    tab = open_tab((site / f"{name}.html").as_uri(), color_scheme=scheme, bypass_csp=True)
    tab.wait_for_timeout(300)
    tab.evaluate(axe.read_text(encoding="utf-8"))
    assert tab.evaluate(AXE) == []
