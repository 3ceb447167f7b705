"""The reviews as the hardmax chapter reads them: bags of distinct words for three parts, with
labels, one vocabulary, and the texts for a teacher.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from compendium.corpora.reviews import Reviews
from softgeom.hardmax import reviews as prepare
from softgeom.hardmax.reviews import Bags, Tokens


@dataclass(frozen=True)
class ReviewBags:
    """Train, test and unlabelled part; `tokens` are the whole texts, `bags` the first 128 known
    words of each.
    """

    train: pd.DataFrame
    bags: Bags
    labels: np.ndarray
    tokens: Tokens
    test_bags: Bags
    test_labels: np.ndarray
    test_tokens: Tokens
    more_bags: Bags
    more_tokens: Tokens
    vocabulary: list[str]
    lexicon_size: int  # distinct words of all texts
    also_in_test: tuple[int, int]  # texts dropped from train and from the unlabelled part

    def table(self) -> pd.DataFrame:
        """Reviews used, texts dropped, mean words and distinct words of a review, by part."""
        parts = {"train": self.bags, "test": self.test_bags, "unlabelled": self.more_bags}
        dropped = (self.also_in_test[0], 0, self.also_in_test[1])
        return pd.DataFrame(
            {
                "part": name,
                "reviews": len(bags),
                "also_in_test": gone,
                "words": bags.counts.sum() / len(bags),
                "distinct_words": (bags.counts > 0).sum() / len(bags),
                "vocabulary": len(self.vocabulary),
            }
            for (name, bags), gone in zip(parts.items(), dropped, strict=True)
        )


def load_bags(reviews: Reviews, largest_part: int, rng: np.random.Generator) -> ReviewBags:
    """Clean, number and count the words of all parts; of each part at most `largest_part` reviews,
    drawn at random (0: all).

    Texts that are also in the test part are dropped from the others; so are unlabelled reviews
    without a known word.

    ValueError when labels are wrong, or a labelled review has no known word.
    """

    def part_of(frame: pd.DataFrame) -> pd.DataFrame:
        if largest_part and len(frame) > largest_part:
            frame = frame.iloc[np.sort(rng.permutation(len(frame))[:largest_part])]
        return frame.reset_index(drop=True)

    alone = [
        prepare.drop_texts_of(part, reviews.test) for part in (reviews.train, reviews.unsupervised)
    ]
    test, train, more = part_of(reviews.test), part_of(alone[0]), part_of(alone[1])
    lexicon: dict[str, int] = {}
    tokens, test_tokens, more_tokens = (
        prepare.tokenise(part["text"], lexicon) for part in (train, test, more)
    )
    vocabulary, numbers = prepare.build_vocabulary(tokens, lexicon)
    bags, test_bags, more_bags = (
        prepare.bag(part, numbers) for part in (tokens, test_tokens, more_tokens)
    )
    if empty := int(bags.empty.sum() + test_bags.empty.sum()):
        raise ValueError(
            f"{empty} labelled reviews hold no word that the vocabulary knows: they cannot "
            f"be classified."
        )
    known = ~more_bags.empty
    return ReviewBags(
        train, bags, prepare.check_labels(train), tokens,
        test_bags, prepare.check_labels(test, "test"), test_tokens,
        more_bags[known], more_tokens[known],
        vocabulary, len(lexicon),
        (len(reviews.train) - len(alone[0]), len(reviews.unsupervised) - len(alone[1])),
    )  # fmt: skip
