"""Losses in nats per token: of a model on windows of a corpus, and of tables of counts, the least
that a language model must beat.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from papers.language_model.decoder import Decoder
from papers.language_model.tokens import Tokens

_WEIGHTS = np.linspace(0.05, 0.95, 19)  # of the pairs in the interpolation


@torch.no_grad()
def window_losses(
    model: Decoder,
    window_tokens: Tokens,
    *,
    perturb: Callable[[Tensor, slice], Tensor] | None = None,
    batch_size: int = 64,
) -> np.ndarray:
    """Cross-entropy (n, T), float64, of every prediction in windows (n, T + 1). ``perturb``
    (embeddings (B, T, D), rows) changes embeddings before the first block; ``rows`` says which
    windows they are.
    """
    device = model.W_E.device
    found = []
    for start in range(0, len(window_tokens), batch_size):
        rows = slice(start, start + batch_size)
        batch = torch.from_numpy(window_tokens[rows].astype(np.int64)).to(device)
        embeddings = model.embed(batch[:, :-1])
        if perturb is not None:
            embeddings = perturb(embeddings, rows)
        logits = model.decode(embeddings).transpose(1, 2).float()
        found.append(F.cross_entropy(logits, batch[:, 1:], reduction="none").double().cpu())
    return torch.cat(found).numpy()


def table_losses(training: np.ndarray, held_out: np.ndarray, size: int) -> tuple[float, float]:
    """Held-out cross-entropies of two tables counted on the training tokens, for a vocabulary of
    ``size``. ValueError when there is no pair to count or to judge.

    The first holds single tokens, each counted once more than it occurs. The second mixes the
    frequencies of pairs, w p(t | s) + (1 - w) p(t), with the weight that is best on the held-out
    tokens themselves, which favours the table.
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
