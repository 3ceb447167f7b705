"""The gallery: figures, claims that unfold, causes first, every link leading somewhere."""

import json
import re

import pytest

from compendium.pages import gallery, rendered

STATEMENT = "For all a < b | c the *map* folds; " + "and so on " * 20


@pytest.fixture
def pages(compendium, register, claim, record):
    path = compendium / "notebooks" / "10_demo.ipynb"
    notebook = json.loads(path.read_text())
    title = {"cell_type": "markdown", "metadata": {}, "source": ["# Fold_the map.\n", "text"]}
    path.write_text(json.dumps(notebook | {"cells": [title, *notebook["cells"]]}))
    folding = (claim("001-a", root="fold"), claim("001-b", root="fold"))
    others = (claim("001-c", statement=STATEMENT), claim("001-o", "ours"), claim("001-d"))
    register(*folding, *others)
    figures = {"hull": {"caption": "A hull.", "alt": "A triangle\nwith [a] point."}}
    record(content={"figures": figures}, a=1, b=1, c=1, o=-1)
    return gallery.pages()


def test_the_first_view_says_causes_once_and_what_does_not_hold(pages):
    front = pages["docs/gallery/README.md"]
    assert "| Theorems and formulas | **2** fails | 3 |" in front
    assert "| Our own questions | **1** found | 1 |" in front
    assert "- **It folds.** 2 rows: [001, Section a](001.md#001-a) **fails**, [001," in front
    below = front.partition("## What does not hold")[2].partition("## Pages")[0]
    assert re.findall(r"001\.md#001-\w+", below) == ["001.md#001-c"]
    assert 'href="001.md#10_demo"><img src="../../figures/default/10_demo-hull.png"' in front


def test_a_page_shows_figures_and_claims_that_unfold(pages):
    page = pages["docs/gallery/001.md"]
    entries = dict(re.findall(r'(?s)<details id="001-(\w)"(.*?)</details>', page))
    summary, *told = entries["c"].splitlines()
    assert "<summary><b>fails</b> · Section c: For all a &lt; b | c the *map* folds;" in summary
    assert "</summary>" in summary
    assert len(summary) < 320
    for words, place in (
        ("## [Fold\\_the map](../../notebooks/10_demo.ipynb)", page),
        ("![A triangle with (a) point.](../../figures/default/10_demo-hull.png)", page),
        ("- *Stated.* For all a &lt; b \\| c the \\*map\\* folds;", "\n".join(told)),
        ("- *Found.* **fails**: +1.00 nats (profile default)", told),
        ("- *Rule.* holds when `gain < 0`; else fails. zero is no gain", told),
        ("<b>no result committed</b>", entries["d"]),
    ):
        assert words in place
    assert page.index("001-o") > page.index("**Our own questions**") > page.index("001-d")


def test_a_page_that_is_none_any_more_goes(pages, compendium):
    (compendium / "README.md").write_text("# no marker\n")
    rendered.write()
    assert rendered.stale() == []
    old = compendium / "docs" / "gallery" / "009.md"
    verdicts = compendium / "results" / "default" / "verdicts.csv"
    old.write_text("old")
    verdicts.write_text("id,verdict,finding\n")
    assert rendered.stale() == ["docs/gallery/009.md", "results/default/verdicts.csv"]
    rendered.write()
    assert not old.exists()
    assert "001-c,fails,+1.00 nats" in verdicts.read_text()


def test_links_of_the_committed_pages_lead_somewhere(repository):
    """Files and anchors, in the README and on the pages: what a reader can click."""
    pages = [repository / "README.md"]
    for folder in ("docs", "docs/gallery", "scanner/docs"):
        pages += sorted((repository / folder).glob("*.md"))
    texts = {page.resolve(): page.read_text(encoding="utf-8") for page in pages}
    dead = []
    for page, text in texts.items():
        for link in re.findall(r"(?:\]\(|(?:src|href)=\")(?![a-z]+:)([^)\s\"]+)", text):
            address, _, anchor = link.partition("#")
            target = (page.parent / address).resolve() if address else page
            if not target.exists():
                dead.append(f"{page.name}: {address}")
            elif anchor and target in texts and anchor not in _anchors(texts[target]):
                dead.append(f"{page.name}: {address}#{anchor}")
    assert dead == []


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'id="([^"]+)"', text))
