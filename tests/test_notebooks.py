"""Hygiene of notebooks: no outputs, a parameters cell, fitting files, a record at the end."""

import ast
import itertools
import json
import re
from pathlib import Path

import pytest

from compendium import parameters, profiles
from compendium.notebooks import parameter_defaults

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
ALL = sorted((ROOT / "notebooks").rglob("*.ipynb"))


def _cells(path, kind):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == kind]


def _source(cell) -> str:
    return "".join(cell["source"])


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_no_outputs_and_a_portable_kernel(path):
    assert not [cell for cell in _cells(path, "code") if cell["outputs"] or cell["execution_count"]]
    metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
    assert metadata["kernelspec"]["name"] == "python3"
    more = set() if path in NOTEBOOKS else {"language_info"}
    assert set(metadata) <= {"kernelspec"} | more


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_opens_with_a_title_and_closes_with_a_record(path):
    first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]
    assert first["cell_type"] == "markdown"
    assert _source(first).startswith("# ")
    code = _cells(path, "code")
    assert re.search(r"book\.(save|conclude)\(", _source(code[-1]))
    assert f'"{path.stem}"' in "".join(map(_source, code)), "open_book must name its own notebook"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_with_claims_says_what_is_seen(path):
    sources = [_source(cell) for cell in _cells(path, "code")]
    headings = "\n".join(map(_source, _cells(path, "markdown")))
    if any("book.claim(" in source for source in sources):
        assert "book.conclude(" in sources[-1] or "\n## What we see\n" in f"\n{headings}\n"


def test_parameter_files_fit():
    """As `make all` asks before anything runs."""
    assert NOTEBOOKS
    for path, profile in itertools.product(NOTEBOOKS, profiles.BUILT_IN):
        parameters.read(path.stem, profile)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_parameter_is_explained_and_read(path):
    code = _cells(path, "code")
    (tagged,) = (cell for cell in code if "parameters" in cell["metadata"].get("tags", []))
    rest = "\n".join(_source(cell) for cell in code if cell is not tagged)
    read = {node.id for node in ast.walk(ast.parse(rest)) if isinstance(node, ast.Name)}
    if "base_experiment(globals()" in rest:
        sweep = ROOT / "lib" / "compendium" / "models" / "sweep.py"
        read |= set(re.findall(r"\w+", sweep.read_text(encoding="utf-8")))
    # open_book takes the profile
    assert parameter_defaults(path).keys() <= read | {"profile"}
    source = _source(tagged)
    lines = ["", *source.splitlines()]
    for node in ast.parse(source).body:
        above, own = lines[node.lineno - 1], lines[node.lineno : node.end_lineno + 1]
        assert above.strip().startswith("#") or "#" in "".join(own), f"no comment: {own[0]}"


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_code_is_free_of_machine_paths_and_shell(path):
    for source in map(_source, _cells(path, "code")):
        assert not re.search(r"(?m)^\s*[!%]", source), "shell and magic do not run everywhere"
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not re.match(r"/(home|root|work|tmp|Users)/", node.value)
