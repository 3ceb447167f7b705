"""Files that name classes, read as data: one name a line, JSON, `tokenizer.json` of any model type,
and pickles of plain data. No tokenizer is built and no code of a model runs.

Byte-level vocabularies, in which a space is written as another character, are decoded into the text
that they stand for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from softgeom.checkpoints.plain_pickle import read_plain_pickle
from softgeom.checkpoints.tensors import plain

TOKEN_FILES = ("tokenizer.json", "vocab.json", "vocab.txt")
# what stands beside the last two: token to id, and a table by id among other things
ADDED_TOKENS = ("added_tokens.json", "tokenizer_config.json")
_LARGEST = 2**26  # bytes of a file of names
_DEEPEST = 6  # levels of a JSON file that are searched for names
_MOST_TOKENS = 2**31  # no layer has as many rows
# what reading a file of another kind raises
_UNFIT = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)

# the byte-level alphabet: printable Latin-1 stands for itself, the rest follow from U+0100
_PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
_BYTES = {chr(byte): byte for byte in _PRINTABLE}
_BYTES |= {chr(256 + n): byte for n, byte in enumerate(_OTHERS)}

Names = Sequence[str] | dict[int, str]


def read_names(path: Path, classes: int) -> Names:
    """The names in a file, in their order or by number: of several lists the one of so many
    classes. ValueError if it holds none.
    """
    if path.stat().st_size > _LARGEST:
        raise ValueError(f"{path} has {path.stat().st_size} bytes, too many for a list of names.")
    try:
        names = _read(path, classes)
        if isinstance(names, dict):
            return dict(zip(names, _decoded(list(names.values())), strict=True))
        return _decoded(names)
    except _UNFIT as error:
        raise ValueError(
            f"{path} is not a vocabulary ({plain(error)}): pass tokenizer.json, vocab.json or "
            "one token a line."
        ) from error


def _read(path: Path, classes: int) -> Names:
    if path.suffix == ".pkl":
        return _from_plain(read_plain_pickle(path), classes)
    text = path.read_text(encoding="utf-8").removeprefix("\ufeff")
    if path.suffix == ".json":
        content = json.loads(text)
        model = content.get("model", "") if isinstance(content, dict) else ""
        if not isinstance(model, int | str | list):
            return _vocabulary_of(content)
        return _from_plain(content, classes)
    return [line.removesuffix("\r") for line in lines(text)]


def lines(text: str) -> list[str]:
    """Its lines; a line feed at the end ends the last one and begins none. Other separators of
    lines are entries of some dictionaries.
    """
    return text.removesuffix("\n").split("\n") if text else []


def _from_plain(content: Any, classes: int) -> Names:
    """The best list of names inside plain data: one that fits the classes, else the outermost."""
    found = list(lists_of_names(content))
    if not found:
        raise ValueError("it holds no list of names")
    return next((names for names in found if len(names) == classes), found[0])


def lists_of_names(content: Any, depth: int = 0) -> Iterator[Names]:
    """Lists of strings in plain data, and strings by number, outermost first."""
    if isinstance(content, list) and content and all(isinstance(item, str) for item in content):
        yield content
    elif isinstance(content, dict) and content:
        values = content.values()
        if all(type(value) is int and value >= 0 for value in values):
            yield {value: str(name) for name, value in content.items()}
        elif all(str(key).isdecimal() and isinstance(value, str) for key, value in content.items()):
            yield {int(key): value for key, value in content.items()}
        elif depth < _DEEPEST:
            for value in values:
                yield from lists_of_names(value, depth + 1)


def _vocabulary_of(content: Any) -> dict[int, str]:
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


def _is_byte_level(part: Any) -> bool:
    if not isinstance(part, dict):
        return False
    inner = [*part.get("pretokenizers", []), *part.get("decoders", [])]
    return part.get("type") == "ByteLevel" or any(_is_byte_level(item) for item in inner)


def added_tokens(folder: Path) -> dict[int, str]:
    """Id to string of the tokens that a folder adds to its vocabulary, in files of their own."""
    added: dict[int, str] = {}
    for name in ADDED_TOKENS:
        with suppress(OSError, *_UNFIT):
            content = json.loads((folder / name).read_bytes())
            if name == ADDED_TOKENS[0]:
                added |= {int(index): token for token, index in content.items()}
            else:
                described = content["added_tokens_decoder"].items()
                added |= {int(index): token["content"] for index, token in described}
    return {index: token for index, token in added.items() if 0 <= index < _MOST_TOKENS}


def decode_bytes(token: str) -> str:
    """The text that a token of a byte-level vocabulary stands for."""
    if not all(character in _BYTES for character in token):
        return token
    return bytes(_BYTES[character] for character in token).decode("utf-8", errors="replace")


def _decoded(strings: Sequence[str]) -> list[str]:
    """A plain list of tokens, as text where they are of a byte-level vocabulary: it begins with the
    sign of each byte, and has words that follow a space.
    """
    byte_level = _BYTES.keys() <= set(strings) and any(s[:1] == "Ġ" < s for s in strings)
    return [decode_bytes(token) for token in strings] if byte_level else list(strings)
