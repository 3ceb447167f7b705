"""A corpus as a language model reads it: three vectors of tokens and the tokenizer, encoded once
and kept in `data/processed/corpora`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compendium import corpora, paths
from compendium.cache import Cache
from papers.language_model.configuration import configuration_hash
from papers.language_model.tokens import BytePairTokenizer, Tokens, encode_parts


@dataclass(frozen=True)
class EncodedText:
    """Tokens of the three parts of a corpus."""

    train: Tokens
    validation: Tokens
    test: Tokens
    tokenizer: BytePairTokenizer
    source: corpora.Source
    key: str  # hash of text and vocabulary size: names the corpus in tables


def load_encoded(
    name: str,
    d_vocab: int,
    *,
    characters: int = 0,
    held_out_characters: int = 0,
    text: corpora.Text | None = None,
) -> EncodedText:
    """Load a corpus by name (as `corpora.load_text`, unless `text` is it), train a byte-level BPE
    of at most `d_vocab` tokens on its training part, and encode so many characters of it and of
    each held-out part, from the start; 0 takes all. ValueError if a part is empty.
    """
    text = text or corpora.load_text(name)
    parts = {
        "train": text.train[: characters or None],
        "validation": text.validation[: held_out_characters or None],
        "test": text.test[: held_out_characters or None],
    }
    for part, content in parts.items():
        if not content.strip():
            raise ValueError(
                f"the {part} part of {name} is empty: a language model needs text in all "
                f"three parts."
            )
    tokens, tokenizer = _cache().keep(encode_parts, parts, d_vocab, label=name)
    return EncodedText(
        **tokens,
        tokenizer=tokenizer,
        source=text.source,
        key=configuration_hash(name, d_vocab, parts),
    )


def _cache() -> Cache[tuple[dict[str, Tokens], BytePairTokenizer]]:
    code = ("papers/language_model/tokens.py", "compendium/models/encoded.py")
    return Cache(paths.processed_dir() / "corpora", _write, _read, code)


def _write(folder: Path, encoded: tuple[dict[str, Tokens], BytePairTokenizer]) -> None:
    tokens, tokenizer = encoded
    np.savez(folder / "tokens.npz", allow_pickle=False, **tokens)
    tokenizer.save(folder / "tokenizer.json")


def _read(folder: Path) -> tuple[dict[str, Tokens], BytePairTokenizer]:
    with np.load(folder / "tokens.npz", allow_pickle=False) as arrays:
        return dict(arrays), BytePairTokenizer.load(folder / "tokenizer.json")
