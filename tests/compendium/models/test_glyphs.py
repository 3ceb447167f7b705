"""Characters as pictures: the same fonts everywhere, what they lack, rarity by standard."""

import numpy as np
import pytest

from compendium.models import glyphs
from softgeom.checkpoints import packages

pytest.importorskip("PIL")


@pytest.fixture(scope="module")
def font():
    """The font that ships with matplotlib."""
    return glyphs.latin_font()


def test_a_face_of_the_same_name_that_is_installed_is_not_taken(font, monkeypatch):
    """Debian's condensed face is called DejaVu Sans, too, and other letters are read in it."""
    from matplotlib import font_manager, get_data_path

    condensed = font_manager.FontEntry(fname="/nowhere/DejaVuSansCondensed.ttf", name="DejaVu Sans")
    faces = font_manager.fontManager
    monkeypatch.setattr(faces, "ttflist", [*faces.ttflist, condensed])
    assert glyphs.latin_font().path.startswith(get_data_path())
    assert {"A", "é", "я"} <= font.characters
    assert "字" not in font.characters


def test_without_the_pinned_fonts_there_is_none(monkeypatch, caplog, tmp_path):
    def fails(*_):
        raise ValueError("pip cannot bring it")

    monkeypatch.setenv("SOFTGEOM_CACHE", str(tmp_path))
    monkeypatch.setattr(packages, "download", fails)
    assert glyphs.chinese_fonts() == []
    assert "no font with Chinese characters: pip cannot bring it" in caplog.text


def test_a_line_grows_with_characters_ink_with_strokes_and_no_box_is_a_glyph(font):
    one, three = glyphs.render_line("H", font, 40), glyphs.render_line("HHH", font, 40)
    assert (one.height, three.height) == (48, 48)
    assert three.width - one.width == 80
    assert np.asarray(one).min() < 50  # dark strokes
    assert np.asarray(one)[0].min() == 255  # on white
    assert glyphs.ink("-", font) < glyphs.ink("=", font) < glyphs.ink("#", font)
    with pytest.raises(ValueError, match="DejaVu Sans has no glyph for 字"):
        glyphs.render_line("A字", font, 40)


@pytest.mark.parametrize(
    ("character", "standard"),
    [
        ("中", "GB1"), ("刈", "GB2"), ("雜", "Big5-1"), ("鱺", "Big5-2"), ("乸", "other"),
        ("A", "sign"), ("〒", "sign"),
    ],
)  # fmt: skip
def test_rarity_follows_the_national_standards(character, standard):
    assert glyphs.rarity(character) == standard
