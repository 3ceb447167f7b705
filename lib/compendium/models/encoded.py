"""A corpus as a language model reads it: three vectors of tokens and the tokenizer, encoded once and kept.

Kept in ``data/processed/corpora/<name>-<hash>``, where the hash names text, vocabulary size and length, so that a
notebook that asks again, or another one, reads arrays instead of encoding half a gigabyte.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compendium import corpora, paths
from softgeom.language_model.configuration import configuration_hash
from softgeom.language_model.tokens import BytePairTokenizer, Tokens, train_tokenizer

_MERGE_CHARACTERS = 20_000_000  # merges are learned from this much text: more changes few merges and costs minutes


@dataclass(frozen=True)
class EncodedText:
    """Tokens of the three parts of a corpus."""

    train: Tokens
    validation: Tokens
    test: Tokens
    tokenizer: BytePairTokenizer
    source: corpora.Source
    key: str  # hash of text and tokenizer settings


def load_encoded(
    name: str, d_vocab: int, *, characters: int = 0, held_out_characters: int = 0, text: corpora.Text | None = None
) -> EncodedText:
    """Load a corpus by name, train a byte-level BPE on its training part, and encode it.

    Parameters
    ----------
    name : str
        As for :func:`compendium.corpora.load_text`.
    d_vocab : int
        Most tokens of the vocabulary; a small text may give fewer.
    characters : int
        Of the training part, from its start; 0 takes all.
    held_out_characters : int
        Of the validation part and of the test part; 0 takes all.
    text : corpora.Text, optional
        The corpus itself, when it has been loaded already.

    Raises
    ------
    ValueError
        If a part is empty.
    """
    text = text or corpora.load_text(name)
    parts = {
        "train": text.train[: characters or None],
        "validation": text.validation[: held_out_characters or None],
        "test": text.test[: held_out_characters or None],
    }
    for part, content in parts.items():
        if not content.strip():
            raise ValueError(f"the {part} part of {name} is empty: a language model needs text in all three parts.")
    key = configuration_hash(name, d_vocab, parts)
    folder = paths.processed_dir() / "corpora" / f"{name}-{key}"
    if not (folder / "tokens.npz").is_file():
        _encode(parts, d_vocab, folder)
    with np.load(folder / "tokens.npz", allow_pickle=False) as arrays:
        tokens = {part: arrays[part] for part in parts}
    return EncodedText(
        **tokens, tokenizer=BytePairTokenizer.load(folder / "tokenizer.json"), source=text.source, key=key
    )


def _encode(parts: dict[str, str], d_vocab: int, folder: Path) -> None:
    tokenizer = train_tokenizer(parts["train"][:_MERGE_CHARACTERS], d_vocab)
    incomplete = folder.with_name(folder.name + ".part")
    shutil.rmtree(incomplete, ignore_errors=True)
    incomplete.mkdir(parents=True)
    train, validation, test = (tokenizer.encode(parts[part]) for part in ("train", "validation", "test"))
    np.savez(incomplete / "tokens.npz", train=train, validation=validation, test=test)
    tokenizer.save(incomplete / "tokenizer.json")
    shutil.rmtree(folder, ignore_errors=True)
    incomplete.replace(folder)
