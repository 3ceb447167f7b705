"""Words with the sentiment that people gave them: the valences of VADER (Hutto and Gilbert 2014),
ten raters a word, from -4 to 4, read as text from the package vaderSentiment (MIT).

It knows nothing of the reviews' labels, and so can judge models that were trained on them.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

from softgeom.source import Source, announce, sha256_of

_APOSTROPHES = str.maketrans("", "", "'’`´")  # the reviews' words are spelt without them

ABSENT = Source("no sentiment lexicon", "embedded", "the package vaderSentiment is not installed")


def load_valences(vocabulary: list[str] | np.ndarray) -> tuple[np.ndarray | None, Source]:
    """The valence of each word (W,), NaN where the lexicon does not list it; None, and why, when it
    is not there. ValueError at a line without a word and a number.
    """
    spec = importlib.util.find_spec("vaderSentiment")
    file = Path(spec.origin or "").with_name("vader_lexicon.txt") if spec else None
    if file is None or not file.is_file():
        return None, announce(ABSENT)
    text = file.read_text(encoding="utf-8")
    valence: dict[str, float] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        word, *columns = line.split("\t")
        try:
            valence.setdefault(word.lower().translate(_APOSTROPHES), float(columns[0]))
        except (IndexError, ValueError):
            told = f"not a word and its valence: {line[:60]!r}"
            raise ValueError(f"{file.name}, line {number}: {told}") from None
    named, digest = ("VADER sentiment lexicon", "package", "vaderSentiment"), text.encode()
    source = Source(*named, sha256=sha256_of(digest))
    return np.array([valence.get(str(word), np.nan) for word in vocabulary]), announce(source)
