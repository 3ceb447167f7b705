"""The pages of the papers, and the links of all pages."""

import json
import re

import pytest
import yaml

from compendium import claims, paths, runs
from compendium.pages import gallery, readme

STATEMENT = "For all a < b | c the *map* folds"
FIGURES = {
    "hull": {"caption": "A hull.", "alt": "A triangle\nwith [a] point."},
    "line": {"caption": "A line.", "alt": "a line"},
}
TABLE = "x,y\n" + "".join(f"{n},{n}\n" for n in range(14))


@pytest.fixture
def shown(compendium, register, claim, record):
    """`10_demo` with two figures, a table of 14 rows, and five claims."""
    path = compendium / "notebooks" / "10_demo.ipynb"
    notebook = json.loads(path.read_text())
    title = {"cell_type": "markdown", "metadata": {}, "source": ["# Fold_the map.\n", "text"]}
    path.write_text(json.dumps(notebook | {"cells": [title, *notebook["cells"]]}))
    folding = (claim("001-a", root="fold"), claim("001-b", root="fold"))
    others = (
        claim("001-c", statement=STATEMENT),
        claim("001-o", "ours"),
        claim("001-d", title="It < folds"),
    )
    register(*folding, *others)
    ran = {"figures": FIGURES, "tables": {"t": "A table"}, "parameters": {"n": 3}, "device": "cpu"}
    (record(content=ran, a=1, b=1, c=1, o=-1) / "t.csv").write_text(TABLE)
    return runs.committed("10_demo")


def test_the_first_view_says_causes_once_and_what_does_not_hold(shown):
    front = gallery.pages()["docs/papers/README.md"]
    assert "| Theorems and formulas | 0 | 3 | 0 |" in front
    assert "| Our own questions | 1 | 0 | 0 |" in front
    assert (
        "- **It folds.** 2 rows: [001, Section a](001.md#001-a) **not confirmed**, [001," in front
    )
    below = front.partition("## What is not confirmed")[2].partition("## Pages")[0]
    assert re.findall(r"001\.md#001-\w+", below) == ["001.md#001-c"]
    assert 'href="001.md#10_demo"><img src="../../figures/default/10_demo-hull.png"' in front


def test_a_page_shows_figures_and_claims_that_unfold(shown):
    page = gallery.pages()["docs/papers/001.md"]
    entries = dict(re.findall(r'(?s)<details id="001-(\w)"(.*?)</details>', page))
    summary, *told = entries["c"].splitlines()
    for words, place in (
        ("<summary><b>not confirmed</b> · Section c: Title of 001-c.</summary>", summary),
        ("## [Fold\\_the map](../notebooks/10_demo.md)", page),
        ("![A triangle with (a) point.](../../figures/default/10_demo-hull.png)", page),
        ("- *Stated.* For all a &lt; b \\| c the \\*map\\* folds", told),
        ("- *Found.* **not confirmed**: +1.00 nats (run: 10_demo, profile default)", told),
        ("- *Rule.* confirmed when `gain < 0`; else not confirmed. zero is no gain", told),
        ("<b>no result committed</b> · Section d: It &lt; folds.</summary>", entries["d"]),
    ):
        assert words in place
    assert page.index("001-o") > page.index("**Our own questions**") > page.index("001-d")


def test_a_page_says_where_each_figure_of_the_paper_is_made(shown, compendium):
    path = compendium / "data" / "reference" / "coverage.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    row = "{place: Section c, about: a hull, notebook: 10_demo, shows: [hull], status: made}"
    path.write_text(
        f'"001":\n  - {row}\n  - {{place: Table 4, about: x, status: not yet, why: w}}\n'
    )
    page = gallery.pages()["docs/papers/001.md"]
    assert "2 parts of the source: 1 shown, 1 not shown yet." in page
    assert '| Section c | [a hull](#10_demo) | <a href="#10_demo"><img ' in page
    assert "| shown | [not confirmed](#001-c) |" in page
    assert "| Table 4 | x |  | not shown yet: w |  |" in page


def test_the_coverage_names_what_is_recorded(repository):
    rows = yaml.safe_load((repository / "data/reference/coverage.yaml").read_text("utf-8"))
    recorded = {
        run.name: {*run.record["figures"], *run.record["tables"]} for run in runs.all_committed()
    }
    odd = [
        f"{paper} {row['place']}: {key}"
        for paper, found in rows.items()
        for row in found
        for key in row.get("shows", [])
        if key not in recorded[row["notebook"]]
    ]
    assert odd == []
    keys = {"place", "about", "notebook", "shows", "claims", "status", "why"}
    assert all(set(row) <= keys for found in rows.values() for row in found)
    places = " ".join(row["place"] for row in rows["001"]) + " Tables 4, 5, 6, 7, 8"
    for label in [*(f"Figure {n}" for n in range(1, 13)), *(f"Table {n}" for n in (1, 2, 3, 9))]:
        assert re.search(rf"{label}\b", places), label


def test_what_the_records_do_not_show_is_stale_and_written_anew(shown, compendium):
    (compendium / "README.md").write_text("# no marker\n")
    readme.write()
    assert readme.stale() == []
    old = compendium / "docs" / "papers" / "009.md"
    verdicts = compendium / "results" / "default" / "verdicts.csv"
    old.write_text("old")
    verdicts.write_text("id,verdict,finding\n")
    assert readme.stale() == ["docs/papers/009.md", "results/default/verdicts.csv"]
    readme.write()
    assert not old.exists()
    assert "001-c,not confirmed,+1.00 nats" in verdicts.read_text()


def test_links_of_the_committed_pages_lead_somewhere(repository):
    """Files and anchors, in the README and on the pages: what a reader can click."""
    pages = [repository / "README.md"]
    for folder in ("docs", "docs/papers", "docs/notebooks", "scanner/docs"):
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


def test_each_claim_of_a_paper_has_a_place_on_its_page():
    register = claims.load()
    path = paths.root() / "data" / "reference" / "coverage.yaml"
    coverage = yaml.safe_load(path.read_text(encoding="utf-8"))
    for claim in (claim for claim in register.values() if claim.kind != "ours"):
        assert any(gallery.belongs(claim, row) for row in coverage[claim.paper]), claim.id
    for row in (row for rows in coverage.values() for row in rows):
        assert set(row.get("claims", ())) <= set(register), row["place"]
        assert row["status"] in ("made", "other data", "not yet", "cannot")
        assert row["status"] in ("made", "not yet") or row.get("why"), row["place"]
