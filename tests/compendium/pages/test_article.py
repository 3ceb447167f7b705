"""The explorable article: one small file that asks for nothing, tells nothing before a guess, and
takes its numbers from the records.
"""

from __future__ import annotations

import re

import pytest

from compendium import findings
from compendium.pages import article


@pytest.fixture(scope="module")
def found():
    return findings.of_run("default")[0]


@pytest.fixture(scope="module")
def text(found):
    return article.page(found, "default")


def test_it_is_one_small_file_that_asks_for_nothing(text):
    assert len(text.encode()) < 2_000_000
    assert "://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "src=" not in text.replace("srcdoc", "")


def test_every_answer_waits_for_a_guess(text, found):
    asked = [step for _, steps in article.sections(found, "default").values() for step in steps]
    assert text.count('class="tells" hidden') == text.count('<form class="step"') == len(asked) >= 7
    outside = re.sub(r'<div class="tells" hidden>.*?</div>\n</form>', "", text, flags=re.DOTALL)
    outside = re.sub(r'data-answer="[^"]*"', "", outside)
    for step in asked:
        assert step.tells not in outside
        if not step.options:
            assert not re.search(rf"\b{re.escape(step.answer)}\b", step.ask)


def test_without_results_it_says_so():
    assert "one is missing: 001-figure-&lt;1&gt;" in article.unavailable("001-figure-<1>")


def test_numbers_and_verdicts_are_the_records_own(text, found):
    evidence = {f.claim.id: f.judgement.evidence for f in found}
    verdicts = {f.claim.id: f.verdict for f in found}
    asked = [step for _, steps in article.sections(found, "default").values() for step in steps]
    assert str(evidence["001-section-4-ppocr"]["imprisoned"]) in {step.answer for step in asked}
    for step in asked:
        assert not step.options or step.answer in step.options
        assert step.claim in verdicts, step.claim
        assert f"{step.claim}: <b>{verdicts[step.claim]}</b>" in text
