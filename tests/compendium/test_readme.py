"""README rendering: numbers come from records, and unknown names are errors."""

from __future__ import annotations

import pandas as pd
import pytest

from compendium import book, readme, style


@pytest.fixture
def recorded(compendium, write_notebook):
    write_notebook("10_demo", 'profile: str = "lab"')
    run = book.open_book("10_demo", {"profile": "default"})
    run.value("count", 12345.678)
    run.table("pairs", pd.DataFrame({"a": [1], "b": ["x|y"], "c": [0.123456]}))
    run.claim("001-one", source="001, Table 1", statement="One holds.", verdict="corrected", reason="Almost.")
    run.claim("001-two", source="001, Table 2", statement="Two holds.", verdict="reproduced", reason="By counting.")
    run.figure("pairs", style.figure("column")[0], caption="Pairs.", alt="An empty plane.")
    run.save()


def test_values_tables_and_claims_are_filled_in(recorded):
    text = (
        "n = <!-- value: 10_demo/count | ,.0f -->old<!-- /value -->.\n"
        "<!-- table: 10_demo/pairs | a, b -->\nold\n<!-- /table -->\n<!-- claims: 001 --><!-- /claims -->"
    )
    fresh = readme.render(text)
    assert "n = <!-- value: 10_demo/count | ,.0f -->12,346<!-- /value -->." in fresh
    assert "| a | b |\n| --- | --- |\n| 1 | x\\|y |" in fresh
    links = "[10_demo](notebooks/10_demo.ipynb), figures [1](figures/default/10_demo-pairs.png)"
    assert f"| {links} | 001, Table 1: One holds. | **corrected**: Almost. |" in fresh
    assert "|  | 001, Table 2: Two holds. | **reproduced** |" in fresh
    assert readme.render(fresh) == fresh


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("<!-- value: 10_demo/cuont -->1<!-- /value -->", "10_demo recorded count"),
        ("<!-- value: 11_gone/count -->1<!-- /value -->", "11_gone, which has no committed results"),
        ("<!-- table: 10_demo/none -->1<!-- /table -->", "the table 10_demo/none"),
    ],
)
def test_names_that_were_never_recorded_are_errors(recorded, marker, message):
    with pytest.raises(KeyError, match=message):
        readme.render(marker)
