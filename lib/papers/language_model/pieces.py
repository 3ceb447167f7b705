"""Tokenizing with a list of scored pieces, as SentencePiece's byte-pair models and llama2.c do.

A text starts as its characters; a character that is no piece becomes its UTF-8 bytes. Then the two
neighbours whose union is the piece with the highest score merge, until no union is a piece.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np


@dataclass(frozen=True)
class PieceTokenizer:
    """Pieces and scores; ids 0, 1, 2 are unknown, beginning, end, and 3 to 258 the bytes."""

    pieces: tuple[bytes, ...]
    scores: tuple[float, ...]

    beginning = 1
    end = 2
    first_byte = 3

    def __len__(self) -> int:
        return len(self.pieces)

    def encode(self, text: str, beginning: bool = True) -> list[int]:
        """Ids of a text after the mark of beginning and, as in training, a space."""
        marked = (" " + text) if text else ""
        # A union that no piece is cannot happen: where no piece reaches over a blank, words merge
        # apart, and each only once.
        words = re.findall(" ?[^ ]+| ", marked) if self._words_are_apart else [marked]
        merged = {word: self._merge(word) for word in set(words)}
        return [self.beginning] * beginning + [i for word in words for i in merged[word]]

    @cached_property
    def _id_of(self) -> dict[bytes, int]:
        # of equal pieces the first one counts
        return {piece: i for i, piece in reversed(list(enumerate(self.pieces)))}

    @cached_property
    def _words_are_apart(self) -> bool:
        return not any(b" " in piece[1:] for piece in self.pieces)

    def _merge(self, text: str) -> list[int]:
        """Ids of a text without the mark, the highest score first, the leftmost of equal ones."""
        id_of, ids = self._id_of, []
        for character in text:
            encoded = character.encode()
            ids += (
                [id_of[encoded]]
                if encoded in id_of
                else [self.first_byte + byte for byte in encoded]
            )
        while True:
            unions = [
                (self.pieces[a] + self.pieces[b], at) for at, (a, b) in enumerate(pairwise(ids))
            ]
            merges = [
                (self.scores[id_of[union]], -at, id_of[union])
                for union, at in unions
                if union in id_of
            ]
            if not merges:
                return ids
            _, minus_at, merged = max(merges)
            ids[-minus_at : -minus_at + 2] = [merged]

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """The text of a sequence of ids, without marks of beginning and end; bytes that are no
        UTF-8 become U+FFFD. ValueError if an id is outside the vocabulary.
        """
        shown = []
        for i in map(int, ids):
            if not 0 <= i < len(self):
                raise ValueError(
                    f"token {i} is outside the vocabulary 0..{len(self) - 1}: is it another "
                    "model's?"
                )
            if i not in (self.beginning, self.end):
                shown.append(self._bytes(i))
        return b"".join(shown).decode(errors="replace")

    def strings(self) -> list[str]:
        """Each token as readable text, by id; lone bytes by their name, like ``<0x0A>``."""
        return [piece.decode(errors="backslashreplace") for piece in self.pieces]

    def _bytes(self, i: int) -> bytes:
        is_byte = self.first_byte <= i < self.first_byte + 256
        return bytes([i - self.first_byte]) if is_byte else self.pieces[i]
