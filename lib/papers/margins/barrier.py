"""The log-barrier of strict-causal attention, exact, batched and differentiable (003, eqs. 14-16,
24).

For tokens x_1..x_T with logits l_ij = (W_Q x_i).(W_K x_j), weights a_ij = softmax over j < i and
covariance S_i = sum_j a_ij (x_j - xbar_i)(x_j - xbar_i)^T the barrier score of a position is

    beta_i = -log |det J_i|,    J_i = I - S_i M,    M = W_K^T W_Q                    (Theorem 1)

and with H heads, head h carrying the value map W_V^h, J_i = I - sum_h W_V^h S_i^h M_h.  Sylvester's
identity det(I_d - A C) = det(I_Hr - C A) gives det J_i = det(I - B_i) with r x r blocks

    [B_i]_gh = W_Q^g W_V^h S_i^h W_K^h^T
             = sum_j a_ij (W_Q^g W_V^h x_j)(W_K^h x_j)^T - (mean)(mean)^T:

one product of the T x T weights with T outer products serves all positions, and no d x d matrix is
formed: O((Hr)^2 T^2 + T (Hr)^3).

:mod:`papers.margins.determinant` says what happens at the boundary.  Everything is computed in
float32 or float64, inside autocast too (call ``backward`` outside).  A covariance has a rounding
error of about eps |p_j| |k_j|, which a float32 barrier feels once queries and keys are longer than
some hundreds.

Shapes: X (..., T, d); W_Q, W_K (r, d) or (H, r, d); W_V (d, d) or (H, d, d); beta (..., T).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple, overload

import torch
from torch import Tensor
from torch.nn.functional import pad

from papers.arrays import Array
from papers.margins.determinant import signed_logdet
from papers.margins.heads import AttentionHeads, prepare_heads
from softgeom.arrays import Floats

# Rows of attention weights handled at once: later columns are masked for all of them, so that about
# half the products are never computed, and the block's temporaries stay small.
_BLOCK = 128


class SignedBarrier(NamedTuple):
    """beta, sign of det J_i (-1 beyond the boundary), replaced pivots: (..., T) each."""

    beta: Array
    sign: Array
    replaced: Array


@overload
def log_barrier(
    X: Tensor, W_Q: Array, W_K: Array, *, W_V: Array | None = None, positions: Array | None = None
) -> Tensor: ...
@overload
def log_barrier(
    X: Floats, W_Q: Array, W_K: Array, *, W_V: Array | None = None, positions: Array | None = None
) -> Floats: ...
def log_barrier(
    X: Array, W_Q: Array, W_K: Array, *, W_V: Array | None = None, positions: Array | None = None
) -> Array:
    """Compute the barrier score beta_i = -log |det(I - S_i W_K^T W_Q)| of every position, in nats
    (Theorem 1 and eq. 24 of the source).

    Parameters
    ----------
    X
        Embeddings (..., T, d), of NumPy or PyTorch.  The finest type of all operands is used, half
        precision lifted to float32, arrays of NumPy to float64.
    W_Q, W_K
        Query and key matrices (r, d), q = W_Q x; or (H, r, d) for H heads.  A full d x d matrix M
        is ``log_barrier(X, M, torch.eye(d))``.  An attention scale such as 1/sqrt(r) belongs into
        W_Q.
    W_V
        Value matrix (d, d) or (H, d, d), out-projection included.  None: values are the embeddings,
        averaged over heads.
    positions
        1-D indices from 0 of the positions wanted; a random subset gives an unbiased estimate of
        the mean over all positions.

    Returns
    -------
    tensor, or array where no operand is a tensor
        (..., T), or (..., len(positions)), float32 or float64.  Position 1 has no past: beta_1 = 0.
        Differentiable as often as asked in all operands, under ``torch.func.vmap`` as well.  A NaN
        in X gives NaN, never a number.

    Raises
    ------
    ValueError
        Shapes that do not fit.
    """
    return signed_log_barrier(X, W_Q, W_K, W_V=W_V, positions=positions).beta


def signed_log_barrier(
    X: Array, W_Q: Array, W_K: Array, *, W_V: Array | None = None, positions: Array | None = None
) -> SignedBarrier:
    """Compute beta_i with the sign of det J_i and the number of replaced pivots, as a training run
    should report them; parameters are those of :func:`log_barrier`.

    ``sign == -1`` says that position i lies beyond the boundary, where the map reverses
    orientation; ``replaced > 0`` that J_i is singular to working precision, so that beta_i is a cap
    (about 16 nats in float32, 36 in float64, for one vanishing pivot).
    """
    heads = prepare_heads(X, W_Q, W_K, W_V, positions)
    with torch.autocast(device_type=heads.X.device.type, enabled=False):
        B = sylvester_matrices(heads)
        identity = torch.eye(B.shape[-1], dtype=B.dtype, device=B.device)
        logabsdet, sign, replaced = signed_logdet(identity - B)
    return SignedBarrier(*map(heads.restore, (-logabsdet, sign, replaced)))


def sylvester_matrices(heads: AttentionHeads) -> Tensor:
    """B_i = [W_Q^g W_V^h S_i^h W_K^h^T]_{g, h}: (N, P, Hr, Hr), with det J_i = det(I - B_i)."""
    H, r, d = heads.Q.shape
    p, k, a = heads.values(heads.Q.reshape(H * r, d)), heads.keys(), heads.weights()
    # A covariance does not see a common shift: taking it out first keeps E[pk] - E[p]E[k] from
    # cancelling in float32.
    p, k = (y - y.mean(dim=-2, keepdim=True).detach() for y in (p, k))
    rows = range(heads.X.shape[1]) if heads.positions is None else heads.positions.tolist()
    ends = tuple(max(1, *rows[start : start + _BLOCK]) for start in range(0, len(rows), _BLOCK))
    B = _CentredMoments.apply(a.flatten(0, 1), p.flatten(0, 1), k.flatten(0, 1), ends)
    return B.unflatten(0, (-1, H)).permute(0, 2, 3, 1, 4).flatten(-2)


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
