"""The card of a scan, opened from its folder as somebody would who was sent it: light, dark, on a
phone.
"""

from __future__ import annotations

import numpy as np
import pytest

from softgeom.bottleneck.examples import uniform_layer
from softgeom.cli import main

pytestmark = pytest.mark.browser

TOKENS = ["<script>alert(1)</script>", "日", "Ж", "ẞ", "=1+1", "\u202e", "a" * 200, ""]
CONTRAST = """() => {
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).map((v) => linear(Number(v) / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const card = document.querySelector(".softgeom-card");
  const paper = light(getComputedStyle(card).backgroundColor);
  return [...card.querySelectorAll("h1, p, td, th, svg text")].map((element) => {
    const style = getComputedStyle(element);
    const ink = light(element.closest("svg") ? style.fill : style.color);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  });
}"""


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    """The address of a card with unargmaxable classes and unfriendly names."""
    folder = tmp_path_factory.mktemp("scan")
    layer = uniform_layer(80, 2)
    tokens = [*TOKENS, *(f"token {n}" for n in range(80 - len(TOKENS)))]
    np.savez(folder / "model.npz", W=layer.W, b=layer.bias, tokens=np.array(tokens))
    assert main(["scan", str(folder / "model.npz"), "--out", str(folder / "out"), "--quiet"]) == 0
    return (folder / "out" / "card.html").as_uri()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_card_can_be_read_in_both_themes(card, open_tab, screenshot, theme):
    tab = open_tab(card, color_scheme=theme)
    assert "outputs can never be the answer, each proven." in tab.locator("p b").first.inner_text()
    assert tab.locator("svg rect").count() > 10
    ratios = tab.evaluate(CONTRAST)
    assert min(ratios) >= 4.5
    assert tab.evaluate(
        "getComputedStyle(document.documentElement).backgroundColor"
    ) == tab.evaluate("getComputedStyle(document.querySelector('.softgeom-card')).backgroundColor")
    screenshot(tab, f"card_{theme}")


def test_the_card_fits_a_phone(card, open_tab, screenshot):
    tab = open_tab(card, viewport={"width": 375, "height": 800}, is_mobile=True)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 375
    screenshot(tab, "card_phone")
