"""The 150 models of paper 001 by name, and its filter of tokens by script (Section 4.2).

A printed row such as ``en-cs.l2r(1-4)`` stands for four models. A translation model shares its
vocabulary between two languages of different scripts; only tokens of the target language are
counted, and none with digits or punctuation.
"""

import re
import unicodedata
from collections.abc import Iterable

from softgeom.card import script_of

# of the target languages of Tables 5 to 8 whose script differs from the source's
SCRIPTS = {
    "ar": {"Arabic"},
    "el": {"Greek"},
    "en": {"Latin"},
    "he": {"Hebrew"},
    "ja": {"Han", "Hiragana", "Katakana"},
    "ko": {"Hangul"},
    "ru": {"Cyrillic"},
}
_SEPARATE = {"bergamot", "edinburgh-wmt17"}  # families whose models have no address on the hub
_HUB = "Helsinki-NLP"


def models_of_row(source: str, row: str) -> list[str]:
    """The names of the models that a printed row stands for; hub ids where the hub has them."""
    several = re.fullmatch(r"(.*)\((\d+)-(\d+)\)", row)
    names = [row]
    if several:
        stem, first, last = several.groups()
        names = [f"{stem}({n})" for n in range(int(first), int(last) + 1)]
    prefix = _HUB if source == "helsinki-nlp" else source if source in _SEPARATE else ""
    return [f"{prefix}/{name}" if prefix else name for name in names]


def on_hub(model: str) -> bool:
    """Whether the name is an id of the hub, not a second model of a pair or of another family."""
    return model.split("/")[0] not in _SEPARATE and "(" not in model


def target_language(model: str) -> str | None:
    """The target language of an OPUS model, the ones to which the paper's filter applies."""
    found = re.search(r"opus-mt-[a-z]+-([a-z]+)", model)
    return found[1] if found else None


def in_language(tokens: Iterable[str], language: str) -> list[bool]:
    """For each token whether it counts as one of the language: all its letters in the language's
    script, no digit and no punctuation; special tokens such as ``<unk>`` count. ValueError for a
    language whose script is not listed.
    """
    if language not in SCRIPTS:
        known = ", ".join(SCRIPTS)
        raise ValueError(f"no script is listed for the language {language!r}; there are {known}.")
    scripts = SCRIPTS[language]
    return [_counts(token.removeprefix("▁"), scripts) for token in tokens]


def _counts(token: str, scripts: set[str]) -> bool:
    if re.fullmatch(r"<\w+>", token):
        return True
    if any(unicodedata.category(c)[0] in "NP" for c in token):
        return False
    letters = [c for c in token if c.isalpha()]
    return bool(letters) and all(script_of(c) in scripts for c in letters)
