"""The report's sources: a missing execution is named with its command, figures stand where they were drawn, registers say what was found."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from compendium import __main__ as command_line
from compendium import registers, report
from compendium.check import Comparison

PICTURE = {"output_type": "display_data", "data": {"image/png": ""}, "metadata": {}}
TEXT = {"output_type": "stream", "name": "stdout", "text": "a line"}


def _code(source: str, *outputs: dict, tags: tuple[str, ...] = ()) -> dict:
    return {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": source, "outputs": list(outputs)}


@pytest.fixture
def recorded(compendium):
    """A notebook `10_demo` of the profile smoke with two recorded figures and three claims in the summary."""
    folder = compendium / "results" / "smoke"
    figures = {
        "hull": {"caption": "A hull.", "alt": "a triangle\nwith a point"},
        "line": {"caption": "A line.", "alt": "a line"},
    }
    record = {"sources": [], "parameters": {"n": 3}, "device": "cpu", "figures": figures, "tables": {}}
    for name in ("10_demo", "90_summary"):
        (folder / name).mkdir(parents=True)
        (folder / name / "record.json").write_text(json.dumps(record))
    claims = pd.DataFrame(
        [
            ["001-a", 1, "001, Table 2", "All of it.", "reproduced", "90", None, None, "", "10_demo"],
            ["001-b", 1, "001, Section 3", "None of it.", "corrected", "0.123456", 0.1, 0.2, "some of it", "10_demo"],
        ],
        columns=["id", "paper", "source", "statement", "verdict", "value", "low", "high", "reason", "notebook"],
    )
    claims.to_csv(folder / "90_summary" / "claims.csv", index=False)
    return compendium


def test_a_missing_notebook_is_named_with_the_command_that_makes_it(compendium, write_notebook, capsys):
    (compendium / "report").mkdir()
    write_notebook("10_demo", 'profile: str = "lab"')
    assert command_line.main(["report", "--profile", "smoke"]) == 1
    message = capsys.readouterr().err
    assert "executed/smoke/10_demo.ipynb is missing: run `make 10_demo PROFILE=smoke`" in message


def test_recorded_figures_take_the_places_of_the_pictures_in_order(recorded):
    cells = report._with_figures(
        [_code("a", dict(PICTURE), TEXT), _code("b"), _code("c", dict(PICTURE))], "10_demo", "smoke"
    )
    assert [cell["cell_type"] for cell in cells] == ["code", "markdown", "code", "code", "markdown"]
    assert cells[0]["outputs"] == [TEXT]
    assert (
        cells[1]["source"]
        == "```{figure} ../figures/smoke/10_demo-hull.png\n:alt: a triangle with a point\n\nA hull.\n```"
    )
    assert "10_demo-line.png" in cells[4]["source"]


def test_another_number_of_figures_than_was_recorded_is_refused(recorded):
    with pytest.raises(ValueError, match="have not the same figures: run `make 10_demo`"):
        report._with_figures([_code("a", dict(PICTURE))], "10_demo", "smoke")


def test_readers_see_the_parameters_that_ran_and_long_code_folded():
    cells = [
        _code("n = 1", tags=("parameters",)),
        _code("n = 2", tags=("injected-parameters",)),
        _code("x\n" * 9),
        _code("x"),
    ]
    kept = report._read_on(cells)
    assert [cell["source"] for cell in kept] == ["n = 2", "x\n" * 9, "x"]
    assert ["hide-input" in cell["metadata"]["tags"] for cell in kept] == [False, True, False]


def test_the_readme_becomes_two_pages_and_leads_nowhere_outside():
    text = (
        "# Title\n\n<!-- value: a/b -->7<!-- /value --> [start](notebooks/start.ipynb)\n\n## Three readers\n\nrun\n\n## Four questions\n\n"
        "see [data](data/README.md)\n<details><summary>001</summary>\n\nclaims\n</details>\n\n## What it costs\n\nminutes [cite](CITATION.cff)\n"
    )
    front, running = report._split_readme(text)
    assert front.startswith("# Title\n\n7 start\n\n\n## Four questions\n\nsee [data](data.md)\n")
    assert (
        running.replace("\n", " ").split() == "# Running it ## Three readers run ## What it costs minutes cite".split()
    )
    assert "claims\n" not in front


@pytest.mark.parametrize(
    ("entries", "expected"), [([], ""), (["a"], "```{toctree}\n:caption: T\n:hidden:\n\na\n```\n")]
)
def test_an_empty_chapter_has_no_table_of_contents(entries, expected):
    assert report._tree("T", entries) == expected


def test_each_claim_leads_to_notebook_figures_and_numbers(recorded):
    page = registers.claims_page("smoke")
    assert "1 reproduced, 1 corrected." in page
    row = next(line for line in page.splitlines() if "Section 3" in line)
    assert "[10_demo](notebooks/10_demo.ipynb)" in row
    assert '<a href="_images/10_demo-line.png">2</a>' in row
    assert '<a href="results/smoke/10_demo/record.json">numbers</a>' in row
    assert "None of it. Some of it. Value: 0.1235 (0.1 to 0.2)." in row


def test_corrections_leave_out_what_was_reproduced(recorded):
    page = registers.corrections_page("smoke")
    assert "## Corrected" in page
    assert "*Claim.* None of it.\\\n*Found.* Some of it. Value: 0.1235 (0.1 to 0.2)." in page
    assert "Table 2" not in page


def test_two_keys_make_a_grid_as_papers_print_it():
    rows = [Comparison("t", "T", {"C": c, "d": d}, c * d, c * d, 0.0, "equal") for c in (2, 3) for d in (1, 2)]
    assert registers._table_of(rows, ["C", "d"]).splitlines() == [
        "| C \\ d | 1 | 2 |", "| --- | --- | --- |", "| 2 | 2 | 4 |", "| 3 | 3 | 6 |",
    ]  # fmt: skip
