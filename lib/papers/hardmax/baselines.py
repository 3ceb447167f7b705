"""What the same words can do without attention, and a teacher that reads the whole text.

Bag of words: logistic regression on the mean of the (at most 128) words of a review, the ceiling of
the source's family of models, since the decoder of source 004 reads a mean too. Teacher: logistic
regression on the words, pairs and triples of neighbours of the full text, each weighted by how
differently the two classes use it (Wang and Manning, "Baselines and bigrams", 2012); its
probabilities on unlabelled reviews are targets for distillation.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from papers.hardmax.reviews import Bags, Tokens
from softgeom.threads import one_thread

HASH_BITS = 22  # the teacher's phrases share 2^22 columns
LONGEST = 3  # words in a phrase of the teacher


@dataclass(frozen=True)
class BagOfWords:
    """Logistic regression on the mean word vector: logit = <weights, mean> + bias."""

    weights: np.ndarray  # (W,)
    bias: float

    def logits(self, bags: Bags) -> np.ndarray:
        """Logits (N,)."""
        return _means(bags, len(self.weights)) @ self.weights + self.bias


def fit_bag_of_words(bags: Bags, labels: np.ndarray, size: int) -> BagOfWords:
    """Fit on (N, n) bags over `size` words."""
    from sklearn.linear_model import LogisticRegression

    # else the last digits, and what is trained from them, depend on the number of threads
    with one_thread():
        model = LogisticRegression(C=100.0, max_iter=500).fit(_means(bags, size), labels)
    return BagOfWords(model.coef_[0], float(model.intercept_[0]))


@dataclass(frozen=True)
class Teacher:
    """A full-text classifier: `probabilities` of the positive class."""

    # (2^HASH_BITS,) log ratio of a phrase's shares of the two classes; 0 when seen less than twice
    ratios: np.ndarray
    model: Any  # scikit-learn's LogisticRegression on the columns with a ratio
    words: int  # size of the lexicon the columns were hashed from

    def probabilities(self, tokens: Tokens) -> np.ndarray:
        """Probability (N,) that each review is positive."""
        return self.model.predict_proba(_weighted(_phrases(tokens, self.words), self.ratios))[:, 1]


def fit_teacher(tokens: Tokens, labels: np.ndarray, words: int) -> Teacher:
    """Fit the full-text classifier over `words` words."""
    from sklearn.linear_model import LogisticRegression

    there = _phrases(tokens, words)
    positive, negative = (there[labels == label].sum(0) + 1.0 for label in (1, 0))
    ratios = np.log(positive / positive.sum()) - np.log(negative / negative.sum())
    ratios[positive + negative < 4] = 0  # what occurs once teaches nothing about other reviews
    with one_thread():
        model = LogisticRegression(C=30.0, max_iter=200).fit(_weighted(there, ratios), labels)
    return Teacher(ratios, model, words)


def _means(bags: Bags, size: int) -> Any:
    counts = bags.matrix(size)
    return sparse.csr_array(counts.multiply(1 / np.maximum(counts.sum(1), 1)[:, None]))


def _phrases(tokens: Tokens, words: int) -> Any:
    """Which words and runs of up to LONGEST words a review holds, hashed: (N, 2^HASH_BITS)."""
    digits, base = tokens.ids.astype(np.uint64) + np.uint64(1), np.uint64(words + 1)
    review = tokens.review.astype(np.int32)
    key, rows, columns = np.zeros_like(digits), [], []
    for length in range(1, LONGEST + 1):
        reach = max(len(digits) - length + 1, 0)
        # a run of words is a number to the base words + 1
        key = key[:reach] * base + digits[length - 1 :]
        inside = review[length - 1 :] == review[:reach]
        # 2^64 over the golden ratio (Knuth, TAOCP 3, 6.4)
        hashed = key[inside] * np.uint64(0x9E3779B97F4A7C15)
        rows.append(review[:reach][inside])
        columns.append((hashed >> np.uint64(64 - HASH_BITS)).astype(np.int32))
    row, column = np.concatenate(rows), np.concatenate(columns)
    entries = (np.ones(len(column), np.float32), (row, column))
    found = sparse.coo_array(entries, shape=(len(tokens), 1 << HASH_BITS)).tocsr()
    found.data[:] = 1
    return found


def _weighted(there: Any, ratios: np.ndarray) -> Any:
    """Phrases times their ratios on the columns that have one, rows of length 1."""
    X = there[:, np.flatnonzero(ratios)]
    X.data = ratios[ratios != 0].astype(np.float32)[X.indices]
    norms = np.sqrt(np.maximum((X.multiply(X)).sum(1), 1e-12))
    X.data /= np.repeat(norms, np.diff(X.indptr))
    return X
