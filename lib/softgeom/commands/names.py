"""Classes as people write them on a command line: tokens, numbers, or a file of either."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from softgeom.bottleneck.verdict_table import escape_token
from softgeom.layer import SoftmaxLayer

_NUMBER = re.compile(r"[0-9]{1,18}")


class Names:
    """Finds a layer's classes by token (as it is, or as the tables write it), else by number."""

    def __init__(self, layer: SoftmaxLayer) -> None:
        self.layer = layer

    @cached_property
    def _places(self) -> dict[str, set[int]]:
        places: dict[str, set[int]] = {}
        for i, token in enumerate(self.layer.tokens or ()):
            for name in {token, escape_token(token)}:
                places.setdefault(name, set()).add(i)
        return places

    def find(self, name: str | int, option: str) -> int:
        """The class of that name or number; ValueError when there is none, or several have it."""
        if not isinstance(name, str):
            if 0 <= int(name) < self.layer.classes:
                return int(name)
            name = str(name)
        places = self._places.get(name, set())
        if len(places) == 1:
            return next(iter(places))
        if len(places) > 1:
            which = f"classes {sorted(places)[:4]} are all called {name!r:.80}"
            raise ValueError(f"{option}: {which}: give the number.")
        if _NUMBER.fullmatch(name) and int(name) < self.layer.classes:
            return int(name)
        raise ValueError(
            f"{option}: the model has no class {name!r:.80}: pass a token of its vocabulary "
            f"or a number below {self.layer.classes}."
        )

    def read(self, words: Sequence[Any], option: str) -> list[int]:
        """One set of classes from words, each once; ``@FILE`` stands for that file's lines."""
        named = [name for word in words for line in _lines(word, option) for name in line]
        found = [self.find(name, option) for name in named]
        if not found:
            raise ValueError(f"{option} names no class: give at least one.")
        seen: set[int] = set()
        for i, name in zip(found, named, strict=True):
            if i in seen:
                raise ValueError(f"{option} has a duplicate: {name!r:.80}.")
            seen.add(i)
        return found

    def read_sets(self, words: Sequence[Any], option: str, *, empty: bool) -> list[list[int]]:
        """Sets of classes: the words, and each line of an ``@FILE``; may one be ``empty``?"""
        word = words[0] if len(words) == 1 and isinstance(words[0], str) else ""
        if word[:1] == "@" and Path(word[1:]).is_file():
            return [self.read(line, option) for line in _lines(word, option)]
        return [[]] if empty and not words else [self.read(words, option)]


def _lines(word: str | int, option: str) -> list[list[Any]]:
    """The names on each line of ``@FILE``, between tabs; a word without such a file is a name."""
    if not isinstance(word, str):
        return [[word]]
    path = Path(word[1:])
    if word[:1] != "@" or not word[1:] or not path.is_file():
        return [[word]]
    try:
        return [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if line]
    except UnicodeDecodeError:
        raise ValueError(
            f"{option} {word}: the file is not a text; write one name a line."
        ) from None
