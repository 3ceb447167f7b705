"""Characters as images of text lines, in fonts that this machine has.

Fonts are found by family name through matplotlib's font list, so no path stands anywhere;
characters that a font does not draw are told by its character map, since the box drawn instead
would be read as something else. `rarity` says how common a character is by the standards that were
made to order them: no model and no corpus is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

FAMILIES = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",  # the first face of Noto's collection, which font lists often name alone
    "WenQuanYi Zen Hei",
    "Noto Serif CJK SC",
    "Noto Serif CJK JP",
    "WenQuanYi Micro Hei",
    "Source Han Sans SC",
    "Droid Sans Fallback",
    "PingFang SC",
    "Songti SC",
    "SimSun",
    "SimHei",
    "Microsoft YaHei",
)
HOW_TO_GET_A_FONT = (
    "no font with Chinese characters is installed: apt-get install fonts-wqy-zenhei fonts-noto-cjk"
)
_LINE_HEIGHT = 1.2  # line height over font size, as text boxes found by a detector have


@dataclass(frozen=True)
class Font:
    """A font file with the characters that it draws."""

    family: str
    path: str
    characters: frozenset[str] = field(repr=False)


def find_fonts(families: Sequence[str] = FAMILIES, limit: int | None = None) -> list[Font]:
    """The fonts of these families that are installed, one for each file; empty when there is none.

    Parameters
    ----------
    families : sequence of str
        Family names, best first.
    limit : int, optional
        At most so many.
    """
    from matplotlib import font_manager, ft2font

    regular = {
        e.name: e.fname
        for e in font_manager.fontManager.ttflist
        if e.style == "normal" and e.weight in (400, "normal", "regular")
    }
    anything = {entry.name: entry.fname for entry in font_manager.fontManager.ttflist}
    paths: dict[str, str] = {}
    for family in families:
        path = regular.get(family) or anything.get(family)
        if path and path not in paths.values():
            paths[family] = path
    fonts = []
    for family, path in list(paths.items())[:limit]:
        characters = frozenset(map(chr, ft2font.FT2Font(path).get_charmap()))
        fonts.append(Font(family, path, characters))
    return fonts


def render_line(text: str, font: Font, size: int) -> Image:
    """Black text on white, one line, one em of width for each character.

    Parameters
    ----------
    text : str
        What to draw.
    font : Font
        In which font; ValueError when it lacks one of the characters.
    size : int
        Font size in pixels; the line is 1.2 times as high.
    """
    from PIL import Image, ImageDraw

    if missing := set(text) - font.characters - {" "}:
        raise ValueError(f"{font.family} has no glyph for {', '.join(sorted(missing))}.")
    height = round(_LINE_HEIGHT * size)
    image = Image.new("L", (height + size * (len(text) - 1), height), 255)
    centre = (image.width / 2, height / 2)
    ImageDraw.Draw(image).text(centre, text, font=_open(font.path, size), fill=0, anchor="mm")
    return image


def ink(character: str, font: Font, size: int = 64) -> float:
    """Share of the square that the strokes cover: a stand-in for the number of strokes that any
    font can give.
    """
    return float(1 - np.asarray(render_line(character, font, size), float).mean() / 255)


def rarity(character: str) -> str:
    """How common a Chinese character is, by the two national standards that order characters by
    use.

    Returns
    -------
    str
        `"GB1"`: among the 3,755 common ones of GB 2312; `"GB2"`: among its 3,008 less common ones;
        `"Big5-1"`, `"Big5-2"`: not in GB 2312, but among the common or the less common ones of Big5
        (traditional forms); `"other"` Chinese characters; `"sign"`: anything else.
    """
    lead = _lead_byte(character, "gb2312")
    if 0xB0 <= lead <= 0xD7:
        return "GB1"
    if 0xD8 <= lead <= 0xF7:
        return "GB2"
    lead = _lead_byte(character, "big5")
    if 0xA4 <= lead <= 0xC6:
        return "Big5-1"
    if 0xC9 <= lead <= 0xF9:
        return "Big5-2"
    return "other" if "\u3400" <= character <= "\u9fff" else "sign"


def _lead_byte(character: str, encoding: str) -> int:
    encoded = character.encode(encoding, errors="ignore")
    return encoded[0] if len(encoded) == 2 else 0


def _open(path: str, size: int):
    from PIL import ImageFont

    return ImageFont.truetype(path, size)
