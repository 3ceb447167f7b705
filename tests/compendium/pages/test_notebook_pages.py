"""A notebook's page: every recorded result below the cell that makes it."""

import pytest

from compendium import runs
from compendium.pages import notebook_pages

FIGURES = {
    "hull": {"caption": "A hull.", "alt": "a triangle\nwith a point"},
    "line": {"caption": "A line.", "alt": "a line"},
}


def _code(source: str) -> dict:
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": []}


@pytest.fixture
def shown(compendium, register, claim, record):
    """`10_demo` with two recorded figures, a table of 14 rows, and a claim that fails."""
    register(claim("001-b"))
    ran = {"figures": FIGURES, "tables": {"t": "A table"}, "parameters": {"n": 3}, "device": "cpu"}
    record("default", content=ran, b=1)
    rows = "\n".join(f"{n},{n}" for n in range(14))
    (compendium / "results" / "default" / "10_demo" / "t.csv").write_text(f"x,y\n{rows}\n")
    return runs.committed("10_demo")


def test_results_stand_below_the_cells_that_make_them(shown):
    code = "x", 'book.figure("line", fig)', 'book.table("t", f)\nbook.claim("001-b", b=1)', "y"
    cells = notebook_pages.with_results(list(map(_code, code)), shown)
    assert [c["source"] if c["cell_type"] == "code" else c["id"] for c in cells] == [
        code[0], code[1], "figure-line", code[2], "table-t", "claim-001-b", code[3], "figure-hull",
    ]  # fmt: skip
    directive, alt, *caption = cells[-1]["source"].splitlines()
    assert directive == "```{figure} ../figures/default/10_demo-hull.png"
    assert (alt, caption) == (":alt: a triangle with a point", ["", "A hull.", "```"])
    link = "[t.csv](../results/default/10_demo/t.csv)"
    table = cells[4]["source"]
    assert table.startswith(f"*A table* (the first 12 of 14 rows, {link})\n\n| x | y |")
    assert "| 11 | 11 |" in table
    assert "| 12 | 12 |" not in table
    assert '<details id="001-b"' in cells[5]["source"]
    assert "**fails**" in cells[5]["source"]


def test_a_page_folds_long_code_and_ends_with_its_provenance(shown, write_notebook):
    write_notebook("10_demo", "n = 1", "x\n" * 9)
    cells = notebook_pages.page("10_demo")["cells"]
    folded = ["hide-input" in c["metadata"].get("tags", []) for c in cells if "x\n" in c["source"]]
    assert folded == [True]
    told = "Profile `default`, on cpu. Data: none. Parameters: `n` = 3."
    assert told in cells[-1]["source"]
