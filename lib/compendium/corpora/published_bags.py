"""The reviews as the authors of 004 prepare them, rebuilt from their published script.

Theirs: links, markup, digits and characters outside ASCII go, punctuation becomes space, a letter
repeated more than twice is written twice; case is kept; English stop words in lower case go, nouns
are brought to the singular; train and test together make the vocabulary; a review shorter than 128
words is filled up with a padding word that attends like any other. Here the stop words are
scikit-learn's and what punctuation leaves of contractions (theirs: NLTK's), a singular is accepted
when it occurs in the corpus (theirs: in WordNet), and a random order stands for theirs.
"""

import re
import string
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compendium.corpora.reviews import Reviews
from papers.hardmax import reviews as prepare
from papers.hardmax.reviews import WORDS_PER_REVIEW, Bags, Tokens

PADDING = "<PAD>"
_GONE = re.compile(r"https?://\S+|www\.\S+|<[^>]+>")
_REPEATED = re.compile(r"(.)\1+")
_CHARACTERS = str.maketrans(dict.fromkeys(string.punctuation, " ") | dict.fromkeys(string.digits))
_FRAGMENTS = frozenset(
    "t s d m o y ll re ve ma don ain aren couldn didn doesn hadn hasn haven isn mightn mustn "
    "needn shan shouldn wasn weren won wouldn".split()
)
# Endings of plurals and what stands for them in the singular, tried in this order (Fellbaum,
# "WordNet", 1998: the rules of detachment for nouns).
_DETACHED = {"s": "", "ses": "s", "ves": "f", "xes": "x", "zes": "z", "ches": "ch", "shes": "sh"}
_DETACHED |= {"men": "man", "ies": "y"}


@dataclass(frozen=True)
class PublishedBags:
    """All labelled reviews, train before test, as bags over one vocabulary; word 0 pads."""

    bags: Bags
    labels: np.ndarray  # (N,) 0 or 1
    vocabulary: np.ndarray  # (W,)
    training: int  # how many of them are of the standard training part

    @property
    def without_padding(self) -> Bags:
        """The same reviews of real words alone."""
        counts = np.where(self.bags.words == 0, 0, self.bags.counts).astype(np.float32)
        return Bags(self.bags.words, counts)


def split_as_published(text: str) -> list[str]:
    """The words of a review after the authors' cleaning, stop words still in."""
    plain = _GONE.sub("", text).translate(_CHARACTERS).encode("ascii", "ignore").decode()
    return _REPEATED.sub(r"\1\1", plain).split()


def load_published_bags(
    reviews: Reviews, largest_part: int, rng: np.random.Generator
) -> PublishedBags:
    """Both labelled parts, of each at most `largest_part` reviews, drawn at random (0: all)."""
    parts = []
    for part in (reviews.train, reviews.test):
        chosen = np.sort(rng.permutation(len(part))[: largest_part or None])
        parts.append(part.iloc[chosen])
    both = pd.concat(parts, ignore_index=True)
    lexicon: dict[str, int] = {}
    tokens = prepare.tokenise(both["text"], lexicon, split_as_published)
    numbers, vocabulary = _number(tokens, list(lexicon))
    bags = _padded(prepare.bag(tokens, numbers))
    return PublishedBags(bags, prepare.check_labels(both), vocabulary, len(parts[0]))


def singulars(words: list[str]) -> list[str]:
    """For each word the first singular of it that is among the words, else the word itself."""
    known = set(words)

    def of(word: str) -> str:
        for ending, instead in _DETACHED.items():
            form = word.removesuffix(ending) + instead
            if word.endswith(ending) and form in known:
                return form
        return word

    return [of(word) for word in words]


def _number(tokens: Tokens, spelling: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the lexicon's words by falling frequency, from 1; -1 for stop words, before and
    after the plural goes. And the words.
    """
    stops = prepare.stop_words() | _FRAGMENTS
    forms = singulars(spelling)
    both = zip(spelling, forms, strict=True)
    gone = np.array([word in stops or form in stops for word, form in both])
    first: dict[str, int] = {}
    group = np.array([first.setdefault(form, len(first)) for form in forms])
    counted = np.where(gone, 0, 1)[tokens.ids]
    frequency = np.bincount(group[tokens.ids], counted, minlength=len(first))
    order = np.argsort(-frequency, kind="stable")[: np.count_nonzero(frequency)]
    number = np.full(len(first), -1)
    number[order] = np.arange(1, len(order) + 1)
    # one entry more than words: `bag` takes the length as a bound on numbers, which begin at 1 here
    numbers = np.append(np.where(gone, -1, number[group]), -1)
    return numbers, np.concatenate([[PADDING], np.array(list(first))[order]])


def _padded(bags: Bags) -> Bags:
    """Reviews filled up to 128 words with the padding word, which stands behind the others."""
    missing = WORDS_PER_REVIEW - bags.counts.sum(1)
    words, counts = (np.pad(x, ((0, 0), (0, 1))) for x in (bags.words, bags.counts))
    behind = (counts > 0).sum(1)
    rows = np.flatnonzero(missing > 0)
    words[rows, behind[rows]], counts[rows, behind[rows]] = 0, missing[rows]
    return Bags(words, counts)
