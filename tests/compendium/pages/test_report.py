"""The report's sources: figures in their places, registers that say what was found."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from compendium import __main__ as command_line
from compendium import runs
from compendium.check import Comparison
from compendium.pages import api_pages, notebook_pages, readme, registers, report
from softgeom.commands import boundary

PICTURE = {"output_type": "display_data", "data": {"image/png": ""}, "metadata": {}}
TEXT = {"output_type": "stream", "name": "stdout", "text": "a line"}


def _code(source: str, *outputs: dict, tags: tuple[str, ...] = ()) -> dict:
    cell = {"cell_type": "code", "metadata": {"tags": list(tags)}}
    return cell | {"source": source, "outputs": list(outputs)}


FIGURES = {
    "hull": {"caption": "A hull.", "alt": "a triangle\nwith a point"},
    "line": {"caption": "A line.", "alt": "a line"},
}
IMAGE = "../_images/10_demo-hull.png"


@pytest.fixture
def shown(register, claim, record):
    """`10_demo` with two recorded figures and two claims, one of which fails."""
    register(*(claim(f"001-{key}") for key in "abc"))
    ran = {"figures": FIGURES, "tables": {"t": "a table"}, "parameters": {"n": 3}, "device": "cpu"}
    record("smoke", content=ran, a=-1, b=1)
    return runs.all_last("smoke")


def test_a_missing_notebook_is_named_with_the_command_that_makes_it(
    compendium, write_notebook, capsys
):
    (compendium / "report").mkdir()
    write_notebook("10_demo", 'profile: str = "default"')
    assert command_line.main(["report", "--profile", "smoke"]) == boundary.NO_FILE
    message = capsys.readouterr().err
    assert "executed/smoke/10_demo.ipynb is missing: run `make 10_demo PROFILE=smoke`" in message


def test_recorded_figures_take_the_places_of_the_pictures_in_order(shown):
    cells = [_code("a", dict(PICTURE), TEXT), _code("b"), _code("c", dict(PICTURE))]
    cells = notebook_pages.with_drawn_figures(cells, shown[0])
    assert [cell["cell_type"] for cell in cells] == ["code", "markdown", "code", "code", "markdown"]
    assert cells[0]["outputs"] == [TEXT]
    directive, alt, target, *caption = cells[1]["source"].splitlines()
    assert directive == "```{figure} ../figures/smoke/10_demo-hull.png"
    assert (alt, target) == (":alt: a triangle with a point", f":target: {IMAGE}")
    assert caption == ["", "A hull.", "```"]
    assert "10_demo-line.png" in cells[4]["source"]


def test_without_execution_figures_stand_below_the_cells_that_record_them(shown):
    code = "x", 'book.figure("line", fig, caption="")', "for k in z:\n    book.figure(k, f)"
    cells = notebook_pages.with_recorded_figures(list(map(_code, code)), shown[0])
    assert [cell["cell_type"] for cell in cells] == ["code", "code", "markdown", "code", "markdown"]
    assert "10_demo-line.png" in cells[2]["source"]
    assert "10_demo-hull.png" in cells[4]["source"]


def test_another_number_of_figures_than_was_recorded_is_refused(shown):
    with pytest.raises(ValueError, match="have not the same figures: run `make 10_demo`"):
        notebook_pages.with_drawn_figures([_code("a", dict(PICTURE))], shown[0])


def test_readers_see_the_parameters_that_ran_and_long_code_folded():
    given, ran = _code("n = 1", tags=("parameters",)), _code("n = 2", tags=("injected-parameters",))
    kept = notebook_pages.read_on([given, ran, _code("x\n" * 9), _code("x")])
    assert [cell["source"] for cell in kept] == ["n = 2", "x\n" * 9, "x"]
    assert ["hide-input" in cell["metadata"]["tags"] for cell in kept] == [False, True, False]


README = """# Title

<!-- value: a/b -->7<!-- /value --> [start](notebooks/start.ipynb)

## See it in a minute

run

## Four questions

see [data](data/README.md), [teaching](notebooks/lessons/TEACHING.md), [web](https://x.org),
[row](docs/gallery/003.md#003-a), [book](docs/gallery/003.md#60_placebo),
![a [b] c](figures/default/a.png)

minutes [cite](CITATION.cff)

[Data](data/README.md) · [map](docs/map.md) · [rights](docs/reproducing.md#licences) · [x](CITATION)
"""


def test_the_readme_becomes_two_pages_and_leads_nowhere_outside():
    front, running = report.split_readme(README, "# Reproducing\n\n[data](../data/README.md)\n")
    assert front.startswith("# Title\n\n7 start\n")
    for link in (
        "see [data](data.md), [teaching](lessons/TEACHING.md), [web](https://x.org)",
        '<a href="claims.html#003-a">row</a>, <a href="notebooks/60_placebo.html">book</a>',
        "![a [b] c](figures/default/a.png)",
    ):
        assert link in front
    assert front.endswith("\n[Data](data.md) · [rights](running.md#licences)\n")
    assert '<iframe class="explorer"' in front.partition("## Four questions")[0]
    assert front.rstrip().count("minutes cite") == 1
    assert " ".join(running.split()) == "# Running it ## See it in a minute run [data](data.md)"


def test_each_claim_unfolds_to_notebook_figures_and_numbers(shown):
    page = registers.claims_page(shown)
    assert "| Theorems and formulas | **1** holds, **1** fails | 2 |" in page
    rows = dict(re.findall(r'(?s)<details id="001-(\w)"(.*?)</details>', page))
    for part in (
        'data-paper="001" data-kind="theorem" data-verdict="fails"',
        "[10_demo](notebooks/10_demo.ipynb)",
        '<a href="_images/10_demo-line.png">2</a>',
        '<a href="results/smoke/10_demo/record.json">numbers</a>',
    ):
        assert part in rows["b"]
    assert 'data-verdict="no result committed"' in rows["c"]


def test_corrections_leave_out_what_holds(shown):
    page = registers.corrections_page(shown)
    told = '<a href="claims.html#001-b">001, Section b</a> **fails**: What 001-b says. *+1.00 nats*'
    assert told in page
    assert "Section a" not in page


def test_provenance_names_every_file(shown):
    page = registers.provenance_page(shown)
    assert "Profile `smoke`, on cpu. Data: none. Parameters: `n` = 3." in page
    assert '<a href="results/smoke/10_demo/t.csv">t.csv</a>' in page


def test_what_ran_without_its_data_is_named_on_every_page(shown):
    assert report._banner(shown, "") == ""
    partial = replace(shown[0], results=shown[0].results / "stand-in")
    source = {"name": "IMDb", "kind": "embedded", "detail": "made up"}
    standing = replace(partial, name="11_demo", record=partial.record | {"sources": [source]})
    without = "Without a source of the committed results: 10_demo."
    assert report._banner([partial], "") == without
    standing_in = "Profile smoke. On stand-in data, which judge no experiment: 11_demo."
    assert report._banner([standing, partial], "Profile smoke.") == f"{standing_in} {without}"


def test_pictures_that_a_run_did_not_make_say_so(shown, compendium):
    marker = "<!-- figure: 10_demo/hull --><!-- /figure -->"
    assert "committed results" not in readme.render(marker, shown=shown)
    (compendium / "results" / "smoke").rename(compendium / "results" / "default")
    assert "*From the committed results, not from this run.*" in readme.render(marker, shown=[])
    assert "committed results" not in readme.render(marker)


def test_two_keys_make_a_grid_as_papers_print_it():
    rows = [Comparison({}, {"C": c, "d": d}, c * d, c * d, "equal") for c in (2, 3) for d in (1, 2)]
    assert registers._table_of(rows, ["C", "d"]).splitlines() == [
        "| C \\ d | 1 | 2 |", "| --- | --- | --- |", "| 2 | 2 | 4 |", "| 3 | 3 | 6 |",
    ]  # fmt: skip


_WITHOUT_PYTORCH = """
import json, sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] == "torch" else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Without
from compendium.pages import api_pages
assert "torch" in api_pages.absent()
print(json.dumps(api_pages.pages()))
"""


def test_the_reference_is_the_same_without_pytorch():
    done = subprocess.run([sys.executable, "-c", _WITHOUT_PYTORCH], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == api_pages.pages()


def test_names_stand_under_the_module_that_defines_them():
    page = api_pages.pages()["margins"]
    assert "softgeom.margins.barrier\n   :members: log_barrier, signed_log_barrier" in page


ARTICLE = """<html><body><nav>Menu</nav><article>
<h1>A title<a class="headerlink" href="#x">#</a></h1><p>One <b>cla</b>ss &amp; two<br>captors.</p>
<script>let hidden;</script><img alt='x'><p>End</article>after</body></html>"""


def test_an_article_becomes_its_text(tmp_path, plant):
    explorer = "<article>not a page</article>"
    plant({"notebooks/10_demo.html": ARTICLE, "_static/explorer.html": explorer})
    start, text = "window.softgeomExcerpts = ", report.excerpts(tmp_path)
    assert text.startswith(start)
    pages = json.loads(text.removeprefix(start).rstrip(";\n"))
    assert pages == {"notebooks/10_demo": "A title One class & two captors. End"}
