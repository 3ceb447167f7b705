"""What the notebook on reachable vocabularies counts, matches and draws."""

import numpy as np
import pytest

from compendium import paths
from compendium.models import glyphs, vocabularies
from softgeom.examples import uniform_layer
from softgeom.layer import Box, SoftmaxLayer
from softgeom.scanner import scan


@pytest.mark.parametrize(
    ("token", "writing"),
    [
        ("é", "Latin"), ("Ж", "Cyrillic"), ("ひ", "kana"), ("ア", "kana"), ("一", "Han, both"),
        ("国", "Han, simplified"), ("國", "Han, traditional"), ("㐀", "Han, other"),
        ("!", "signs, no letters"),
    ],
)  # fmt: skip
def test_scripts_and_the_two_standards(token, writing):
    assert vocabularies.writing_of(token) == writing


def test_controls_are_of_the_same_script_and_case_each_used_once():
    font = glyphs.latin_font()
    lost, free = list("ĞŮŅž"), list("ŽŘĶéÀЁšωΩ")
    chosen = vocabularies.matched(lost, free, font)
    assert len(set(chosen)) == len(chosen) == 4
    assert [c.isupper() for c in chosen] == [c.isupper() for c in lost]
    assert set(chosen[:3]) == set("ŽŘĶ")  # the same block, before À of Latin-1
    assert chosen[3] == "š"
    assert vocabularies.matched(["Ж"], ["A"], font) == []


def test_lost_letters_stand_between_plain_ones():
    tokens = ["A", "Ğ", "é", "漢", "\n"]
    W = np.array([[3.0, 0], [0, 0], [-3, 3], [-3, -3], [0, 0.1]])
    found = scan(SoftmaxLayer(W, [0, -9, 0, 0, -9], tokens), features=Box(1.0))
    font = glyphs.latin_font()
    assert vocabularies.letters(found, lost=True, font=font) == ["Ğ"]
    assert vocabularies.letters(found, lost=False, font=font) == ["é"]
    assert vocabularies.between("Ğ") == "AĞE"
    assert vocabularies.between("ж") == "аже"


def test_every_word_can_be_drawn():
    drawn = glyphs.latin_font().characters
    assert not [word for _, word, _ in vocabularies.WORDS if set(word) - drawn]


def test_a_kept_scan_is_read_back_and_proves_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "processed_dir", lambda: tmp_path)
    plain = uniform_layer(50, 4, seed=2)
    layer = SoftmaxLayer(plain.W, plain.b, [f"t{i}" for i in range(50)])
    fresh = scan(layer, range(0, 50, 2), features=Box(10.0))
    for _ in range(2):
        found = vocabularies.kept_scan(layer, np.arange(0, 50, 2), Box(10.0))
        assert found.verify()
        assert found.table.equals(fresh.table)
        assert found.layer is layer
    assert len(list(tmp_path.glob("scans/scan-*.joblib"))) == 1
    vocabularies.kept_scan(layer, np.arange(0, 50, 2), Box(5.0))
    assert len(list(tmp_path.glob("scans/scan-*.joblib"))) == 2
