"""Words with the sentiment that people gave them: the valences of VADER (Hutto and Gilbert 2014),
ten raters a word, from -4 to 4.

The list comes with the package vaderSentiment (MIT); it is read as text, nothing of the package is
run. It was made from other texts than the reviews and knows nothing of their labels, which is what
makes it a judge of models that were trained on these labels.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

from softgeom.source import Source, announce, sha256_of

_APOSTROPHES = str.maketrans("", "", "'’`´")  # the reviews' words are spelt without them

ABSENT = Source("no sentiment lexicon", "embedded", "the package vaderSentiment is not installed")


def load_valences(vocabulary: list[str] | np.ndarray) -> tuple[np.ndarray | None, Source]:
    """The valence of each word (W,), NaN where the lexicon does not list it; None, and why, when
    the lexicon is not there.

    Raises
    ------
    ValueError
        When the file is not what it should be: a line without a word and a number.
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
            raise ValueError(
                f"{file.name}, line {number}: not a word and its valence: {line[:60]!r}"
            ) from None
    source = Source(
        "VADER sentiment lexicon", "package", "vaderSentiment", "", sha256_of(text.encode())
    )
    return np.array([valence.get(str(word), np.nan) for word in vocabulary]), announce(source)
