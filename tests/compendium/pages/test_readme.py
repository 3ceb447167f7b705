"""README and manifest: numbers come from records, and unknown names are errors."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest
import yaml

from compendium import __main__ as command_line
from compendium import book, paths, style
from compendium.pages import readme


@pytest.fixture
def recorded(compendium, write_notebook):
    write_notebook("10_demo", 'profile: str = "default"')
    (compendium / "README.md").write_text("# nothing to render\n")
    for profile, count in (("default", 12345.678), ("paper", 1.0)):
        run = book.open_book("10_demo", {"profile": profile})
        run.value("count", count)
        if profile == "default":
            run.table("pairs", pd.DataFrame({"a": [1], "b": ["x|y"], "c": [0.123456]}), "pairs")
            told = {"caption": "Pairs.", "alt": "An empty\nplane [none]."}
            run.figure("pairs", style.figure("column")[0], **told)
        run.save()
    plt.close("all")


FILLED = [
    ('value("10_demo/count", ",.0f")', "12,346"),
    ('value("bench/targets:all:minutes", ".0f")', "20"),
    ('table("10_demo/pairs", "a, b")', "| a | b |\n| ---: | --- |\n| 1 | x\\|y |"),
    ('table("bench/targets", "target")', "| target |\n| --- |\n| all |\n| test |"),
    ('table("bench/targets", "target", "minutes > 9")', "| target |\n| --- |\n| all |"),
    ('figure("10_demo/pairs")', "![An empty plane (none).](../figures/default/10_demo-pairs.png)"),
    ("links()", ""),
]


def test_a_template_is_filled_from_the_committed_results(recorded, plant):
    plant({"results/bench/targets.csv": "target,minutes\nall,19.7\ntest,5\n"})
    for call, content in FILLED:
        assert readme.render(f"n = {{{{ {call} }}}}.\n", "../") == f"n = {content}.\n"
    assert "| Experiments | 0 | 0 | 0 |" in readme.render('{{ verdicts("all") }}')


NEVER_RECORDED = [
    ('value("10_demo/cuont")', "10_demo recorded count"),
    ('value("11_gone/count")', "11_gone has no committed results"),
    ('table("10_demo/none")', "the table 10_demo/none"),
    ('figure("10_demo/none")', "none; 10_demo recorded pairs"),
]


def test_names_that_were_never_recorded_are_errors(recorded):
    for call, message in NEVER_RECORDED:
        with pytest.raises(KeyError, match=message):
            readme.render(f"{{{{ {call} }}}}")


def test_a_page_of_docs_is_rendered_from_its_template_without_comments(recorded, plant):
    plant({"docs/templates/docs/page.md": '{{ value("10_demo/count", ".0f") }} ![](x)\n'})
    readme.write()
    assert (paths.root() / "docs" / "page.md").read_text() == "12346 ![](x)\n"
    assert readme.stale() == []
    plant({"docs/page.md": "12347\n"})
    assert readme.stale() == ["docs/page.md"]


def test_links_are_made_from_the_one_address_if_there_is_one(plant):
    assert "reference" not in yaml.safe_load(readme.manifest())["paper"]
    plant({"pyproject.toml": '[project.urls]\nSource = "https://host.example/them/it/"\n'})
    text = readme.render("{{ links() }}")
    assert "(https://them.github.io/it/)" in text
    assert "https://mybinder.org/v2/gh/them/it/main" in text
    assert "(https://host.example/them/it/actions/workflows/ci.yml)" in text
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


def test_the_docs_stay_short(repository):
    """Words as `wc -w` counts them, without the rendered pages of papers and notebooks."""
    folders = ("docs", "docs/site", "scanner/docs")
    pages = [page for folder in folders for page in (repository / folder).glob("*.md")]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= 15_000
