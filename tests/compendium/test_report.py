"""The report: a missing execution is named with its command, and pictures get their words."""

from __future__ import annotations

import pytest
from softgeom.compendium import __main__ as command_line
from softgeom.compendium import report


def test_a_missing_notebook_is_named_with_the_command_that_makes_it(compendium, write_notebook, capsys):
    (compendium / "report").mkdir()
    write_notebook("10_demo", 'profile: str = "lab"')
    assert command_line.main(["report", "--profile", "smoke"]) == 1
    message = capsys.readouterr().err
    assert "executed/smoke/10_demo.ipynb is missing: run `make 10_demo PROFILE=smoke`" in message


def test_pictures_get_the_recorded_alternative_texts_in_order():
    picture = {"output_type": "display_data", "data": {"image/png": ""}, "metadata": {}}
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [dict(picture)]} for _ in range(2)]
    report._describe_images({"cells": cells}, {"figures": {"one": {"alt": "a line"}, "two": {"alt": "a hull"}}})
    assert [cell["metadata"]["mystnb"]["image"]["alt"] for cell in cells] == ["a line", "a hull"]


@pytest.mark.parametrize(
    ("entries", "expected"), [([], ""), (["a"], "```{toctree}\n:caption: T\n:hidden:\n\na\n```\n")]
)
def test_an_empty_chapter_has_no_table_of_contents(entries, expected):
    assert report._tree("T", entries) == expected
