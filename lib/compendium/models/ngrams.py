"""Tables of n-grams: what a language model has to beat before its robustness or geometry says
anything about language models.

Interpolated absolute discounting (Ney, Essen and Kneser 1994): with count c, discount D_k and N(h
.) different continuations of a context h,

    p_k(w | h) = max(c(h w) - D_k, 0) / c(h .) + D_k N(h .) / c(h .) p_{k-1}(w | h'),  p_0 = 1 / V,

where h' is h without its first token, a context never seen leaves p_{k-1}, and D_k = n_1 / (n_1 + 2
n_2) from the numbers of k-grams seen once and twice. ``kneser_ney`` counts, below the highest
order, in how many different contexts a k-gram occurs instead of how often (Kneser and Ney 1995). A
table reads the windows that a network was trained on, and predicts every token of a window but the
first; where the context is shorter than the order, the lower orders predict.

Shapes: windows (n, T + 1) integers -> log-probabilities (n, T), nats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from papers.language_model.tokens import Tokens
from softgeom.arrays import Floats

Codes = NDArray[np.int64]

_RARE_DISCOUNT = 0.5  # where no k-gram was seen once, or none twice, and the formula says nothing


@dataclass(frozen=True)
class _Order:
    """Counts of one order k: k-grams and contexts by code, sorted; totals and continuations."""

    grams: Codes
    counts: Floats
    contexts: Codes
    totals: Floats
    continuations: Floats
    discount: float

    @classmethod
    def of(cls, grams: Codes, counts: Floats, d_vocab: int) -> _Order:
        once, twice = (counts == 1).sum(), (counts == 2).sum()
        discount = once / (once + 2 * twice) if once and twice else _RARE_DISCOUNT
        contexts, where = np.unique(grams // d_vocab, return_inverse=True)
        totals = np.bincount(where, weights=counts, minlength=len(contexts)).astype(float)
        continuations = np.bincount(where, minlength=len(contexts)).astype(float)
        return cls(grams, counts, contexts, totals, continuations, float(discount))

    def interpolate(self, grams: Codes, lower: Floats, d_vocab: int) -> Floats:
        """p_k of the grams from p_{k-1} of their tails."""
        seen, at = _find(self.contexts, grams // d_vocab)
        total = np.where(seen, self.totals[at], 1.0)
        known, place = _find(self.grams, grams)
        discounted = np.where(known, np.maximum(self.counts[place] - self.discount, 0.0), 0.0)
        freed = self.discount * self.continuations[at] * lower
        return np.where(seen, (discounted + freed) / total, lower)


class NGramTable:
    """A smoothed table of n-grams of order 1, 2 or 3, fitted on windows (n, T + 1) of a vocabulary.
    ValueError if the order is another, there is no window, or a token lies outside the vocabulary.
    """

    def __init__(
        self, training: Tokens, d_vocab: int, order: int, *, kneser_ney: bool = False
    ) -> None:
        if order not in (1, 2, 3):
            raise ValueError(f"order {order}: tables of one, two or three tokens are made.")
        self.d_vocab, self.order = d_vocab, order
        windows, places = self._checked(training), range(1, order + 1)
        raw = {k: np.unique(_grams(windows, k, d_vocab), return_counts=True) for k in places}
        self._orders = []
        for k in places:
            grams, counts = raw[k]
            if kneser_ney and k < order:
                grams, counts = np.unique(raw[k + 1][0] % d_vocab**k, return_counts=True)
            self._orders.append(_Order.of(grams, counts.astype(float), d_vocab))

    def log_probabilities(self, windows: Tokens) -> Floats:
        """Log-probability of every token of the windows but the first, given those before it."""
        tokens = self._checked(windows)
        p = np.full((len(tokens), tokens.shape[1] - 1), 1.0 / self.d_vocab)
        for k, counted in enumerate(self._orders, start=1):
            first = max(k - 1, 1)  # the first target with a context of k - 1 tokens
            grams = _grams(tokens, k, self.d_vocab)[:, first - (k - 1) :]
            p[:, first - 1 :] = counted.interpolate(grams, p[:, first - 1 :], self.d_vocab)
        return np.log(p)

    def perplexity(self, windows: Tokens) -> float:
        """exp of the mean negative log-probability over all predictions."""
        return float(np.exp(-self.log_probabilities(windows).mean()))

    def _checked(self, windows: Tokens) -> Codes:
        tokens = np.asarray(windows, dtype=np.int64)
        least = max(2, self.order)
        if tokens.ndim != 2 or not tokens.size or tokens.shape[1] < least:
            told = f"not an array of shape {tokens.shape}."
            raise ValueError(f"windows of at least {least} tokens are needed, {told}")
        if tokens.min() < 0 or tokens.max() >= self.d_vocab:
            told = f"do not fit a vocabulary of {self.d_vocab}."
            raise ValueError(f"the tokens {tokens.min()} to {tokens.max()} {told}")
        return tokens


def _grams(tokens: Codes, k: int, d_vocab: int) -> Codes:
    """Codes of the k-grams that end at each token with k - 1 before it: (n, T + 2 - k)."""
    codes = np.zeros((len(tokens), tokens.shape[1] + 1 - k), dtype=np.int64)
    for j in range(k):
        codes = codes * d_vocab + tokens[:, j : j + codes.shape[1]]
    return codes


def _find(sorted_codes: Codes, codes: Codes) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Whether each code is among the sorted ones, and where."""
    at = np.searchsorted(sorted_codes, codes).clip(max=len(sorted_codes) - 1)
    return sorted_codes[at] == codes, at
