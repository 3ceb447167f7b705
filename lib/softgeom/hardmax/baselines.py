"""What the same words can do without attention, and a teacher that reads the whole text.

Bag of words: logistic regression on the mean of the (at most 128) words of a review, the ceiling of the source's family of models, since the
decoder of source 004 reads a mean too. Teacher: logistic regression on tf-idf of all words and pairs of neighbours of the full text; its
probabilities on unlabelled reviews are targets for distillation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from softgeom.hardmax.reviews import Bags, Tokens

COLUMNS = 1 << 20  # hashed columns of the teacher; collisions among rare pairs cost nothing measurable


@dataclass(frozen=True)
class BagOfWords:
    """Logistic regression on the mean word vector: logit = <weights, mean> + bias."""

    weights: np.ndarray  # (W,)
    bias: float

    def logits(self, bags: Bags) -> np.ndarray:
        """Logits (N,)."""
        return _means(bags, len(self.weights)) @ self.weights + self.bias


def fit_bag_of_words(bags: Bags, labels: np.ndarray, size: int, strength: float = 100.0) -> BagOfWords:
    """Fit on (N, n) bags over `size` words; `strength` is the inverse of the L2 penalty (scikit-learn's C)."""
    from sklearn.linear_model import LogisticRegression

    with threadpool_limits(1):  # else the last digits, and what is trained from them, depend on the number of threads
        model = LogisticRegression(C=strength, max_iter=500).fit(_means(bags, size), labels)
    return BagOfWords(model.coef_[0], float(model.intercept_[0]))


@dataclass(frozen=True)
class Teacher:
    """A full-text classifier: `probabilities` of the positive class."""

    idf: np.ndarray  # (COLUMNS,)
    model: Any  # scikit-learn's LogisticRegression
    words: int  # size of the lexicon the columns were hashed from

    def probabilities(self, tokens: Tokens) -> np.ndarray:
        """Probability (N,) that each review is positive."""
        return self.model.predict_proba(_tf_idf(_pairs(tokens, self.words), self.idf))[:, 1]


def fit_teacher(tokens: Tokens, labels: np.ndarray, words: int, strength: float = 20.0) -> Teacher:
    """Fit the full-text classifier; `words` is the size of the lexicon, `strength` scikit-learn's C."""
    from sklearn.linear_model import LogisticRegression

    counts = _pairs(tokens, words)
    seen = np.bincount(counts.indices, minlength=COLUMNS)
    idf = np.where(
        seen > 1, np.log((1 + len(tokens)) / (1 + seen)) + 1, 0.0
    )  # what occurs once teaches nothing about other reviews
    with threadpool_limits(1):
        model = LogisticRegression(C=strength, max_iter=60, tol=1e-3).fit(_tf_idf(counts, idf), labels)
    return Teacher(idf, model, words)


def _means(bags: Bags, size: int) -> Any:
    counts = bags.matrix(size)
    return sparse.csr_array(counts.multiply(1 / np.maximum(counts.sum(1), 1)[:, None]))


def _pairs(tokens: Tokens, words: int) -> Any:
    """Counts (N, COLUMNS) of words and of pairs of neighbours within a review, by a multiplicative hash."""
    ids, review = tokens.ids.astype(np.uint64), tokens.review
    neighbours = review[1:] == review[:-1]
    pair = (ids[:-1] * np.uint64(words) + ids[1:] + np.uint64(words))[neighbours]
    keys = np.concatenate([ids, pair]) * np.uint64(
        0x9E3779B97F4A7C15
    )  # 2^64 over the golden ratio (Knuth, TAOCP 3, 6.4)
    columns = (keys >> np.uint64(64 - 20)).astype(np.int64)
    rows = np.concatenate([review, review[:-1][neighbours]])
    return sparse.coo_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(len(tokens), COLUMNS)).tocsr()


def _tf_idf(counts: Any, idf: np.ndarray) -> Any:
    """(1 + log count) idf, rows of length 1."""
    X = counts.copy()
    X.data = (1 + np.log(X.data)) * idf[X.indices].astype(np.float32)
    norms = np.sqrt(np.maximum((X.multiply(X)).sum(1), 1e-12))
    X.data /= np.repeat(norms, np.diff(X.indptr))
    return X
