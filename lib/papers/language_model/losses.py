"""What counting would have known: losses of unigram and bigram tables, the least that a language
model must beat.
"""

from __future__ import annotations

import numpy as np

_WEIGHTS = np.linspace(0.05, 0.95, 19)  # of the pairs in the interpolation


def table_losses(training: np.ndarray, held_out: np.ndarray, size: int) -> tuple[float, float]:
    """Held-out cross-entropies, in nats per token, of two tables counted on the training tokens.

    The first holds single tokens, each counted once more than it occurs. The second mixes the
    frequencies of pairs, w p(t | s) + (1 - w) p(t), with the weight that is best on the held-out
    tokens themselves, which favours the table.

    Parameters
    ----------
    training, held_out : (N,), (M,) integers
        Tokens.
    size : int
        Of the vocabulary.

    Raises
    ------
    ValueError
        When there is no pair to count or to judge.
    """
    if min(len(training), len(held_out)) < 2:
        raise ValueError(
            f"{len(training)} training and {len(held_out)} held-out tokens hold no pair: "
            "give two at least."
        )
    unigram = (np.bincount(training, minlength=size) + 1.0) / (len(training) + size)
    pairs, wanted = (part[:-1].astype(np.int64) * size + part[1:] for part in (training, held_out))
    seen, times = np.unique(pairs, return_counts=True)
    place = np.searchsorted(seen, wanted).clip(max=len(seen) - 1)
    joint = np.where(seen[place] == wanted, times[place], 0)
    first = np.bincount(training[:-1], minlength=size)[held_out[:-1]]
    bigram, alone = joint / np.maximum(first, 1), unigram[held_out[1:]]
    best = min(-np.log(w * bigram + (1 - w) * alone).mean() for w in _WEIGHTS)
    return float(-np.log(alone).mean()), float(best)
