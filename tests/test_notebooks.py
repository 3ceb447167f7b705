"""Hygiene of notebooks: no outputs, explained parameters, fitting files, a record at the end."""

import ast
import json
import re
from pathlib import Path

import pytest

from compendium import parameters, profiles
from compendium.notebooks import parameter_defaults

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
ALL = sorted((ROOT / "notebooks").rglob("*.ipynb"))


def _cells(path, kind="code"):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [
        cell | {"source": "".join(cell["source"])} for cell in cells if kind == cell["cell_type"]
    ]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_a_notebook_is_without_outputs_and_runs_everywhere(path):
    metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
    assert metadata["kernelspec"]["name"] == "python3"
    assert metadata.keys() <= {"kernelspec"} | (set() if path in NOTEBOOKS else {"language_info"})
    for cell in _cells(path):
        assert not cell["outputs"]
        assert not cell["execution_count"]
        assert not re.search(r"(?m)^\s*[!%]", cell["source"]), (
            "shell and magic do not run everywhere"
        )
        assert not re.search(r"""["']/(home|root|work|tmp|Users)/""", cell["source"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_opens_with_a_title_and_closes_with_a_record(path):
    prose = [cell["source"] for cell in _cells(path, "markdown")]
    assert prose[0].startswith("# ")
    assert len(prose[0].splitlines()[0].split()) <= 9, "a title has at most eight words"
    code = [cell["source"] for cell in _cells(path)]
    assert re.search(r"book\.(save|conclude)\(", code[-1])
    assert f'"{path.stem}"' in "".join(code), "open_book must name its own notebook"
    if "book.claim(" in "".join(code):
        told = "\n".join(["", *prose])
        assert "book.conclude(" in code[-1] or "\n## What we see\n" in f"{told}\n"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_parameter_is_explained_read_and_given_in_each_profile(path):
    (tagged,) = (c for c in _cells(path) if "parameters" in c["metadata"].get("tags", []))
    rest = "\n".join(cell["source"] for cell in _cells(path) if cell != tagged)
    read = {node.id for node in ast.walk(ast.parse(rest)) if isinstance(node, ast.Name)}
    assert parameter_defaults(path).keys() <= read | {"profile"}  # which open_book takes
    lines = ["", *tagged["source"].splitlines()]
    for node in ast.parse(tagged["source"]).body:
        above, own = lines[node.lineno - 1], lines[node.lineno : node.end_lineno + 1]
        assert above.strip().startswith("#") or "#" in "".join(own), f"no comment: {own[0]}"
    for profile in profiles.BUILT_IN:
        parameters.read(path.stem, profile)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_opened_by_hand_it_has_the_parameters_of_the_committed_results(path):
    """So that the numbers are those of its prose; a list of many names stays in the file."""
    given, own = parameters.read(path.stem, "default"), parameter_defaults(path)
    odd = {key: value for key, value in given.items() if own[key] != value}
    assert not {key for key, value in odd.items() if not isinstance(value, list) or len(value) < 40}
