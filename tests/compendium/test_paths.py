"""The clone is found from inside it; a mistyped data folder is an error."""

import pytest

from compendium import paths


def test_root_is_found_from_a_subfolder(repository, monkeypatch):
    monkeypatch.delenv("SOFTGEOM_ROOT", raising=False)
    monkeypatch.chdir(repository / "notebooks")
    assert paths.root() == repository


def test_missing_data_folder_is_named(compendium, monkeypatch):
    monkeypatch.setenv("SOFTGEOM_DATA", "no/such/folder")
    with pytest.raises(FileNotFoundError, match=r"data folder 'no/such/folder' .* does not exist"):
        paths.data_dir()


def test_find_data_prefers_the_chosen_folder_and_falls_back_to_what_was_fetched(
    compendium, monkeypatch
):
    (compendium / "chosen").mkdir()
    monkeypatch.setenv("SOFTGEOM_DATA", "chosen")
    fetched = compendium / "data" / "raw" / "imdb"
    assert paths.find_data("imdb") is None
    fetched.mkdir()
    assert paths.find_data("imdb") == fetched
    (compendium / "chosen" / "imdb").mkdir()
    assert paths.find_data("imdb") == compendium / "chosen" / "imdb"
