"""README and manifest: numbers come from records, and unknown names are errors."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest
import yaml

from compendium import __main__ as command_line
from compendium import book, style
from compendium.pages import readme


@pytest.fixture
def recorded(compendium, write_notebook):
    write_notebook("10_demo", 'profile: str = "default"')
    (compendium / "README.md").write_text("# nothing to render\n")
    for profile, count in (("default", 12345.678), ("paper", 1.0)):
        run = book.open_book("10_demo", {"profile": profile})
        run.value("count", count)
        run.table("pairs", pd.DataFrame({"a": [1], "b": ["x|y"], "c": [0.123456]}), "pairs")
        told = {"caption": "Pairs.", "alt": "An empty\nplane [none]."}
        run.figure("pairs", style.figure("column")[0], **told)
        run.save()
    plt.close("all")


@pytest.mark.parametrize(
    ("marker", "content"),
    [
        ("value: 10_demo/count | ,.0f", "12,346"),
        ("value: bench/targets:all:minutes | .0f", "20"),
        ("table: 10_demo/pairs | a, b", "\n| a | b |\n| --- | --- |\n| 1 | x\\|y |\n"),
        ("table: bench/targets | target", "\n| target |\n| --- |\n| all |\n"),
        (
            "figure: 10_demo/pairs",
            "\n![An empty plane (none).](../figures/default/10_demo-pairs.png)\n",
        ),
        ("links: live", ""),
    ],
)
def test_markers_are_filled_in_from_the_committed_results(recorded, plant, marker, content):
    plant({"results/bench/targets.csv": "target,minutes\nall,19.7\n"})
    end = f"<!-- /{marker.partition(':')[0]} -->"
    fresh = readme.render(f"n = <!-- {marker} -->old{end}.", "../")
    assert fresh == f"n = <!-- {marker} -->{content}{end}."
    assert readme.render(fresh, "../") == fresh
    assert "| Experiments | none | 0 |" in readme.render("<!-- verdicts: all --><!-- /verdicts -->")


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("value: 10_demo/cuont", "10_demo recorded count"),
        ("value: 11_gone/count", "11_gone has no committed results"),
        ("table: 10_demo/none", "the table 10_demo/none"),
        ("figure: 10_demo/none", "none; 10_demo recorded pairs"),
    ],
)
def test_names_that_were_never_recorded_are_errors(recorded, marker, message):
    with pytest.raises(KeyError, match=message):
        readme.render(f"<!-- {marker} -->1<!-- /{marker.partition(':')[0]} -->")


def test_links_are_made_from_the_one_address_if_there_is_one(plant):
    assert "reference" not in yaml.safe_load(readme.manifest())["paper"]
    plant({"pyproject.toml": '[project.urls]\nSource = "https://host.example/them/it/"\n'})
    text = readme.render("<!-- links: live -->old<!-- /links -->")
    assert "(https://them.github.io/it/)" in text
    assert "https://mybinder.org/v2/gh/them/it/main" in text
    assert "(https://host.example/them/it/actions/workflows/ci.yml)" in text
    assert "old" not in text
    paper = yaml.safe_load(readme.manifest())["paper"]
    assert paper["reference"].startswith("https://host.example/them/it")


def test_the_commands_write_check_and_list_what_is_recorded(recorded, capsys):
    assert command_line.main(["render-readme", "--check"]) == 1
    assert "docs/papers/README.md" in capsys.readouterr().err
    assert command_line.main(["render-readme"]) == 0
    assert command_line.main(["render-readme", "--check"]) == 0
    capsys.readouterr()
    assert command_line.main(["codecheck"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("---\n")  # CC-CFG-002 of the specification: an explicit start
    listed = yaml.safe_load(text)["manifest"]
    assert {"file": "results/default/10_demo/pairs.csv", "comment": "pairs"} in listed
    assert {"file": "figures/default/10_demo-pairs.png", "comment": "Pairs."} in listed
