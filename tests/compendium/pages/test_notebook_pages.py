"""A notebook's page: each result below the prose of the cell that makes it, links that lead on."""

import json

import pytest

from compendium import runs
from compendium.pages import notebook_pages

TABLE = "x,loss\n" + "".join(f"{n},{n / 7}\n" for n in range(16))
CELLS = [
    (
        "markdown",
        "# A *demo*\n\nSee [the data](00_data.ipynb#x), [code](../lib/a.py), [web](https://e.org).",
    ),
    ("code", "import numpy"),
    ("code", 'x = 1\nbook.figure(f"li{x}", fig)\nbook.table(name, frame)'),
    ("markdown", "## Next"),
    ("code", 'display(book.table("t", f)); book.claim("001-b", gain=1)'),
    ("code", 'book.conclude("done")'),
    ("markdown", "The end."),
]


@pytest.fixture
def page(compendium, register, claim, record):
    """The page of `10_demo`, whose second table has a computed name and whose last claim none."""
    register(claim("001-a"), claim("001-b"))
    cells = [{"cell_type": kind, "source": text} for kind, text in CELLS]
    (compendium / "notebooks" / "10_demo.ipynb").write_text(json.dumps({"cells": cells}))
    ran = {
        "figures": {"line": {"caption": "A line.", "alt": "a\nline"}},
        "conclusion": "It *ends*.",
    }
    ran["tables"] = {"t": "A <table>", "u": "Another"}
    ran["values"] = {"n": {"value": 1234.5, "about": "how many", "low": 1.0, "high": 2.25}}
    folder = record(content=ran, a=1, b=-1)
    for name in "tu":
        (folder / f"{name}.csv").write_text(TABLE)
    return lambda **how: notebook_pages.page(runs.committed("10_demo"), **how)


def test_results_stand_where_they_are_made(page):
    text = page()
    order = [
        "# A *demo*",
        "*Profile default. Data: none.* [Notebook](../../notebooks/10_demo.ipynb)",
        "![a line](../../figures/default/10_demo-line.png)\n\n*A line.*",
        "**Table.** Another (",
        "## Next",
        "**Table.** A &lt;table&gt; (the first 8 of 16 rows, "
        "[all as CSV](../../results/default/10_demo/t.csv))\n\n"
        "| x | loss (nats) |\n| ---: | ---: |\n| 0 | 0 |\n| 1 | 0.143 |",
        "001, Section b, `001-b`\n\n- *Stated.* What 001-b says.\n- *Found.* -1.00 nats",
        "## What we see\n\nIt *ends*.",
        "The end.",
        "`001-a`",
        "| how many | 1,234 | 1 to 2.25 |",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "| 8 |" not in text
    assert "book." not in text
    links = "[the data](00_data.md#x), [code](../../lib/a.py), [web](https://e.org)"
    assert links in text


def test_the_site_folds_the_code_in_before_what_it_makes(page):
    text = page(code=True)
    folded = "<details><summary>Code</summary>\n\n```python\nimport numpy\n\n\nx = 1\n"
    assert text.index(folded) < text.index("![a line]")
    assert "book.conclude" in text


def test_the_index_counts_verdicts(page):
    text = notebook_pages.pages()["docs/notebooks/README.md"]
    row = text.splitlines()[-1]
    assert row.startswith("| [A \\*demo\\*](10_demo.md) | default | 1 ")
