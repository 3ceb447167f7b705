"""Characters as images of text lines, in fonts that are the same on every machine.

What a recogniser reads, and what a figure shows, moves with the font. So none is looked for on the
machine. Latin, Greek and Cyrillic letters are drawn in the face that matplotlib brings; Chinese
characters in two faces of Noto (SIL Open Font License 1.1), members of one published wheel, checked
by hash. What a font does not draw is known from its character map.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from softgeom.checkpoints.packages import Member, Wheel, fetch_members
from softgeom.source import Source

if TYPE_CHECKING:
    from PIL.Image import Image

logger = logging.getLogger("softgeom")

_NOTO = Wheel(
    "mplfonts",
    "0.0.10",
    "mplfonts-0.0.10-py3-none-any.whl",
    "835e35ada4a6ef85ce29ea81dd589a98b92af5b5c8e8b9f4e2d79dfea9c2ba40",
    85.0,
)
_CHINESE = {
    "Noto Sans CJK SC": Member(
        "mplfonts/fonts/NotoSansCJKsc-Regular.otf",
        "1652500938055a232cfbfa321de6ebaadfc5635dd9f75e369bc991d14a6512dd",
    ),
    "Noto Serif CJK SC": Member(
        "mplfonts/fonts/NotoSerifCJKsc-Regular.otf",
        "efa5e49879a789c1ecad8f07e1813c7f9aa6c4b951fdbb5791d85d67345632d7",
    ),
}
# the parts of two national standards: encoding, and the first bytes of their characters
_LEAD_BYTES = (
    ("GB1", "gb2312", 0xB0, 0xD7),
    ("GB2", "gb2312", 0xD8, 0xF7),
    ("Big5-1", "big5", 0xA4, 0xC6),
    ("Big5-2", "big5", 0xC9, 0xF9),
)
_LINE_HEIGHT = 1.2  # line height over font size, as text boxes found by a detector have


@dataclass(frozen=True)
class Font:
    """A font file, where it came from, and the characters that it draws."""

    family: str
    path: str
    source: Source
    characters: frozenset[str] = field(repr=False)


def chinese_fonts(limit: int | None = None) -> list[Font]:
    """The pinned fonts with Chinese characters, at most ``limit``; none where pip fails."""
    chosen = dict(list(_CHINESE.items())[:limit])
    try:
        paths = fetch_members(_NOTO, list(chosen.values()))
    except ValueError as error:
        logger.warning("no font with Chinese characters: %s", error)
        return []
    fonts = []
    for path, (family, member) in zip(paths, chosen.items(), strict=True):
        detail = f"{_NOTO.package}, {member.path} (OFL-1.1)"
        source = Source(family, "package", detail, _NOTO.version, member.sha256)
        fonts.append(_font(family, str(path), source))
    return fonts


def latin_font() -> Font:
    """DejaVu Sans as matplotlib brings it, whatever else of that name is installed."""
    import matplotlib

    path = matplotlib.get_data_path() + "/fonts/ttf/DejaVuSans.ttf"
    source = Source("DejaVu Sans", "package", "matplotlib", matplotlib.__version__)
    return _font("DejaVu Sans", path, source)


def _font(family: str, path: str, source: Source) -> Font:
    from matplotlib import ft2font

    return Font(family, path, source, frozenset(map(chr, ft2font.FT2Font(path).get_charmap())))


def render_line(text: str, font: Font, size: int) -> Image:
    """Black text on white, one line, one em of width for each character, ``size`` pixels high (the
    line 1.2 times that). ValueError when the font lacks one of the characters.
    """
    from PIL import Image, ImageDraw, ImageFont

    if missing := set(text) - font.characters - {" "}:
        raise ValueError(f"{font.family} has no glyph for {', '.join(sorted(missing))}.")
    height = round(_LINE_HEIGHT * size)
    image = Image.new("L", (height + size * (len(text) - 1), height), 255)
    centre, face = (image.width / 2, height / 2), ImageFont.truetype(font.path, size)
    ImageDraw.Draw(image).text(centre, text, font=face, fill=0, anchor="mm")
    return image


def ink(character: str, font: Font, size: int = 64) -> float:
    """Share of the square that the strokes cover: a stand-in for the number of strokes."""
    return float(1 - np.asarray(render_line(character, font, size), float).mean() / 255)


def rarity(character: str) -> str:
    """How common a Chinese character is: `"GB1"`, among the 3,755 common ones of GB 2312; `"GB2"`,
    its 3,008 less common ones; `"Big5-1"`, `"Big5-2"`, not in GB 2312, but common or less common in
    Big5 (traditional forms); `"other"`; `"sign"`, no Chinese character.
    """
    for name, encoding, first, last in _LEAD_BYTES:
        encoded = character.encode(encoding, errors="ignore")
        if len(encoded) == 2 and first <= encoded[0] <= last:
            return name
    return "other" if "\u3400" <= character <= "\u9fff" else "sign"
