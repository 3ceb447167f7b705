"""Reviews as bags: cleaning, vocabulary, distinct words with counts, splits without leaks.

Source 004, "Computational contribution": each review is its first n = 128 words after cleaning. A
word that occurs twice is one token with multiplicity two, so a review becomes a row of distinct
word numbers and a row of counts, padded with count 0 (padding is no token). The vocabulary comes
from the training reviews alone.

Symbols: N reviews, n <= 128 the largest number of distinct words in one of them, W the size of the
vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

WORDS_PER_REVIEW = 128  # the source's n
_MARKUP = re.compile(r"<[^>]*>|https?://\S+|www\.\S+")
# runs of letters: punctuation and numbers separate, single letters are dropped
_WORD = re.compile(r"[^\W\d_]{2,}")
# "didn't" becomes "didnt": scikit-learn's stop words are spelt this way
_APOSTROPHES = str.maketrans("", "", "'’`´")


def clean(text: str) -> list[str]:
    """The words of a review, without tags, URLs, punctuation, numbers and single letters."""
    return _WORD.findall(_MARKUP.sub(" ", text).lower().translate(_APOSTROPHES))


def stop_words() -> frozenset[str]:
    """scikit-learn's 318 English stop words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS)


@dataclass(frozen=True)
class Tokens:
    """Cleaned reviews as one row: review r is `ids[offsets[r]:offsets[r + 1]]`, stop words kept."""

    ids: np.ndarray  # (total,) int32 numbers into a lexicon shared by all the splits
    offsets: np.ndarray  # (N + 1,)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: np.ndarray) -> Tokens:
        """The reviews of a boolean mask (N,)."""
        lengths = np.diff(self.offsets)[rows]
        return Tokens(self.ids[rows[self.review]], np.concatenate([[0], np.cumsum(lengths)]))

    @property
    def review(self) -> np.ndarray:
        """For each word the review that it stands in, (total,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))


@dataclass(frozen=True)
class Bags:
    """Reviews as distinct words with counts; padding has word 0 and count 0."""

    words: np.ndarray  # (N, n) int32, numbers into the vocabulary in the order of first occurrence
    counts: np.ndarray  # (N, n) float32

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, rows: np.ndarray | slice) -> Bags:
        return Bags(self.words[rows], self.counts[rows])

    @staticmethod
    def join(*parts: Bags) -> Bags:
        """The reviews of several bags, one after the other."""
        width = max(part.words.shape[1] for part in parts)

        def joined(arrays: list[np.ndarray]) -> np.ndarray:
            return np.concatenate([np.pad(x, ((0, 0), (0, width - x.shape[1]))) for x in arrays])

        return Bags(joined([part.words for part in parts]), joined([part.counts for part in parts]))

    @property
    def empty(self) -> np.ndarray:
        """Reviews in which cleaning left no known word, (N,): they have no dynamics."""
        return np.asarray(~(self.counts > 0).any(1))

    def without(self, marked: np.ndarray) -> Bags:
        """The reviews without the marked words (N, n); one that would become empty stays."""
        counts = np.where(marked, 0, self.counts).astype(self.counts.dtype)
        gone = ~(counts > 0).any(1)
        counts[gone] = self.counts[gone]
        # count 0 is padding, which stands behind
        order = np.argsort(counts <= 0, axis=1, kind="stable")
        return Bags(np.take_along_axis(self.words, order, 1), np.take_along_axis(counts, order, 1))

    def matrix(self, size: int) -> Any:
        """The (N, size) sparse matrix of word counts."""
        from scipy import sparse

        rows, columns = np.nonzero(self.counts)
        return sparse.csr_array(
            (self.counts[rows, columns], (rows, self.words[rows, columns])), shape=(len(self), size)
        )


def tokenise(
    texts: Iterable[str], lexicon: dict[str, int], split: Callable[[str], list[str]] = clean
) -> Tokens:
    """Split texts into words and number them; new words join `lexicon` (word -> number)."""
    ids: list[int] = []
    offsets = [0]
    for text in texts:
        ids.extend([lexicon.setdefault(word, len(lexicon)) for word in split(text)])
        offsets.append(len(ids))
    return Tokens(np.asarray(ids, dtype=np.int32), np.asarray(offsets))


def build_vocabulary(
    tokens: Tokens, lexicon: dict[str, int], *, least: int = 5
) -> tuple[list[str], np.ndarray]:
    """The words of the model, by falling document frequency in at least ``least`` training reviews,
    and the vocabulary number (len(lexicon),) of each word of `tokenise`'s lexicon, -1 for stop
    words and rare ones.
    """
    spelling = list(lexicon)
    stops = stop_words()
    stopped = np.array([word in stops for word in spelling])
    pairs = np.unique(tokens.review * len(spelling) + tokens.ids)  # each word once per review
    frequency = np.bincount(pairs % len(spelling), minlength=len(spelling))
    usable = (frequency >= least) & ~stopped
    if not usable.any():
        raise ValueError(
            f"No word occurs in {least} training reviews: the corpus is too small, or "
            "`least` too large."
        )
    chosen = np.flatnonzero(usable)
    chosen = chosen[np.argsort(-frequency[chosen], kind="stable")]
    number = np.full(len(spelling), -1)
    number[chosen] = np.arange(len(chosen))
    return [spelling[i] for i in chosen], number


def bag(tokens: Tokens, numbers: np.ndarray, length: int = WORDS_PER_REVIEW) -> Bags:
    """Distinct words with counts among each review's first `length` words that `numbers` knows."""
    words = numbers[tokens.ids]
    known = words >= 0
    review, words = tokens.review[known], words[known]
    # place of the word among its review's known words
    position = np.arange(len(words)) - np.searchsorted(review, review)
    review, words, position = (part[position < length] for part in (review, words, position))
    keys = review * len(numbers) + words
    pairs, first, counts = np.unique(keys, return_index=True, return_counts=True)
    order = np.lexsort((position[first], pairs // len(numbers)))
    pairs, counts = pairs[order], counts[order]
    review = pairs // len(numbers)
    column = np.arange(len(pairs)) - np.searchsorted(review, review)
    width = int(column.max()) + 1 if len(column) else 1
    shape = len(tokens), width
    bags = Bags(np.zeros(shape, np.int32), np.zeros(shape, np.float32))
    bags.words[review, column] = pairs % len(numbers)
    bags.counts[review, column] = counts
    return bags


def check_labels(reviews: pd.DataFrame, name: str = "training") -> np.ndarray:
    """Labels (N,) as integers; ValueError unless they are 0 and 1, both present."""
    labels = reviews["label"].to_numpy()
    if (found := sorted(set(labels))) != [0, 1]:
        shown = ", ".join(map(str, found[:5]))
        told = "0 and 1 are needed. Shuffle a file sorted by label before taking a part"
        raise ValueError(f"The labels of the {name} reviews are {shown}: {told}.")
    return labels.astype(np.int64)


def drop_texts_of(reviews: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """`reviews` without texts that `other`, the test part, holds too."""
    return reviews[~reviews["text"].isin(set(other["text"]))].reset_index(drop=True)


def validation_blocks(reviews: pd.DataFrame, blocks: int = 5) -> np.ndarray:
    """The block 0, ..., blocks - 1 of each review, (N,): consecutive file numbers within each label
    or, without file names, consecutive rows. Reviews of one film stand in files of consecutive
    numbers and share names and words, so a random split flatters.
    """
    if "source_file" in reviews:
        found = reviews["source_file"].str.extract(r"(\d+)_\d+\.txt$", expand=False)
        number = found.astype(float).to_numpy()
        if np.isnan(number).any():
            row = int(np.isnan(number).argmax())
            raise ValueError(
                f"Row {row}: {reviews['source_file'].iloc[row]!r} does not look like "
                "'train/pos/123_7.txt'."
            )
    else:
        number = np.arange(len(reviews), dtype=float)
    of_label = pd.Series(number).groupby(reviews["label"].to_numpy())
    rank = of_label.rank(method="first", pct=True).to_numpy()
    return np.minimum((rank * blocks - 1e-9).astype(int), blocks - 1)
