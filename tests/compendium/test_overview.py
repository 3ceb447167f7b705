"""The four sources together: the map's sentences take their numbers from the evidence."""

from __future__ import annotations

import pytest

from compendium import findings, overview
from compendium.drawing.four_places import draw_map


@pytest.fixture(scope="module")
def found():
    return findings.of_run("default")[0]


def _texts(fig) -> str:
    return " ".join(text.get_text() for text in fig.findobj(lambda a: hasattr(a, "get_text")))


def test_the_map_says_what_the_records_say(found):
    said = overview.sentences(found, "default")
    assert list(said) == ["001", "002", "003", "004"]
    evidence = {f.claim.id: f.judgement.evidence for f in found}
    assert f"{evidence['001-section-4-ppocr']['imprisoned']:,} of" in said["001"]
    assert f"{evidence['004-leaders-explain']['kept']:.0%}" in said["004"]
    text = " ".join(_texts(draw_map(said)).split())
    assert all(sentence in text for sentence in said.values())


def test_without_all_evidence_nothing_is_drawn(found):
    assert overview.complete(found)
    for id in ("002-ov-circuit", "004-leaders-explain"):
        assert not overview.complete([f for f in found if f.claim.id != id])
