"""Parameter files: everything that does not fit is one sentence, before anything runs."""

from __future__ import annotations

import pytest

from compendium import parameters

CELL = (
    'seed: int = 0  # seed\nrate: float = 0.5  # rate\nname: str = "x"  # name\nfast: bool = True\nprofile: str = "lab"'
)


@pytest.fixture
def read(compendium, write_notebook):
    write_notebook("10_demo", CELL)

    def read(text: str):
        (compendium / "params" / "smoke" / "10_demo.yaml").write_text(text)
        return parameters.read("10_demo", "smoke")

    return read


def test_good_file(read):
    given = read("seed: 3\nrate: 1\nname: y\nfast: false\n")
    assert given == {"seed": 3, "rate": 1.0, "name": "y", "fast": False}
    assert type(given["rate"]) is float


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed: 3\nrate: 1.0\nname: y\nfast: true\nsede: 1\n", r"unknown parameter sede; the notebook has seed, rate"),
        ("seed: 3\n", r"10_demo\.yaml: missing parameter fast, name, rate"),
        ("seed: 3\nrate: 1e-3\nname: y\nfast: true\n", r"rate must be of type float, not str \('1e-3'\); write floats"),
        ("seed: true\nrate: 1.0\nname: y\nfast: true\n", r"seed must be of type int, not bool"),
        ("seed: [1\n", r"10_demo\.yaml is not valid YAML"),
        ("- 1\n", r"must be a mapping of parameter names to values"),
    ],
)
def test_bad_files_get_one_sentence(read, text, message):
    with pytest.raises(parameters.ParameterError, match=message):
        read(text)


def test_missing_file_and_notebook_are_named(compendium, write_notebook):
    write_notebook("10_demo", CELL)
    with pytest.raises(parameters.ParameterError, match=r"params/paper/10_demo\.yaml does not exist"):
        parameters.read("10_demo", "paper")
    (compendium / "params" / "smoke" / "11_gone.yaml").write_text("a: 1")
    with pytest.raises(parameters.ParameterError, match="there is no notebook 11_gone; there are 10_demo"):
        parameters.read("11_gone", "smoke")
