"""The card of a scan, opened from its folder: names that could do harm, a phone in the dark."""

import numpy as np
import pytest

from softgeom.cli import main
from softgeom.examples import uniform_layer

pytestmark = pytest.mark.browser

TOKENS = ["<script>alert(1)</script>", "日", "Ж", "ẞ", "=1+1", "\u202e", "a" * 200, ""]


def test_a_card_with_unfriendly_names_fits_a_phone(tmp_path, open_tab, phone):
    layer = uniform_layer(80, 2)
    tokens = [*TOKENS, *(f"token {n}" for n in range(80 - len(TOKENS)))]
    np.savez(tmp_path / "model.npz", W=layer.W, b=layer.bias, tokens=np.array(tokens))
    folder = tmp_path / "out"
    assert main(["scan", str(tmp_path / "model.npz"), "--out", str(folder), "--quiet"]) == 0
    tab = open_tab((folder / "card.html").as_uri(), **phone, color_scheme="dark")
    assert "outputs can never be the answer, each proven." in tab.locator("p b").first.inner_text()
    assert tab.locator("svg rect").count() > 10
    assert tab.locator("script", has_text="alert(1)").count() == 0
    assert tab.evaluate("document.documentElement.scrollWidth") <= phone["viewport"]["width"]
