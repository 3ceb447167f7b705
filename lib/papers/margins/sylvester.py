"""The r x r matrices of Sylvester's identity, for all positions from one batched product.

det(I_d - A B) = det(I_Hr - B A) turns the d x d block J_i = I - sum_h W_V^h S_i^h M_h of head count
H and rank r into I - B_i with blocks

    [B_i]_{g h} = W_Q^g W_V^h S_i^h W_K^h^T = sum_j a_ij (W_Q^g W_V^h x_j)(W_K^h x_j)^T -
    (mean)(mean)^T,

which is the (T x T) matrix of weights times the T outer products: no d x d matrix is formed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from papers.margins.heads import AttentionHeads

# Rows of attention weights handled at once: later columns are masked for all of them, so that about
# half the products are never computed, and the block's temporaries stay small.
_BLOCK = 128


class _CentredMoments(torch.autograd.Function):
    """B_i = sum_j a_ij p_j k_j^T - pbar_i kbar_i^T by matrix products over blocks of rows.

    a (N, P, T), p (N, T, m), k (N, T, r) -> B (N, P, m, r).  The T outer products p_j k_j^T (m r
    numbers each) are formed again in the backward pass instead of being kept.  ``ends[b]`` is the
    number of tokens that block b can see.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(a: Tensor, p: Tensor, k: Tensor, ends: tuple[int, ...]) -> Tensor:
        outer = _outer(p, k)
        B = torch.cat(
            [a[:, rows, :end] @ outer[:, :end] for rows, end in _blocks(ends, a.shape[1])], dim=1
        )
        B = B.unflatten(-1, (p.shape[-1], k.shape[-1]))
        return torch.addcmul(B, (a @ p).unsqueeze(-1), (a @ k).unsqueeze(-2), value=-1.0)

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor, Tensor, tuple[int, ...]], output: Tensor
    ) -> None:
        ctx.save_for_backward(*inputs[:3])
        ctx.ends = inputs[3]

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:  # G: (N, P, m, r)
        # Written in differentiable operations only: a second derivative goes through a, p and k
        # here, not through G alone.
        a, p, k = ctx.saved_tensors
        outer, flat, T = _outer(p, k), G.flatten(-2), p.shape[1]
        blocks = list(_blocks(ctx.ends, a.shape[1]))
        grad_a = torch.cat(
            [pad(flat[:, rows] @ outer[:, :end].mT, (0, T - end)) for rows, end in blocks], dim=1
        )
        parts = [
            pad(a[:, rows, :end].mT @ flat[:, rows], (0, 0, 0, T - end)) for rows, end in blocks
        ]
        W = reduce(torch.add, parts).unflatten(-1, (p.shape[-1], k.shape[-1]))  # sum_i a_ij G_i
        G_k = (G @ (a @ k).unsqueeze(-1)).squeeze(-1)  # G_i kbar_i: (N, P, m)
        G_p = (G.mT @ (a @ p).unsqueeze(-1)).squeeze(-1)  # G_i^T pbar_i: (N, P, r)
        grad_a = grad_a - G_k @ p.mT - G_p @ k.mT
        grad_p = (W @ k.unsqueeze(-1)).squeeze(-1) - a.mT @ G_k
        grad_k = (W.mT @ p.unsqueeze(-1)).squeeze(-1) - a.mT @ G_p
        return grad_a, grad_p, grad_k, None


def _outer(p: Tensor, k: Tensor) -> Tensor:
    """p_j k_j^T, flattened: (N, T, m r)."""
    return (p.unsqueeze(-1) * k.unsqueeze(-2)).flatten(-2)


def _blocks(ends: tuple[int, ...], rows: int) -> Iterator[tuple[slice, int]]:
    for number, end in enumerate(ends):
        yield slice(number * _BLOCK, min((number + 1) * _BLOCK, rows)), end


def _block_ends(heads: AttentionHeads) -> tuple[int, ...]:
    rows = list(range(heads.X.shape[1])) if heads.positions is None else heads.positions.tolist()
    return tuple(max(1, *rows[start : start + _BLOCK]) for start in range(0, len(rows), _BLOCK))


def sylvester_matrices(heads: AttentionHeads) -> Tensor:
    """B_i = [W_Q^g W_V^h S_i^h W_K^h^T]_{g, h}: (N, P, Hr, Hr), with det J_i = det(I - B_i)."""
    H, r, d = heads.Q.shape
    p, k, a = heads.values(heads.Q.reshape(H * r, d)), heads.keys(), heads.weights()
    # A covariance does not see a common shift: taking it out first keeps E[pk] - E[p]E[k] from
    # cancelling in float32.
    p, k = (y - y.mean(dim=-2, keepdim=True).detach() for y in (p, k))
    B = _CentredMoments.apply(a.flatten(0, 1), p.flatten(0, 1), k.flatten(0, 1), _block_ends(heads))
    return B.unflatten(0, (-1, H)).permute(0, 2, 3, 1, 4).flatten(-2)
