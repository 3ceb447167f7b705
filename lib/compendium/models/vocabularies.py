"""Advertised and reachable vocabularies of released models: their scans, kept, and what is read
where a lost character is drawn, in a font that matplotlib brings (DejaVu Sans, no Chinese).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from compendium import paths
from compendium.models import glyphs
from compendium.models.characters import partners
from compendium.models.released import available as available
from compendium.models.scans import kept_scan
from softgeom.card import script_of
from softgeom.checkpoints import Head, load_head, load_softmax_layer
from softgeom.layer import Box
from softgeom.scan_result import Scan

# language, word and meaning: a word of everyday life for each letter that one of the recognisers
# lists; capitals, as on a sign
_SIGNS = paths.LIB.parent / "data" / "reference" / "words_on_signs.csv"
WORDS = tuple(pd.read_csv(_SIGNS).itertuples(index=False, name=None))


def heads(names: Iterable[str]) -> tuple[dict[str, Head], dict[str, str]]:
    """The last layers of those that can be had, by name, and of the others why not."""
    found, absent = available(names)
    return {name: load_head(name) for name in found}, absent


def scan_released(name: str) -> Scan:
    """The scan of a released model's head in the box of 100, all classes; kept."""
    layer = load_softmax_layer(name)
    return kept_scan(layer, np.arange(layer.classes), Box(100.0))


def writing_of(token: str) -> str:
    """The script of a token; Chinese ones as simplified or traditional by national standards."""
    script = {"Other": "signs, no letters"}.get(script_of(token), script_of(token))
    if script != "Han" or len(token) != 1:
        return {"Hiragana": "kana", "Katakana": "kana"}.get(script, script)
    simplified, traditional = (_in_standard(token, encoding) for encoding in ("gb2312", "big5"))
    if simplified == traditional:
        return "Han, both" if simplified else "Han, other"
    return "Han, simplified" if simplified else "Han, traditional"


def letters(found: Scan, *, lost: bool, font: glyphs.Font) -> list[str]:
    """Letters outside ASCII that the font draws and the model can never (or can) answer with."""
    verdict = "unargmaxable" if lost else "argmaxable"
    table = found.table
    tokens = table["token"][table["verdict"] == verdict]
    kept = [t for t in tokens if len(t) == 1 and t.isalpha() and not t.isascii()]
    scripts = {"Latin", "Greek", "Cyrillic"}
    return [t for t in kept if t in font.characters and script_of(t) in scripts]


def matched(lost: Sequence[str], free: Sequence[str], font: glyphs.Font) -> list[str]:
    """For each lost letter another one of the same script and case, of the same Unicode block,
    which stands for rarity, where there is one left, with the closest ink.
    """
    inks = {c: glyphs.ink(c, font) for c in {*lost, *free}}
    return partners(
        lost,
        free,
        lambda c: (script_of(c), c.isupper()),
        lambda a, b: (abs(_block(a) - _block(b)), abs(inks[a] - inks[b])),
    )


def between(letter: str) -> str:
    """The letter between two plain ones of its script and case, which every recogniser reads."""
    neighbours = {"Greek": "ΑΕ", "Cyrillic": "АЕ"}.get(script_of(letter), "AE")
    pair = neighbours if letter.isupper() else neighbours.lower()
    return pair[0] + letter + pair[1]


def _block(letter: str) -> int:
    starts = [0x100, 0x180, 0x250, 0x370, 0x400, 0x460, 0x1E00, 0x1F00]
    return int(np.searchsorted(starts, ord(letter), side="right"))


def _in_standard(character: str, encoding: str) -> bool:
    return len(unicodedata.normalize("NFC", character).encode(encoding, errors="ignore")) == 2
