"""The feed-forward network as a key-value memory (002, "Feedforward Network Block").

    FFN(y) = g(y W_in) W_out + b_out = sum_f a_f(y) v_f + b_out,
    key k_f = column f of W_in (D), value v_f = row f of W_out (D).

(The notes give W_out the shape (D, F); rows as values need (F, D).) A key fires on inputs y, its
value row is read by the unembedding: v_f u_t / s is what one unit of activation adds to the logit
of token t. A gated network has two keys per neuron, whose product fires.
"""

from __future__ import annotations

import torch
from torch import Tensor

from softgeom.circuits.anatomy import Anatomy, BlockAnatomy
from softgeom.language_model import Internals


def sum_over_neurons(block: BlockAnatomy, activations: Tensor) -> Tensor:
    """Every neuron's write a_f v_f, (..., F) -> (..., F, D): with b_out the network's write."""
    return activations[..., None] * block.W_out


def strongest_inputs(activations: Tensor, neuron: int, count: int) -> tuple[Tensor, Tensor]:
    """The ``count`` positions at which a neuron of activations (positions, F) is most active:
    values and positions, descending.
    """
    values, positions = activations[:, neuron].topk(min(count, len(activations)))
    return values, positions


def promoted_tokens(
    folded: Anatomy, layer: int, neuron: int, count: int, sign: float = 1.0
) -> tuple[Tensor, Tensor]:
    """The ``count`` tokens whose logits a value row raises most, against the average token, before
    the division by the scale: gains and tokens, descending. The anatomy is from `fold_norms`; with
    ``sign`` -1 those of a neuron that fires negatively.
    """
    gains = (folded.W_U - folded.W_U.mean(0)) @ (sign * folded.blocks[layer].W_out[neuron])
    values, tokens = gains.topk(count)
    return values, tokens


def participation(activations: Tensor, block: BlockAnatomy) -> Tensor:
    """Neurons that share a write, (sum c)^2 / sum c^2 with c_f = |a_f| |v_f|: (..., F) -> (...)."""
    sizes = activations.abs() * block.W_out.norm(dim=-1)
    return sizes.sum(-1).square() / sizes.square().sum(-1)


def share_of_active(activations: Tensor, threshold: float) -> Tensor:
    """Fraction of neurons with |a_f| above `threshold` times the largest: (..., F) -> (...)."""
    sizes = activations.abs()
    return (sizes > threshold * sizes.amax(-1, keepdim=True)).to(sizes.dtype).mean(-1)


def fewest_neurons(activations: Tensor, block: BlockAnatomy, share: float) -> Tensor:
    """Neurons, largest |a_f| |v_f| first, that hold `share` of the total: (..., F) -> (...)."""
    sizes = (activations.abs() * block.W_out.norm(dim=-1)).sort(-1, descending=True).values
    held = sizes.cumsum(-1) / sizes.sum(-1, keepdim=True)
    return (held < share).sum(-1) + 1


def explained_by_token(activations: Tensor, tokens: Tensor, half: Tensor) -> Tensor:
    """How much of each neuron's firing the token just read predicts in texts not seen: (F,) shares
    of variance, at most 1.

    The prediction at a position of one half is the mean activation after the same token in the
    other half (the overall mean where that half lacks the token); both halves take both parts. A
    key that detects "this token was read" scores near 1, one whose firing has nothing to do with
    the token 0 or less.

    Parameters
    ----------
    activations : Tensor
        (N, F), positions of many texts.
    tokens : Tensor
        (N), the token read at each.
    half : Tensor
        (N) booleans: which half a position belongs to, whole texts together.
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


def busiest_neurons(anatomy: Anatomy, internals: Internals, count: int) -> list[tuple[int, int]]:
    """(layer, neuron) with the largest single write |a_f| |v_f|, the layers taking turns."""
    by_layer = [
        (layer.mlp_post.abs().flatten(0, 1) * block.W_out.norm(dim=-1))
        .amax(0)
        .topk(count)
        .indices.tolist()
        for block, layer in zip(anatomy.blocks, internals.layers, strict=True)
    ]
    return [
        (depth, neurons[rank]) for rank in range(count) for depth, neurons in enumerate(by_layer)
    ][:count]


def matched_keys(block: BlockAnatomy, mlp_in: Tensor, neuron: int) -> Tensor:
    """Products of states with a neuron's key or, gated, its two keys: (..., D) -> (..., 1 or 2)."""
    keys = (
        [block.W_in[:, neuron]]
        if block.W_gate is None
        else [block.W_gate[:, neuron], block.W_in[:, neuron]]
    )
    return mlp_in @ torch.stack(keys, dim=1)
