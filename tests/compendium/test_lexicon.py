import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest

from compendium.corpora import lexicon


def pretend(monkeypatch, folder):
    spec = SimpleNamespace(origin=str(folder / "__init__.py")) if folder else None
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)


def test_valences_of_a_vocabulary(monkeypatch, tmp_path):
    (tmp_path / "vader_lexicon.txt").write_text(
        "amazing\t2.8\t0.6\t[3]\ncan't\t-0.5\t1\t[0]\n", encoding="utf-8"
    )
    pretend(monkeypatch, tmp_path)
    valence, source = lexicon.load_valences(["cant", "movie", "amazing"])
    np.testing.assert_array_equal(valence, [-0.5, np.nan, 2.8])
    assert source.kind == "package"
    assert not source.stand_in


def test_absent_and_damaged(monkeypatch, tmp_path):
    pretend(monkeypatch, None)
    assert lexicon.load_valences(["amazing"])[0] is None
    pretend(monkeypatch, tmp_path)
    assert lexicon.load_valences(["amazing"])[0] is None
    (tmp_path / "vader_lexicon.txt").write_text("good\t1.9\t0.9\t[2]\nbad\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2: not a word and its valence"):
        lexicon.load_valences(["good"])
