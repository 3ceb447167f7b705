"""Characters as pictures: fonts by family name, what a font lacks, and rarity by the national
standards.
"""

from __future__ import annotations

import numpy as np
import pytest

from softgeom.checkpoints import glyphs

pytest.importorskip("PIL")


@pytest.fixture(scope="module")
def font():
    """The font that ships with matplotlib."""
    return glyphs.find_fonts(["DejaVu Sans"])[0]


def test_fonts_are_found_by_family_and_absent_ones_left_out(font):
    assert font.family == "DejaVu Sans"
    assert {"A", "é", "я"} <= font.characters
    assert "字" not in font.characters
    assert glyphs.find_fonts(["No Such Family"]) == []
    assert len(glyphs.find_fonts(["DejaVu Sans", "DejaVu Serif"], limit=1)) == 1


def test_a_line_grows_by_one_em_for_each_character(font):
    one, three = glyphs.render_line("H", font, 40), glyphs.render_line("HHH", font, 40)
    assert (one.height, three.height) == (48, 48)
    assert three.width - one.width == 80
    assert np.asarray(one).min() < 50  # dark strokes
    assert np.asarray(one)[0].min() == 255  # on white


def test_ink_grows_with_strokes(font):
    assert glyphs.ink("-", font) < glyphs.ink("=", font) < glyphs.ink("#", font)


def test_a_missing_glyph_is_an_error_and_no_empty_box(font):
    with pytest.raises(ValueError, match="DejaVu Sans has no glyph for 字"):
        glyphs.render_line("A字", font, 40)


@pytest.mark.parametrize(
    ("character", "standard"),
    [
        ("中", "GB1"),
        ("刈", "GB2"),
        ("雜", "Big5-1"),
        ("鱺", "Big5-2"),
        ("乸", "other"),
        ("A", "sign"),
        ("〒", "sign"),
    ],
)
def test_rarity_follows_the_national_standards(character, standard):
    assert glyphs.rarity(character) == standard
