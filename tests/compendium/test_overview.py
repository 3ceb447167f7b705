"""The four sources together: the map's sentences take their numbers from the evidence, a plate
wears the verdict of its claim.
"""

from __future__ import annotations

import pandas as pd
import pytest

from compendium import findings, overview
from compendium.drawing.four_places import draw_map, draw_plates


@pytest.fixture(scope="module")
def found():
    return findings.of_run("default")[0]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


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


def test_plates_hold_printed_numbers_beside_ours(found):
    plates = overview.beside_the_sources(found, "default")
    assert (plates["regions"]["printed"] == plates["regions"]["ours"]).all()
    assert all(literal > 0.5 and read < 1e-12 for literal, read in plates["formulas"].values())
    strongest = plates["degradation"].iloc[-1]
    assert strongest["printed"] == pytest.approx(364.92 / 775.81)  # 003, Appendix E.1, level 5
    text = _texts(draw_plates(**plates))
    assert all(stamp in text for stamp in plates["verdicts"].values())


def test_without_all_evidence_nothing_is_drawn(found):
    assert overview.complete(found)
    for id in ("002-ov-circuit", "004-leaders-explain"):
        assert not overview.complete([f for f in found if f.claim.id != id])


def test_relief_is_the_penalty_s_ratio_over_the_other():
    ratios = pd.DataFrame(
        {
            "family": ["noise", "noise", "drift"],
            "level": [1, 1, 1],
            "penalty_weight": [0.0, 0.05, 0.0],
            "median_ratio": [4.0, 3.0, 9.0],
        }
    )
    assert overview._relief(ratios).to_dict() == {1: 0.75}
