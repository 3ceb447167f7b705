"""Data sources: folder, then hub, then a stand-in that says so; bad files are named."""

import hashlib
import importlib.util
import logging
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from compendium import corpora
from compendium.corpora import reviews as reviews_module
from softgeom import source as source_module

PARTS = ("train", "test", "unsupervised")


@pytest.fixture
def imdb_folder(compendium):
    folder = compendium / "data" / "raw" / "imdb"
    folder.mkdir()
    for part, label in zip(PARTS, ([0, 1], [1, 0], [-1, -1]), strict=True):
        texts = [f"{part} one<br /><br />end", f"{part} two"]
        pd.DataFrame({"text": texts, "label": label}).to_parquet(folder / f"{part}.parquet")
    return folder


def test_another_file_than_the_committed_one_is_used_and_said_once(imdb_folder, compendium, caplog):
    right = hashlib.sha256((imdb_folder / "train.parquet").read_bytes()).hexdigest()
    lines = f"{right}  imdb/train.parquet\n{'0' * 64}  imdb/test.parquet\n"
    (compendium / "data" / "checksums.txt").write_text(lines)
    corpora.load_reviews(), corpora.load_reviews()
    assert caplog.text.count("is another file than the one behind the committed results") == 1
    assert "imdb/test.parquet" in caplog.text
    assert "imdb/train.parquet" not in caplog.text


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda frame: frame.drop(columns="label"), "has no column label; it has text"),
        (lambda frame: frame.iloc[:0], r"train\.parquet holds no review"),
        (lambda frame: frame.assign(label=[0, 7]), "labels must be 0 or 1, found 7"),
        (None, r"imdb/train\.parquet is missing"),
    ],
)
def test_bad_review_files_get_one_sentence(imdb_folder, spoil, message):
    path = imdb_folder / "train.parquet"
    frame = pd.read_parquet(path)
    path.unlink()
    if spoil:
        spoil(frame).to_parquet(path)
    with pytest.raises(ValueError, match=message):
        corpora.load_reviews()


def test_stand_in_reviews_are_announced_balanced_reproducible_and_planted(compendium, caplog):
    source_module._announced.clear()
    with caplog.at_level(logging.WARNING, logger="softgeom"):
        first = corpora.load_reviews()
    assert first.source.stand_in
    assert "embedded stand-in" in caplog.text
    assert first.train["label"].mean() == 0.5
    assert corpora.load_reviews().source.sha256 == first.source.sha256
    words = (first.planted[side] for side in ("positive", "negative"))
    positive, negative = (first.train["text"].str.count("|".join(some)) for some in words)
    agreement = ((positive > negative) == (first.train["label"] == 1))[positive != negative]
    assert 0.85 < agreement.mean() < 1.0


def test_unknown_text_lists_the_names_and_a_part_serves_evaluation(compendium):
    with pytest.raises(ValueError, match="no corpus is called 'wiki': choose one of imdb"):
        corpora.load_text("wiki")
    folder = compendium / "data" / "raw" / "wikitext"
    folder.mkdir()
    for part in ("valid", "test"):
        (folder / f"wikitext-103.{part}.txt").write_text(part, encoding="utf-8")
    assert corpora.load_text("wikitext-103", ("validation", "test")).test == "test"
    assert corpora.load_text("wikitext-103").source.stand_in
    (folder / "wikitext-103.test.txt").write_text(" \n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"wikitext/wikitext-103\.test\.txt is empty"):
        corpora.load_text("wikitext-103", ("test",))


def test_texts_are_split_without_loss(imdb_folder):
    text = corpora.load_text("imdb")
    assert text.train + text.validation + text.test == "unsupervised one\nendunsupervised two"
    text = corpora.load_text("python-reference")
    whole = text.train + text.validation + text.test
    assert len(whole) > 300_000
    assert 0.88 < len(text.train) / len(whole) < 0.92
    assert text.source.sha256 == source_module.sha256_of(whole.encode())


@pytest.fixture
def hub(compendium, monkeypatch, asked_anew):
    """Let the hub's client hand out given parts, or raise a given error."""
    import datasets

    def serve(content):
        def load_dataset(repository, configuration=None, *, revision):
            if isinstance(content, Exception):
                raise content
            return datasets.DatasetDict(
                {part: datasets.Dataset.from_dict(rows) for part, rows in content.items()}
            )

        monkeypatch.setenv("HF_HUB_OFFLINE", "")  # the temporary compendium is offline
        monkeypatch.setattr(datasets, "load_dataset", load_dataset)
        monkeypatch.setattr(source_module, "_connects", lambda address: True)

    return serve


def test_a_fetched_corpus_is_kept_with_its_commit_and_refused_once_damaged(compendium, hub):
    hub({part: {"text": [part, "two"], "label": [0, 1]} for part in PARTS})
    first, second = corpora.load_reviews(), corpora.load_reviews()
    assert first.source == second.source
    assert (first.source.kind, first.source.revision) == ("hub", reviews_module.REVISION)
    assert first.test["text"].tolist() == ["test", "two"]
    raw = compendium / "data" / "raw"
    assert not list(raw.glob("*.incomplete"))
    hub({part: {"text": [f"{part} one\n", "two\n"]} for part in ("train", "validation", "test")})
    corpora.load_text("wikitext-103")
    (raw / "wikitext" / "wikitext-103.valid.txt").write_text("validation one\n")
    with pytest.raises(ValueError, match=r"103\.valid\.txt was damaged after it was fetched"):
        corpora.load_text("wikitext-103")


def test_a_hub_that_breaks_off_leaves_the_stand_in(hub, caplog):
    hub(ConnectionError("reset"))
    assert corpora.load_reviews().source.stand_in
    assert corpora.load_text("wikitext-103").source.stand_in
    assert "IMDb could not be fetched (ConnectionError: reset)" in caplog.text


def test_valences_of_a_vocabulary_and_a_lexicon_absent_or_damaged(monkeypatch, tmp_path):
    spec, file = SimpleNamespace(origin=str(tmp_path / "a.py")), tmp_path / "vader_lexicon.txt"
    for found in (None, spec):  # no package; no such file in it
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, found=found: found)
        assert corpora.load_valences(["amazing"])[0] is None
    file.write_text("amazing\t2.8\t0.6\t[3]\ncan't\t-0.5\t1\t[0]\n", encoding="utf-8")
    valence, source = corpora.load_valences(["cant", "movie", "amazing"])
    np.testing.assert_array_equal(valence, [-0.5, np.nan, 2.8])
    assert (source.kind, source.stand_in) == ("package", False)
    file.write_text("good\t1.9\t0.9\t[2]\nbad\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2: not a word and its valence"):
        corpora.load_valences(["good"])
