"""The manifest lists what was recorded, and the check of `make lint` sees that it is up to date."""

import pandas as pd
import yaml

from compendium import __main__ as command_line
from compendium import book
from compendium.pages import rendered


def test_every_recorded_output_is_listed_with_its_caption(compendium, write_notebook, capsys):
    write_notebook("10_demo", 'profile: str = "lab"')
    (compendium / "README.md").write_text("# nothing to render\n")
    run = book.open_book("10_demo", {"profile": "default"})
    run.table("pairs", pd.DataFrame({"a": [1]}), caption="pairs of things")
    run.save()
    assert yaml.safe_load(rendered.manifest())["manifest"] == [
        {"file": "results/default/10_demo/pairs.csv", "comment": "pairs of things"}
    ]
    assert command_line.main(["render-readme", "--check"]) == 1
    assert "codecheck.yml, docs/gallery/README.md" in capsys.readouterr().err
    assert command_line.main(["render-readme"]) == 0
    assert command_line.main(["render-readme", "--check"]) == 0


def test_the_paper_is_where_the_compendium_is_published(compendium):
    assert "reference" not in yaml.safe_load(rendered.manifest())["paper"]
    source = 'urls.Source = "https://host.example/them/it"'
    (compendium / "pyproject.toml").write_text(f"[project]\n{source}\n")
    paper = yaml.safe_load(rendered.manifest())["paper"]
    assert paper["reference"] == "https://host.example/them/it"


def test_committed_manifest_names_existing_files_in_version_2(repository):
    text = (repository / "codecheck.yml").read_text(encoding="utf-8")
    # CC-CFG-002 of the specification's rules: the document starts explicitly
    assert text.startswith("---\n")
    content = yaml.safe_load(text)
    assert content["version"] == "https://codecheck.org.uk/spec/config/2.0/"
    listed = content["manifest"]
    assert listed
    assert [entry["file"] for entry in listed if not (repository / entry["file"]).is_file()] == []
