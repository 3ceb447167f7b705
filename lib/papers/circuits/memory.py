"""The feed-forward network as a memory (002, "Feedforward Network Block"; Geva et al. 2021, 2022):
what fires its keys, and whether its values promote what comes next.

The *triggers* of a neuron are the positions of a corpus at which its activation is largest in
modulus. Three questions are asked, each with a null:

* does the key detect a pattern? The purity of its triggers is the share of them at which the
  commonest token was read; the null is the purity of as many random positions.
* does the value answer the key? The promotion of token t by value row v is its gain in standard
  deviations over the vocabulary, z_t = v . (u_t - mean u) / sd_t(v . u_t), with the sign of the
  activation; averaged over the tokens that follow the triggers. The null gives each neuron the
  value row of another one of its layer.
* does the token just read predict which keys fire? The null shuffles the tokens.

The corpus goes through the model in chunks of windows, and only the triggers stay, L F k numbers.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from papers.circuits.anatomy import Anatomy, walk


@dataclass(frozen=True)
class Triggers:
    """The strongest activations of every neuron over a corpus."""

    values: Tensor  # (L, F, k) activations, signed, largest modulus first
    positions: Tensor  # (L, F, k) places in the windows laid end to end


@torch.no_grad()
def find_triggers(anatomy: Anatomy, windows: Tensor, count: int, chunk: int = 16) -> Triggers:
    """Read a corpus, cut into windows (N, T) of which ``chunk`` are in memory at a time, and keep
    the ``count`` positions where each neuron fired most. ValueError if there are fewer positions.
    """
    N, T = windows.shape
    if count > N * T:
        raise ValueError(f"{N * T} positions cannot hold {count} triggers: read more text.")
    L, F_ = len(anatomy.blocks), anatomy.sizes["F"]
    values = anatomy.W_E.new_zeros(L, F_, count)
    positions = torch.zeros_like(values, dtype=torch.long)
    for start in range(0, N, chunk):
        for depth, layer in enumerate(walk(anatomy, windows[start : start + chunk])):
            fired = layer.mlp_post.flatten(0, 1).T  # (F, positions)
            few = fired.abs().topk(min(count, fired.shape[1]), dim=1).indices
            both = torch.cat((values[depth], fired.gather(1, few)), 1)
            places = torch.cat((positions[depth], few + start * T), 1)
            best = both.abs().topk(count, dim=1).indices
            values[depth], positions[depth] = both.gather(1, best), places.gather(1, best)
    return Triggers(values, positions)


def purity(tokens: Tensor) -> Tensor:
    """The share of the commonest token among k: (..., k) integers -> (...)."""
    same = (tokens[..., :, None] == tokens[..., None, :]).sum(-1)
    return same.amax(-1).double() / tokens.shape[-1]


def purity_by_chance(read: Tensor, count: int, draws: int, generator: torch.Generator) -> Tensor:
    """Purity of `count` random positions of a corpus (N,), `draws` times: the null of `purity`."""
    return purity(read[torch.randint(len(read), (draws, count), generator=generator)])


def promotion(
    folded: Anatomy, triggers: Triggers, following: Tensor, shuffled: torch.Generator | None = None
) -> Tensor:
    """Mean promotion (L, F), by each neuron's value row, of the tokens ``following`` (positions,)
    its triggers; the anatomy is from `fold_norms`. ``shuffled`` gives each neuron the value row of
    another one of its layer: the null.
    """
    folded.check_folded()
    centred = folded.W_U - folded.W_U.mean(0)
    covariance = centred.T @ centred / len(centred)  # of the vocabulary's rows, (D, D)
    means = []
    for block, values, positions in zip(
        folded.blocks, triggers.values, triggers.positions, strict=True
    ):
        rows = block.W_out
        if shuffled is not None:
            # A cyclic shift of a random order: every neuron gets another one's row.
            order = torch.randperm(len(rows), generator=shuffled)
            rows = torch.empty_like(rows).index_copy_(0, order, block.W_out[order.roll(1)])
        # sd over the vocabulary of v . u_t
        spread = ((rows @ covariance) * rows).sum(-1).clamp(min=0).sqrt()
        gains = torch.einsum("fd,fkd->fk", rows, centred[following[positions]]) * values.sign()
        means.append(gains.mean(1) / spread.clamp(min=torch.finfo(rows.dtype).tiny))
    return torch.stack(means)


def explained_by_token(activations: Tensor, tokens: Tensor, half: Tensor) -> Tensor:
    """How much of each neuron's firing (N, F) the token just read (N,) predicts in texts not seen:
    (F,) shares of variance, at most 1. ``half`` (N,) parts whole texts in two; the prediction in
    one half is the mean activation after the same token in the other (the overall mean where that
    half lacks the token).
    """
    error = torch.zeros_like(activations)
    for learn, test in ((half, ~half), (~half, half)):
        overall = activations[learn].mean(0)
        size = int(tokens.max()) + 1
        sums = activations.new_zeros(size, activations.shape[1])
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
    """Share of neurons that the token predicts better than in 95 of 100 shuffles of the tokens (all
    neurons together), and the mean share of variance explained.
    """
    explained = explained_by_token(activations, tokens, half)
    orders = (torch.randperm(len(tokens), generator=generator) for _ in range(shuffles))
    by_chance = torch.cat([explained_by_token(activations, tokens[o], half) for o in orders])
    return float((explained > by_chance.quantile(0.95)).double().mean()), float(explained.mean())
