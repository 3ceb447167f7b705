"""Byte-pair encoding: text <-> integers, without an unknown token.

The alphabet has the 256 bytes, so every text round-trips; merges are learned greedily from the
training text (Sennrich et al. 2016) or come with a released model. A corpus of tokens is one long
vector; a window of T + 1 consecutive tokens gives T predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers import decoders as bpe_decoders
from tokenizers import models as bpe_models
from tokenizers import pre_tokenizers as bpe_splitters
from tokenizers import trainers as bpe_trainers

from softgeom.writing import write_text

Tokens = NDArray[np.int32]

END = "<|end|>"  # ends a document, so that a window may span two of them
_ENDS = (END, "<|endoftext|>")  # ours, and that of GPT-2 and its descendants
_MERGE_CHARACTERS = 20_000_000  # learned from: more changes few merges and costs minutes
_CHUNK = 20_000  # characters handed to the encoder at a time, so that it runs in parallel


class BytePairTokenizer:
    """A BPE, made with :func:`train_tokenizer`, :meth:`load`, :meth:`from_pieces` or
    :meth:`from_scores`. Where it has a ``beginning``, a text starts with that mark and a space.
    """

    def __init__(self, inner: Tokenizer, beginning: int | None = None) -> None:
        self._inner, self.beginning = inner, beginning

    def __len__(self) -> int:
        return self._inner.get_vocab_size()

    @property
    def end(self) -> int:
        """Id of the end-of-document token; ValueError if the vocabulary has none of those known."""
        for mark in _ENDS:
            if (found := self._inner.token_to_id(mark)) is not None:
                return int(found)
        raise ValueError(
            f"the vocabulary has no mark for the end of a document, neither {' nor '.join(_ENDS)}."
        )

    def encode(self, text: str) -> Tokens:
        """Ids of a text, shape (n,)."""
        start = [] if self.beginning is None else [self.beginning]
        if text and start:
            text = " " + text
        chunks = self._inner.encode_batch(_split(text), add_special_tokens=False)
        return np.concatenate(
            [np.asarray(ids, dtype=np.int32) for ids in (start, *(chunk.ids for chunk in chunks))]
        )

    def decode(self, tokens: Sequence[int] | Tokens) -> str:
        """The text of ids, without marks where texts have a beginning; bytes that are not UTF-8
        become the replacement character. ValueError if an id is outside the vocabulary.
        """
        ids = [int(token) for token in tokens]
        if odd := [i for i in ids if not 0 <= i < len(self)]:
            raise ValueError(
                f"token {odd[0]} is outside the vocabulary 0..{len(self) - 1}: is it another "
                "model's?"
            )
        return self._inner.decode(ids, skip_special_tokens=self.beginning is not None)

    def strings(self) -> list[str]:
        """Each token as text, by id; a lone byte shows as the replacement character, or by its
        name, like ``<0x0A>``, where the vocabulary has one.
        """
        if self.beginning is not None:
            return [str(self._inner.id_to_token(token)) for token in range(len(self))]
        return [self.decode([token]) for token in range(len(self))]

    def save(self, path: Path) -> None:
        """Write the tokenizer as JSON."""
        write_text(path, self._inner.to_str(pretty=False))

    @classmethod
    def from_pieces(
        cls,
        pieces: Sequence[str],
        merges: Sequence[str],
        marks: Sequence[int] = (),
        *,
        single_digits: bool = False,
    ) -> BytePairTokenizer:
        """The tokenizer of a released model, from its byte-level pieces in order of id (a space is
        written Ġ) and its merges in order of rank, two pieces each with a blank between. ``marks``
        are ids of pieces that stand for no text and are never split; ``single_digits`` says that
        each digit is a word of its own.
        """
        ids = {piece: i for i, piece in reversed(list(enumerate(pieces)))}
        pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
        inner = Tokenizer(bpe_models.BPE(vocab=ids, merges=pairs))
        words = bpe_splitters.ByteLevel(add_prefix_space=False)
        digits = [bpe_splitters.Digits(individual_digits=True)] if single_digits else []
        inner.pre_tokenizer = bpe_splitters.Sequence([*digits, words])
        inner.decoder = bpe_decoders.ByteLevel()
        inner.add_special_tokens([pieces[i] for i in marks])
        return cls(inner)

    @classmethod
    def from_scores(cls, pieces: Sequence[str], scores: Sequence[float]) -> BytePairTokenizer:
        """The tokenizer of a SentencePiece model of Llama's kind: ids 0, 1, 2 are unknown,
        beginning and end, 3 to 258 the bytes, and of two neighbours whose union is a piece those
        with the highest score merge first.
        """
        ids = {piece: i for i, piece in reversed(list(enumerate(pieces)))}
        cuts = [(piece[:at], piece[at:]) for piece in pieces[259:] for at in range(1, len(piece))]
        merges = [(left, right) for left, right in cuts if left in ids and right in ids]
        merges.sort(key=lambda pair: -scores[ids["".join(pair)]])
        inner = Tokenizer(bpe_models.BPE(vocab=ids, merges=merges, byte_fallback=True))
        if not any(" " in piece[1:] for piece in pieces):  # no piece reaches over a blank
            inner.pre_tokenizer = bpe_splitters.Split(" ", "merged_with_next")
        inner.decoder = bpe_decoders.Sequence([bpe_decoders.ByteFallback(), bpe_decoders.Fuse()])
        inner.add_special_tokens(list(pieces[1:3]))
        return cls(inner, beginning=1)

    @classmethod
    def load(cls, path: Path) -> BytePairTokenizer:
        """Read a tokenizer written by :meth:`save`."""
        return cls(Tokenizer.from_str(path.read_text(encoding="utf-8")))


def train_tokenizer(text: str, d_vocab: int) -> BytePairTokenizer:
    """Learn a byte-level BPE of at most ``d_vocab`` tokens from a text. ValueError if ``d_vocab``
    leaves no room for the 256 bytes and the end token, or the text is empty.
    """
    if d_vocab < 257:
        raise ValueError(
            f"a vocabulary of {d_vocab} cannot hold the 256 bytes and the end token: take at "
            "least 257."
        )
    if not text.strip():
        raise ValueError("the corpus is empty: a tokenizer needs text to learn its merges from.")
    inner = Tokenizer(bpe_models.BPE())
    inner.pre_tokenizer = bpe_splitters.ByteLevel(add_prefix_space=False)
    inner.decoder = bpe_decoders.ByteLevel()
    trainer = bpe_trainers.BpeTrainer(
        vocab_size=d_vocab,
        special_tokens=[END],
        initial_alphabet=bpe_splitters.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(_split(text), trainer)
    return BytePairTokenizer(inner)


def encode_parts(
    parts: dict[str, str], d_vocab: int, learn_from: str = "train"
) -> tuple[dict[str, Tokens], BytePairTokenizer]:
    """Learn at most ``d_vocab`` tokens from the first 20 million characters of one part of a corpus
    (name -> text), and encode all of them; errors as of :func:`train_tokenizer`.
    """
    tokenizer = train_tokenizer(parts[learn_from][:_MERGE_CHARACTERS], d_vocab)
    return {part: tokenizer.encode(text) for part, text in parts.items()}, tokenizer


def windows(tokens: Tokens, length: int, count: int | None = None) -> Tokens:
    """Windows (n, T + 1) of T predictions each that share none: each starts on the last token of
    the one before. ``count`` of them, spread evenly over the corpus; all by default.
    """
    available = (len(tokens) - 1) // length
    if available < 1:
        raise ValueError(
            f"the corpus has {len(tokens)} tokens, one window needs {length + 1}: use more "
            "text or a shorter context."
        )
    count = available if count is None else min(count, available)
    starts = np.linspace(0, available - 1, count).astype(int) * length
    return tokens[starts[:, None] + np.arange(length + 1)]


def _split(text: str) -> list[str]:
    """Cut at line ends into chunks, losing no character."""
    chunks, start = [], 0
    while start < len(text):
        stop = min(start + _CHUNK, len(text))
        line_end = text.rfind("\n", start, stop)
        if stop < len(text) and line_end > start:
            stop = line_end
        chunks.append(text[start:stop])
        start = stop
    return chunks
