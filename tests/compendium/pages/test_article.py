"""The story: one small file that asks for nothing, its numbers those of the records."""

import html
import re

import pytest

from compendium import paths
from compendium.pages import article
from compendium.runs import committed


@pytest.fixture(scope="module")
def text():
    return article.page()


def test_it_is_one_small_file_whose_steps_have_figures_and_sources(text):
    assert len(text.encode()) < 400_000
    assert not re.search(r'\b(?:src|action|data)="|url\(|@import|fetch\(', text)
    assert "{{" not in text
    steps = re.findall(r'<div class="step".*?(?=<div class="step"|</section>)', text, re.DOTALL)
    assert len(steps) >= 8
    for step in steps:
        assert step.count("<svg") == 1
        sources = re.findall(r'href="docs/notebooks/([\w]+)\.html"', step)
        assert sources
        assert all(paths.notebook(name).is_file() for name in sources)


def test_the_wall_holds_every_sign_of_the_list_once_and_lights_the_lost(text):
    values = committed(article.VOCABULARY).record["values"]
    found = article.signs()
    assert len({s.text for s in found}) == len(found) == values["outputs_ppocr-v6"]["value"]
    assert sum(s.lost for s in found) == values["unreachable_ppocr-v6"]["value"]
    wall = text[text.index('<div id="signs"') : text.index('<p id="told"')]
    drawn = html.unescape("".join(re.findall(r'<p data-script="[^"]*">(.*?)</p>', wall)))
    seen = [(article._SEEN.get(s.text, s.text), s.lost) for s in found]
    lit = "".join(re.findall(r"<b>(.*?)</b>", drawn))
    assert sorted(lit) == sorted("".join(s for s, lost in seen if lost))
    assert sorted(re.sub("</?b>", "", drawn)) == sorted("".join(s for s, _ in seen))


def test_no_number_of_a_result_is_typed_into_the_words():
    words = (paths.root() / "docs" / "site" / "story" / "story.html").read_text(encoding="utf-8")
    plain = re.sub(r"\{[{%#].*?[}%#]\}|<svg.*?</svg>|<[^>]*>", "", words, flags=re.DOTALL)
    allowed = {"1", "2", "4", "5", "100", "2020", "2022", "1,000"}
    assert set(re.findall(r"\d[\d,.]*\d|\d", plain)) <= allowed
