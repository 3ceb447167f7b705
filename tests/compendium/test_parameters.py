"""Profiles inherit from default, folders are found; what does not fit is one sentence."""

import pytest

from compendium import parameters, paths, profiles
from compendium.parameters import ParameterError

CELL = """
seed: int = 0  # seed
rate: float = 0.5  # rate
name: str = "x"  # name
fast: bool = True
sizes: list[int] = [1]
weights: list[float] = [0.0]
profile: str = "default"
"""
GOOD = (
    "seed: {smoke: 3, default: 4}\nrate: 1\nname: y\nfast: false\nsizes: {default: [1, 2], "
    "paper: [8]}\nweights: [0, 0.5]\n"
)


@pytest.fixture
def read(compendium, write_notebook):
    write_notebook("10_demo", CELL)

    def read(text: str, profile: str = "smoke"):
        (compendium / "notebooks" / "params" / "10_demo.yaml").write_text(text)
        return parameters.read("10_demo", profile)

    return read


def test_a_profile_states_only_what_differs(read):
    assert read(GOOD, "smoke") == {
        "seed": 3, "rate": 1.0, "name": "y", "fast": False, "sizes": [1, 2], "weights": [0.0, 0.5]
    }  # fmt: skip
    assert read(GOOD, "full")["seed"] == read(GOOD, "paper")["seed"] == 4
    assert read(GOOD, "paper")["sizes"] == [8]
    assert [type(value) for value in read(GOOD)["weights"]] == [float, float]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("fast", "fats", r"10_demo\.yaml: unknown parameter fats; the notebook has seed, rate"),
        ("rate: 1\nname: y\nfast: false\n", "", "missing parameter rate, name, fast"),
        ("rate: 1", "rate: 1e-3", r"rate must be of type float, not str \('1e-3'\); write floats"),
        ("smoke: 3", "smoke: true", r"seed must be of type int, not bool"),
        ("smoke: 3", "smok: 3", "seed: there is no profile smok; there are smoke"),
        (", default: 4", "", r"seed: the column default is missing"),
        ("[1, 2]", '"1,2"', "sizes must be of type list, not str.*; write lists as"),
        ("[1, 2]", "[1, two]", r"sizes: entry 2 must be of type int, not str"),
        ("seed: {", "seed: [", r"10_demo\.yaml is not valid YAML"),
        (GOOD, "- 1\n", r"must be a mapping of names to values"),
    ],
)
def test_bad_files_get_one_sentence(read, old, new, message):
    with pytest.raises(ParameterError, match=message):
        read(GOOD.replace(old, new))


def test_a_profile_of_ones_own_needs_only_what_it_changes(read, compendium):
    own = compendium / "notebooks" / "params" / "own" / "mine.yaml"
    own.write_text("10_demo: {seed: 9}\n")
    assert read(GOOD, "own/mine") == read(GOOD, "default") | {"seed": 9}
    for text, profile, message in (
        ("11_other: {seed: 9}", "own/mine", r"mine\.yaml: there is no notebook 11_other"),
        ("10_demo: {sede: 9}", "own/mine", "10_demo: unknown parameter sede"),
        ("", "own/yours", r"notebooks/params/own/yours\.yaml does not exist"),
        ("", "mine", r"no profile 'mine'.*PROFILE=own/mine"),
    ):
        own.write_text(text)
        with pytest.raises(ParameterError, match=message):
            read(GOOD, profile)


def test_overrides_on_the_command_line(read):
    read(GOOD)
    assert parameters.override("", "10_demo") == {}
    found = parameters.override("seed=5 rate=2 sizes=[3,4] name='two words' fast=false", "10_demo")
    assert found == {"seed": 5, "rate": 2.0, "sizes": [3, 4], "name": "two words", "fast": False}
    assert parameters.override("name=10", "10_demo") == {"name": "10"}
    for text, message in (
        ("profile=paper", "PARAMS: unknown parameter profile; the notebook has seed"),
        ("seed=five", "PARAMS: seed must be of type int, not str"),
        ("seed 5", r"PARAMS: 'seed' is not NAME=VALUE"),
        ("name='open", r"cannot be read \(No closing quotation\)"),
    ):
        with pytest.raises(ParameterError, match=message):
            parameters.override(text, "10_demo")


def test_missing_files_notebooks_and_types_are_named(plant, write_notebook):
    write_notebook("10_demo", CELL)
    with pytest.raises(ParameterError, match=r"notebooks/params/10_demo\.yaml does not exist"):
        parameters.read("10_demo", "paper")
    plant({"notebooks/params/11_gone.yaml": "a: 1"})
    with pytest.raises(ParameterError, match="no notebook 11_gone; there are 10_demo"):
        parameters.read("11_gone", "smoke")
    write_notebook("10_demo", 'rates: list[float] = []\nprofile: str = "default"\n')
    plant({"notebooks/params/10_demo.yaml": "rates: [0.5]\n"})
    with pytest.raises(ParameterError, match="empty list, which has no type"):
        parameters.read("10_demo", "smoke")


def test_lineage():
    assert profiles.lineage("smoke") == ("smoke",)
    assert profiles.lineage("own/full") == ("own/full", "full", "default")
    assert profiles.lineage("full") == ("full", "default")
    assert profiles.lineage(profiles.overridden("smoke")) == ("own/smoke", "smoke")
    assert profiles.lineage("own/mine") == ("own/mine", "default")
    with pytest.raises(ValueError, match=r"belongs into notebooks/params/own/mine\.yaml"):
        profiles.overridden("own/mine")


def test_find_data_prefers_the_chosen_folder_and_falls_back_to_what_was_fetched(
    compendium, monkeypatch
):
    monkeypatch.setenv("SOFTGEOM_DATA", "chosen")
    with pytest.raises(FileNotFoundError, match=r"data folder 'chosen' .* does not exist"):
        paths.data_dir()
    (compendium / "chosen").mkdir()
    fetched = compendium / "data" / "raw" / "imdb"
    assert paths.find_data("imdb") is None
    fetched.mkdir()
    assert paths.find_data("imdb") == fetched
    (compendium / "chosen" / "imdb").mkdir()
    assert paths.find_data("imdb") == compendium / "chosen" / "imdb"
