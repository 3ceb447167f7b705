"""The strings of the classes, and which of them belong to a target language.

Strings come from `tokenizer.json` (any model type of the `tokenizers` library), `vocab.json` or
`vocab.txt`, read as data; no tokenizer is built and no code of a model runs. Byte-level
vocabularies, in which a space is written as another character, are decoded into the text that they
stand for.

The paper's target-language filter (Section 4.2): keep the tokens of one Unicode script and drop
those with a digit or punctuation. The dropped tokens stay competitors; they are only not asked
about.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

TOKEN_FILES = ("tokenizer.json", "vocab.json", "vocab.txt")
# what stands beside the last two: token to id, and a table by id among other things
ADDED_TOKENS = ("added_tokens.json", "tokenizer_config.json")
_WORD_BOUNDARIES = "▁Ġ \t\n"  # how SentencePiece and byte-level vocabularies write a space
_WRITTEN_WITH_HAN = {"HAN": ("CJK",), "JAPANESE": ("CJK", "HIRAGANA", "KATAKANA")}


def classes_in_script(tokens: Sequence[str], script: str) -> np.ndarray:
    """Classes whose tokens, signs for a space aside, are letters (or marks) of one script alone.

    A script is the first word of its letters' Unicode names, such as `"CYRILLIC"`, `"GREEK"` or
    `"HANGUL"`; also `"HAN"` and `"JAPANESE"`. ValueError when no token is left: the scripts that
    do occur are listed.
    """
    wanted = _WRITTEN_WITH_HAN.get(script.upper(), (script.upper(),))
    kept = [index for index, token in enumerate(tokens) if _only_letters_of(token, wanted)]
    if not kept:
        seen = sorted({_script(c) for token in tokens for c in token if c.isalpha()})
        raise ValueError(
            f"no token is written in {script!r} alone; scripts that occur: "
            f"{', '.join(seen[:30]) or 'none'}."
        )
    return np.array(kept)


def _only_letters_of(token: str, scripts: Iterable[str]) -> bool:
    core = token.strip(_WORD_BOUNDARIES)
    letters = [c for c in core if not unicodedata.category(c).startswith("M")]
    return bool(letters) and all(c.isalpha() and _script(c) in scripts for c in letters)


def _script(character: str) -> str:
    return unicodedata.name(character, "UNNAMED").split()[0]


def vocabulary_of(content: Any) -> dict[int, str]:
    """Id to string from `tokenizer.json`; KeyError, TypeError and the like where it is none."""
    vocabulary = content["model"]["vocab"]
    if isinstance(vocabulary, list):  # Unigram: [token, score] in the order of the ids
        strings = {index: entry[0] for index, entry in enumerate(vocabulary)}
    else:
        strings = {int(index): token for token, index in vocabulary.items()}
    if _is_byte_level(content.get("decoder")) or _is_byte_level(content.get("pre_tokenizer")):
        strings = {index: decode_bytes(token) for index, token in strings.items()}
    strings |= {int(added["id"]): added["content"] for added in content.get("added_tokens") or []}
    if odd := [index for index in strings if not 0 <= index < _MOST_TOKENS]:
        raise ValueError(f"id {odd[0]} of {strings[odd[0]]!r:.60} is not the index of a class")
    return strings


def added_tokens(folder: Path) -> dict[int, str]:
    """Id to string of the tokens that a folder adds to its vocabulary, in files of their own."""
    added: dict[int, str] = {}
    for name in ADDED_TOKENS:
        with suppress(OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
            content = json.loads((folder / name).read_bytes())
            if name == ADDED_TOKENS[0]:
                added |= {int(index): token for token, index in content.items()}
            else:
                described = content["added_tokens_decoder"].items()
                added |= {int(index): token["content"] for index, token in described}
    return {index: token for index, token in added.items() if 0 <= index < _MOST_TOKENS}


def _is_byte_level(part: Any) -> bool:
    if not isinstance(part, dict):
        return False
    inner = [*part.get("pretokenizers", []), *part.get("decoders", [])]
    return part.get("type") == "ByteLevel" or any(_is_byte_level(item) for item in inner)


def _byte_of_character() -> dict[str, int]:
    """The byte-level alphabet; printable Latin-1 stands for itself, the rest follow from U+0100."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    shifted = {chr(256 + n): byte for n, byte in enumerate(others)}
    return {chr(byte): byte for byte in printable} | shifted


_MOST_TOKENS = 2**31  # no layer has as many rows
_BYTES = _byte_of_character()


def decode_bytes(token: str) -> str:
    """The text that a token of a byte-level vocabulary stands for."""
    if not all(character in _BYTES for character in token):
        return token
    return bytes(_BYTES[character] for character in token).decode("utf-8", errors="replace")


def decoded(strings: Sequence[str]) -> list[str]:
    """A plain list of tokens, as text where they are of a byte-level vocabulary: it begins with the
    sign of each byte, and has words that follow a space.
    """
    byte_level = _BYTES.keys() <= set(strings) and any(s[:1] == "Ġ" < s for s in strings)
    return [decode_bytes(token) for token in strings] if byte_level else list(strings)
