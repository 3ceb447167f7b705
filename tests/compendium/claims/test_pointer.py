import hashlib
import re

import pytest

from compendium import claims
from compendium.claims import Pointer, pointer

TEXT = (
    "Title\n\nIt holds\nfor all ﬁelds, that is: 1 < 2 — with\nhy-\nphens. The end. İt holds for "
    "all."
)


@pytest.fixture(autouse=True)
def papers(tmp_path, monkeypatch):
    (tmp_path / "007_abc.txt").write_text(TEXT, encoding="utf-8")
    monkeypatch.setenv("SOFTGEOM_PAPERS", str(tmp_path))
    return tmp_path


def test_a_sentence_is_found_however_it_is_broken():
    found, times = claims.find(
        "007", "It holds for all fields, that is: 1<2 with hyphens.".replace("fi", "ﬁ")
    )
    plain = re.sub("[^a-z0-9]", "", TEXT.lower())  # a second way to the same positions
    words = "itholdsforalleldsthatis12withhyphens"
    assert (found.start, found.length, times) == (plain.find(words), len(words), 1)
    assert found.digest == hashlib.sha256(words.encode()).hexdigest()[:16]
    assert found.holds
    assert claims.find("007", "holds for all")[1] == 2
    assert claims.sentence(found) == "It holds for all ﬁelds, that is: 1 < 2 — with hy- phens."


@pytest.mark.parametrize(
    "change", [{"start": 6}, {"length": 8}, {"digest": "0" * 16}, {"start": 10_000}]
)
def test_a_pointer_that_slipped_is_noticed(change):
    found, _ = claims.find("007", "The end")
    assert not Pointer(**(vars(found) | change)).holds


@pytest.mark.parametrize(
    ("sentence", "message"), [("no such", "has no such sentence"), ("—", "no letters or digits")]
)
def test_what_cannot_be_found_is_one_sentence(sentence, message):
    with pytest.raises(ValueError, match=message):
        claims.find("007", sentence)


def test_a_paper_or_folder_that_is_not_here_is_named(monkeypatch):
    with pytest.raises(FileNotFoundError, match="paper 008 is not here: set SOFTGEOM_PAPERS"):
        claims.find("008", "x")
    assert not pointer.has("008")
    monkeypatch.setenv("SOFTGEOM_PAPERS", "nowhere")
    with pytest.raises(FileNotFoundError, match="'nowhere'"):
        claims.papers_dir()


def test_a_register_is_held_against_the_sources(entry, write, papers):
    found, _ = claims.find("007", "The end")
    register, _ = claims.read(write(entry | {"sentence": vars(found)}))
    assert claims.faults_of_pointers(register) == []
    wrong = vars(found) | {"start": found.start + 1}
    register, _ = claims.read(write(entry | {"sentence": [vars(found), wrong]}))
    assert len(claims.faults_of_pointers(register)) == 1
    register, _ = claims.read(write(entry | {"sentence": wrong | {"paper": "008"}}))
    assert claims.faults_of_pointers(register) == []  # that paper is not here
