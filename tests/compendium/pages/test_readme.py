"""README and manifest: numbers come from records, and unknown names are errors."""

import pandas as pd
import pytest
import yaml

from compendium import __main__ as command_line
from compendium import book, runs, style
from compendium.pages import readme, rendered


@pytest.fixture
def recorded(compendium, write_notebook):
    write_notebook("10_demo", 'profile: str = "default"')
    for profile, count in (("default", 12345.678), ("paper", 1.0)):
        run = book.open_book("10_demo", {"profile": profile})
        run.value("count", count)
        run.table("pairs", pd.DataFrame({"a": [1], "b": ["x|y"], "c": [0.123456]}))
        told = {"caption": "Pairs.", "alt": "An empty\nplane [none]."}
        run.figure("pairs", style.figure("column")[0], **told)
        run.save()


def test_values_tables_and_figures_are_filled_in(recorded):
    text = (
        "n = <!-- value: 10_demo/count | ,.0f -->old<!-- /value -->.\n"
        "<!-- table: 10_demo/pairs | a, b -->\nold\n<!-- /table -->\n"
        "<!-- figure: 10_demo/pairs --><!-- /figure --><!-- verdicts: all --><!-- /verdicts -->"
    )
    fresh = readme.render(text, "../")
    assert "n = <!-- value: 10_demo/count | ,.0f -->12,346<!-- /value -->." in fresh
    assert "| a | b |\n| --- | --- |\n| 1 | x\\|y |" in fresh
    assert "\n![An empty plane (none).](../figures/default/10_demo-pairs.png)\n" in fresh
    assert "| Experiments | none | 0 |" in fresh
    assert readme.render(fresh, "../") == fresh


def test_a_value_that_the_run_at_hand_could_not_measure_is_the_committed_one(recorded, compendium):
    run = book.open_book("10_demo", {"profile": "smoke"})
    run.value("count", None, about="nothing to count")
    run.save()
    shown = [runs.committed("10_demo", ("smoke",))]
    page = readme.render("<!-- value: 10_demo/count | ,.0f -->old<!-- /value -->", shown=shown)
    assert "-->12,346 (committed)<!--" in page


def test_costs_are_those_measured(plant):
    plant({"results/bench/targets.csv": "target,minutes,disk (GB)\nall,19.7,2.42\nenv,1.1,2\n"})
    text = "<!-- cost: all -->x<!-- /cost --> <!-- cost: all | disk --><!-- /cost -->"
    assert "-->20 minutes<!--" in readme.render(text)
    assert "-->2.4 GB<!--" in readme.render(text)
    assert "-->1 minute<!--" in readme.render("<!-- cost: env --><!-- /cost -->")
    with pytest.raises(KeyError, match=r"the cost of none; results/bench/targets.csv has all, env"):
        readme.render("<!-- cost: none --><!-- /cost -->")


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("<!-- value: 10_demo/cuont -->1<!-- /value -->", "10_demo recorded count"),
        ("<!-- value: 11_gone/count -->1<!-- /value -->", "11_gone has no committed results"),
        ("<!-- table: 10_demo/none -->1<!-- /table -->", "the table 10_demo/none"),
        ("<!-- figure: 10_demo/none -->1<!-- /figure -->", "none; 10_demo recorded pairs"),
    ],
)
def test_names_that_were_never_recorded_are_errors(recorded, marker, message):
    with pytest.raises(KeyError, match=message):
        readme.render(marker)


def test_links_are_made_from_the_one_address_if_there_is_one(plant):
    assert "reference" not in yaml.safe_load(rendered.manifest())["paper"]
    plant({"pyproject.toml": '[project.urls]\nSource = "https://host.example/them/it/"\n'})
    text = readme.render("<!-- links: live -->old<!-- /links -->")
    assert "(https://them.github.io/it/)" in text
    assert "https://mybinder.org/v2/gh/them/it/main" in text
    assert "(https://host.example/them/it/actions/workflows/ci.yml)" in text
    assert "old" not in text
    paper = yaml.safe_load(rendered.manifest())["paper"]
    assert paper["reference"].startswith("https://host.example/them/it")
    plant({"pyproject.toml": "[project]\nname = 'it'\n"})
    text = readme.render("<!-- links: live -->[old](https://x.org)<!-- /links -->")
    assert text == "<!-- links: live --><!-- /links -->"


def test_every_recorded_output_is_listed_with_its_caption(compendium, write_notebook, capsys):
    write_notebook("10_demo", 'profile: str = "default"')
    (compendium / "README.md").write_text("# nothing to render\n")
    run = book.open_book("10_demo", {"profile": "default"})
    run.table("pairs", pd.DataFrame({"a": [1]}), caption="pairs of things")
    run.save()
    assert yaml.safe_load(rendered.manifest())["manifest"] == [
        {"file": "results/default/10_demo/pairs.csv", "comment": "pairs of things"}
    ]
    assert command_line.main(["render-readme", "--check"]) == 1
    assert "docs/gallery/README.md" in capsys.readouterr().err
    assert command_line.main(["render-readme"]) == 0
    assert command_line.main(["render-readme", "--check"]) == 0


def test_the_manifest_of_a_release_names_existing_files_in_version_2(repository, capsys):
    assert command_line.main(["codecheck"]) == 0
    text = capsys.readouterr().out
    # CC-CFG-002 of the specification's rules: the document starts explicitly
    assert text.startswith("---\n")
    content = yaml.safe_load(text)
    assert content["version"] == "https://codecheck.org.uk/spec/config/2.0/"
    listed = content["manifest"]
    assert listed
    assert [entry["file"] for entry in listed if not (repository / entry["file"]).is_file()] == []
