"""Neurons that detect a token (002, "Feedforward Network Block"): how well the token just read
predicts which keys of the feed-forward memory fire.
"""

from __future__ import annotations

import torch
from torch import Tensor


def explained_by_token(activations: Tensor, tokens: Tensor, half: Tensor) -> Tensor:
    """How much of each neuron's firing (N, F) the token just read (N,) predicts in texts not seen:
    (F,) shares of variance, at most 1. ``half`` (N,) parts whole texts in two.

    The prediction at a position of one half is the mean activation after the same token in the
    other half (the overall mean where that half lacks the token); both halves take both parts. A
    key that detects "this token was read" scores near 1, one whose firing has nothing to do with
    the token 0 or less.
    """
    error = torch.zeros_like(activations)
    for learn, test in ((half, ~half), (~half, half)):
        overall = activations[learn].mean(0)
        size = int(tokens.max()) + 1
        sums = torch.zeros(size, activations.shape[1], dtype=activations.dtype)
        sums.index_add_(0, tokens[learn], activations[learn] - overall)
        counts = torch.bincount(tokens[learn], minlength=size)[:, None]
        error[test] = activations[test] - overall - (sums / counts.clamp(min=1))[tokens[test]]
    return 1 - error.square().mean(0) / activations.var(0, correction=0).clamp(
        min=torch.finfo(activations.dtype).tiny
    )


def share_of_detectors(
    activations: Tensor,
    tokens: Tensor,
    half: Tensor,
    generator: torch.Generator,
    shuffles: int = 20,
) -> tuple[float, float]:
    """Share of neurons that the token predicts better than in 95 of 100 shuffles of the tokens, and
    the mean share of variance explained.

    The 95% point of the shuffles is taken over all neurons and shuffles together.
    """
    explained = explained_by_token(activations, tokens, half)
    by_chance = torch.cat(
        [
            explained_by_token(
                activations, tokens[torch.randperm(len(tokens), generator=generator)], half
            )
            for _ in range(shuffles)
        ]
    )
    return float((explained > by_chance.quantile(0.95)).double().mean()), float(explained.mean())
