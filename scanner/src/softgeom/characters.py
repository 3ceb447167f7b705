"""The characters of a text, and the classes of a layer that write them.

A character is a code point with the marks behind it, or a pair of regional indicators. It is looked
up in the model's list as it stands, then under a canonically equivalent name (Unicode Standard
Annex 15: NFC and NFD), then part by part.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from softgeom.layer import SoftmaxLayer

# names that stand for no character: <blank>, [PAD], </s>, <unused 7>, blank
_SPECIAL = re.compile(r"<[^<>]+>|\[[A-Z]+\d*\]|blank", re.IGNORECASE)
# share of names of one character from which a list is one of characters: OCR's have 99.9%, the
# vocabularies of language models, and labels, below a half
_ALPHABET = 0.9
_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_SELECTORS = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
_INDICATORS = range(0x1F1E6, 0x1F200)
_FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")


@dataclass(frozen=True)
class Wanted:
    """A character and how often it stands in the text; for each of its parts the classes that write
    it, no part where one is missing; the normal form under which they were found ("" as it is).
    """

    text: str
    count: int
    parts: tuple[tuple[int, ...], ...] = ()
    form: str = ""


def cut(text: str) -> list[str]:
    """The characters of a text, in order."""
    found: list[str] = []
    for c in text:
        last = found[-1] if found else ""
        flag = ord(c) in _INDICATORS and len(last) == 1 and ord(last) in _INDICATORS
        mark = unicodedata.category(c)[0] == "M" and last not in _BREAKS
        if last and (flag or mark):
            found[-1] += c
        else:
            found.append(c)
    return found


def look_up(layer: SoftmaxLayer, text: str) -> tuple[list[Wanted], dict[str, int]]:
    """The different characters of a text in order of appearance, and how often what is passed over
    stands there: line breaks, and what prints nothing (controls, joiners, variation selectors),
    where the layer has no class of that name. ValueError if the layer's names are none of
    characters, or the text has none.
    """
    _refuse_pieces(layer)
    names = _Names(layer.tokens or ())
    wanted, passed_over = [], Counter[str]()
    for character, count in Counter(cut(text)).items():
        each = names.find(character, count)
        if not each.parts and character in _BREAKS:
            passed_over["line breaks"] += count
        elif not each.parts and all(_prints_nothing(c) for c in character):
            passed_over[points(character)] += count
        else:
            wanted.append(each)
    if not wanted:
        raise ValueError("the text is empty: it has no character to ask about.")
    return wanted, dict(passed_over)


def look_up_tokens(layer: SoftmaxLayer, listed: Iterable[Any]) -> list[Wanted]:
    """Tokens and class numbers as they are; ValueError for another number, or where there are
    none.
    """
    names, wanted = _Names(layer.tokens or ()), []
    for name, count in Counter(listed).items():
        if isinstance(name, int | np.integer) and 0 <= name < layer.classes:
            wanted.append(Wanted(layer.token(int(name)), count, ((int(name),),)))
        elif isinstance(name, str):
            classes = names.exact.get(name)
            wanted.append(Wanted(name, count, (tuple(classes),) if classes else ()))
        else:
            raise ValueError(
                f"the model has no class {name!r:.40}: a list has tokens, or numbers below "
                f"{layer.classes}."
            )
    if not wanted:
        raise ValueError("the list is empty: it has no token to ask about.")
    return wanted


def points(text: str) -> str:
    """The code points of a text, such as ``U+0065 U+0301``."""
    return " ".join(f"U+{ord(c):04X}" for c in text)


class _Names:
    """Classes by their names, as they are and up to canonical equivalence."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tokens
        self.exact: dict[str, list[int]] = {}
        self.equal: dict[str, list[int]] = {}
        for t, token in enumerate(tokens):
            self.exact.setdefault(token, []).append(t)
            self.equal.setdefault(unicodedata.normalize("NFC", token), []).append(t)

    def find(self, character: str, count: int) -> Wanted:
        """The classes that write a character: of its name, else of an equivalent name, else of its
        parts.
        """
        if character in self.exact:
            return Wanted(character, count, (tuple(self.exact[character]),))
        composed = unicodedata.normalize("NFC", character)
        if composed in self.equal:
            classes = tuple(self.equal[composed])
            form = "NFC" if self.tokens[classes[0]] == composed else "NFD"
            return Wanted(character, count, (classes,), form)
        forms = {"": character} | {form: unicodedata.normalize(form, character) for form in _FORMS}
        for form, parts in forms.items():
            if len(parts) > 1 and all(part in self.exact for part in parts):
                return Wanted(character, count, tuple(tuple(self.exact[p]) for p in parts), form)
        return Wanted(character, count)


def _refuse_pieces(layer: SoftmaxLayer) -> None:
    """ValueError where classes are pieces of words or labels: no rule finds them in a text."""
    if layer.tokens is None:
        raise ValueError(
            "coverage needs to know what each class writes: pass --tokens with the model's list of "
            "characters."
        )
    names = [name for name in layer.tokens if not _SPECIAL.fullmatch(name)]
    single = sum(len(cut(name)) == 1 for name in names)
    if not names or single < _ALPHABET * len(names):
        raise ValueError(
            f"the model has no list of characters ({single:,} of {len(names):,} names are one "
            "character): which classes write a text only its own tokenizer knows; pass what that "
            "gives, class numbers or tokens, as a list to softgeom.coverage in Python."
        )


def _prints_nothing(c: str) -> bool:
    return unicodedata.category(c) in ("Cc", "Cf") or any(ord(c) in some for some in _SELECTORS)
