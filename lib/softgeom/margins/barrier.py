"""The log-barrier of strict-causal attention, exact, batched and differentiable (003, eqs. 14-16, 24).

For tokens x_1..x_T with logits l_ij = (W_Q x_i).(W_K x_j), weights a_ij = softmax over j < i and covariance
S_i = sum_j a_ij (x_j - xbar_i)(x_j - xbar_i)^T the barrier score of a position is

    beta_i = -log |det J_i|,    J_i = I - S_i M,    M = W_K^T W_Q                                   (Theorem 1)

and with H heads, head h carrying the value map W_V^h, J_i = I - sum_h W_V^h S_i^h M_h.  Three exact routes:

* ``dense``: the d x d determinant as written: O(T^2 d^2 + T d^3) per sequence;
* ``low_rank``: det(I_d - A B) = det(I_Hr - B A) (Sylvester), where block (g, h) of B A is
  W_Q^g W_V^h S_i^h W_K^h^T = sum_j a_ij (W_Q^g W_V^h x_j)(W_K^h x_j)^T - (mean)(mean)^T, so that one product of the
  weights with the T outer products serves all positions, and no d x d matrix is formed: O((Hr)^2 T^2 + T (Hr)^3);
* ``dual``: the same identity with the tokens of the past as inner dimension, HT x HT, for sequences shorter than r.

Two estimates with their errors are in :mod:`softgeom.margins.barrier_estimates`.  The boundary is treated as
:mod:`softgeom.margins.determinant` says.  Everything is computed in float32 or float64, inside autocast too.

Shapes: X (..., T, d); W_Q, W_K (r, d) or (H, r, d); W_V (d, d) or (H, d, d); beta (..., T).  N: flattened batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from softgeom.margins.determinant import signed_logdet

# Rows of attention weights handled at once: later columns are masked for all of them, so about half the products
# are never computed, and the temporary outer products of a block stay small.
_BLOCK = 128

EXACT_METHODS = ("dense", "low_rank", "dual")


class SignedBarrier(NamedTuple):
    """beta (..., T), sign of det J_i (-1 beyond the boundary) and number of replaced pivots, all (..., T)."""

    beta: Tensor
    sign: Tensor
    replaced: Tensor


@dataclass(frozen=True)
class AttentionHeads:
    """Checked operands in one layout: X (N, T, d), Q and K (H, r, d), V (H, d, d) or None for I / H."""

    X: Tensor
    Q: Tensor
    K: Tensor
    V: Tensor | None
    positions: Tensor | None  # (P,) rows wanted, or None for all
    batch: torch.Size

    def values(self, W: Tensor) -> Tensor:
        """W W_V^h x_j for every head: W (m, d) -> (N, H, T, m)."""
        H = self.Q.shape[0]
        if self.V is None:
            return ((self.X @ W.mT) / H).unsqueeze(1).expand(-1, H, -1, -1)
        return self.X.unsqueeze(1) @ (W @ self.V).mT

    def keys(self) -> Tensor:
        """W_K^h x_j: (N, H, T, r)."""
        return self.X.unsqueeze(1) @ self.K.mT

    def weights(self) -> Tensor:
        """Strict-causal attention weights a_ij: (N, H, P, T); the row of position 1 is zero, it has no past."""
        rows = torch.arange(self.X.shape[1], device=self.X.device) if self.positions is None else self.positions
        queries = self.X[:, rows].unsqueeze(1) @ self.Q.mT
        past = torch.arange(self.X.shape[1], device=self.X.device) < rows[:, None]  # (P, T)
        logits = (queries @ self.keys().mT).masked_fill(~past, torch.finfo(self.X.dtype).min)
        return torch.softmax(logits, dim=-1) * past


def prepare_heads(X: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor | None, positions: Tensor | None) -> AttentionHeads:
    """Check shapes, add the missing head axis, lift half precision to float32, flatten the batch."""
    if X.ndim < 2 or X.shape[-2] == 0:
        raise ValueError(f"X must be (..., T, d) with T >= 1, got {tuple(X.shape)}: pass one sequence of embeddings.")
    Q, K = (W.unsqueeze(0) if W.ndim == 2 else W for W in (W_Q, W_K))
    if Q.ndim != 3 or Q.shape != K.shape or Q.shape[-1] != X.shape[-1]:
        raise ValueError(
            f"W_Q {tuple(W_Q.shape)} and W_K {tuple(W_K.shape)} must both be (r, d) or (H, r, d) with d = {X.shape[-1]}, "
            "the last dimension of X: rows are query and key directions (q = W_Q x)."
        )
    V = W_V.unsqueeze(0) if W_V is not None and W_V.ndim == 2 else W_V
    if V is not None and V.shape != (Q.shape[0], X.shape[-1], X.shape[-1]):
        raise ValueError(f"W_V {tuple(V.shape)} must be (d, d) or (H, d, d): it maps x to what the sum adds to x.")
    if positions is not None and (positions.ndim != 1 or positions.is_floating_point()):
        raise ValueError(
            f"positions must be a 1-D integer tensor, got {positions.dtype} of shape {tuple(positions.shape)}."
        )
    dtype = torch.promote_types(torch.promote_types(X.dtype, W_Q.dtype), torch.float32)
    X3 = X.reshape(-1, *X.shape[-2:]).to(dtype)
    return AttentionHeads(X3, Q.to(dtype), K.to(dtype), None if V is None else V.to(dtype), positions, X.shape[:-2])


class _CentredMoments(torch.autograd.Function):
    """B_i = sum_j a_ij p_j k_j^T - pbar_i kbar_i^T by matrix products over blocks of rows.

    a (N, P, T), p (N, T, m), k (N, T, r) -> B (N, P, m, r).  The T outer products p_j k_j^T (m r numbers each) are formed
    again in the backward pass instead of being kept.  ``ends[b]`` is the number of tokens that block b can see.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, p: Tensor, k: Tensor, ends: tuple[int, ...]) -> Tensor:
        ctx.save_for_backward(a, p, k)
        ctx.ends = ends
        outer = (p.unsqueeze(-1) * k.unsqueeze(-2)).flatten(-2)  # (N, T, m r)
        B = torch.cat([a[:, rows, :end] @ outer[:, :end] for rows, end in _blocks(ends, a.shape[1])], dim=1)
        B = B.unflatten(-1, (p.shape[-1], k.shape[-1]))
        return B.addcmul_((a @ p).unsqueeze(-1), (a @ k).unsqueeze(-2), value=-1.0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:  # G: (N, P, m, r)
        a, p, k = ctx.saved_tensors
        outer = (p.unsqueeze(-1) * k.unsqueeze(-2)).flatten(-2)
        flat = G.flatten(-2)
        grad_a = torch.zeros_like(a)
        W = torch.zeros_like(outer)  # sum_i a_ij G_i
        for rows, end in _blocks(ctx.ends, a.shape[1]):
            grad_a[:, rows, :end] = flat[:, rows] @ outer[:, :end].mT
            W[:, :end] += a[:, rows, :end].mT @ flat[:, rows]
        W = W.unflatten(-1, (p.shape[-1], k.shape[-1]))
        G_k = (G @ (a @ k).unsqueeze(-1)).squeeze(-1)  # G_i kbar_i: (N, P, m)
        G_p = (G.mT @ (a @ p).unsqueeze(-1)).squeeze(-1)  # G_i^T pbar_i: (N, P, r)
        grad_a = grad_a - G_k @ p.mT - G_p @ k.mT
        grad_p = (W @ k.unsqueeze(-1)).squeeze(-1) - a.mT @ G_k
        grad_k = (W.mT @ p.unsqueeze(-1)).squeeze(-1) - a.mT @ G_p
        return grad_a, grad_p, grad_k, None


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
    # A covariance does not see a common shift: taking it out first keeps E[pk] - E[p]E[k] from cancelling in float32.
    p, k = (y - y.mean(dim=-2, keepdim=True).detach() for y in (p, k))
    B = _CentredMoments.apply(a.flatten(0, 1), p.flatten(0, 1), k.flatten(0, 1), _block_ends(heads))
    return B.unflatten(0, (-1, H)).permute(0, 2, 3, 1, 4).flatten(-2)


def _dense_matrices(heads: AttentionHeads) -> Tensor:
    """sum_h W_V^h S_i^h M_h: (N, P, d, d), by the definition, for reference."""
    H, _, d = heads.Q.shape
    V = heads.V if heads.V is not None else torch.eye(d, dtype=heads.X.dtype, device=heads.X.device).expand(H, d, d) / H
    a = heads.weights()
    mean = a @ heads.X.unsqueeze(1)  # (N, H, P, d)
    S = torch.einsum("nhpt,ntc,nte->nhpce", a, heads.X, heads.X) - mean.unsqueeze(-1) * mean.unsqueeze(-2)
    return (V[:, None] @ S @ (heads.K.mT @ heads.Q)[:, None]).sum(1)


def _dual_matrices(heads: AttentionHeads) -> Tensor:
    """D_i with blocks A_g C_g X M_g W_V^h X^T C_h^T (A = diag a, C = I - 1 a^T): (N, P, HT, HT)."""
    a = heads.weights()  # (N, H, P, T)
    H, _, T = a.shape[1:]
    queries = heads.values(heads.Q.flatten(0, 1)).unflatten(-1, (H, -1))  # (N, h, T, g, r): W_Q^g W_V^h x_t
    G = torch.einsum("ngsr,nhtgr->nghst", heads.keys(), queries)  # (x_s^T M_g W_V^h x_t)
    left = torch.einsum("ngps,nghst->nghpt", a, G)
    right = torch.einsum("nghst,nhpt->nghps", G, a)
    both = torch.einsum("nghpt,nhpt->nghp", left, a)
    D = G.unsqueeze(3) - left.unsqueeze(-2) - right.unsqueeze(-1) + both[..., None, None]  # (N, g, h, P, s, t)
    D = a.unsqueeze(2).unsqueeze(-1) * D
    return D.permute(0, 3, 1, 4, 2, 5).reshape(a.shape[0], a.shape[2], H * T, H * T)


def cheapest_exact_method(tokens: int, rank: int, dimension: int) -> str:
    """Name the exact method with the smallest determinant; ``rank`` counts all heads together (H r)."""
    return min((("low_rank", rank), ("dense", dimension), ("dual", tokens)), key=lambda choice: choice[1])[0]


def signed_log_barrier(
    X: Tensor,
    W_Q: Tensor,
    W_K: Tensor,
    *,
    W_V: Tensor | None = None,
    method: str = "auto",
    positions: Tensor | None = None,
) -> SignedBarrier:
    """Compute beta_i with the sign of det J_i and the number of pivots replaced: what a training run should report.

    Parameters are those of :func:`log_barrier`, exact methods only.  ``sign == -1`` says that position i lies beyond the
    boundary, where the map is orientation-reversing; ``replaced > 0`` that J_i is singular to working precision, so that
    beta_i is a cap (about 16 nats in float32, 36 in float64, for one vanishing pivot).
    """
    heads = prepare_heads(X, W_Q, W_K, W_V, positions)
    H, r, d = heads.Q.shape
    if method == "auto":
        method = cheapest_exact_method(X.shape[-2], H * r, d)
    if method not in EXACT_METHODS:
        raise ValueError(f"method {method!r} is not exact: choose one of {', '.join(EXACT_METHODS)} or auto.")
    matrices = {"dense": _dense_matrices, "low_rank": sylvester_matrices, "dual": _dual_matrices}[method]
    with torch.autocast(device_type=X.device.type, enabled=False):
        A = matrices(heads)
        identity = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
        logabsdet, sign, replaced = signed_logdet(identity - A)
    return SignedBarrier(
        *(out.unflatten(0, heads.batch) if heads.batch else out[0] for out in (-logabsdet, sign, replaced))
    )


def log_barrier(
    X: Tensor,
    W_Q: Tensor,
    W_K: Tensor,
    *,
    W_V: Tensor | None = None,
    method: str = "auto",
    positions: Tensor | None = None,
) -> Tensor:
    r"""Compute the barrier score beta_i = -log |det(I - S_i W_K^T W_Q)| of every position.

    Parameters
    ----------
    X
        Embeddings (..., T, d).  Half precision is lifted to float32, inside autocast too.
    W_Q, W_K
        Query and key matrices (r, d), q = W_Q x; or (H, r, d) for H heads.  A full d x d matrix M is ``log_barrier(X, M,
        torch.eye(d))``.  An attention scale such as 1/sqrt(r) belongs into W_Q.
    W_V
        Value matrix (d, d) or (H, d, d), out-projection included.  None: values are the embeddings, averaged over heads.
    method
        ``dense``, ``low_rank``, ``dual`` (exact, see the module), or ``auto``: the exact one with the smallest matrices.
    positions
        1-D indices of the positions wanted; a random subset gives an unbiased estimate of the mean over all positions.

    Returns
    -------
    Tensor
        (..., T), or (..., len(positions)), in nats, float32 or float64.  Position 1 has no past: beta_1 = 0.

    Raises
    ------
    ValueError
        Shapes that do not fit, or an unknown method.

    Notes
    -----
    Theorem 1 and eq. (24) of the source; differentiable once in X, W_Q, W_K, W_V.  A NaN in X gives NaN, never a number.
    """
    return signed_log_barrier(X, W_Q, W_K, W_V=W_V, method=method, positions=positions).beta
