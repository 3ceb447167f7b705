"""Operands of the log-barrier in one layout: tokens, heads, strict-causal weights (003, eq. 2).

Head h has queries W_Q^h x, keys W_K^h x, values W_V^h x and coupling M_h = W_K^h^T W_Q^h.  With
P_i^h = diag(a_i^h) - a_i^h a_i^h^T the covariance is S_i^h = X^T P_i^h X, so that what a change of
basis leaves of J_i = I - sum_h W_V^h S_i^h M_h follows from the weights and from the T x T matrices
G_gh = X M_g W_V^h X^T, which all positions share.

Shapes: N flattened batch, T tokens, P positions asked for, H heads, r query directions, d
dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from papers.arrays import Array, alike, is_tensor


@dataclass(frozen=True)
class AttentionHeads:
    """Checked operands: X (N, T, d), Q and K (H, r, d), V (H, d, d) or None for I / H."""

    X: Tensor
    Q: Tensor
    K: Tensor
    V: Tensor | None
    positions: Tensor | None  # (P,) rows wanted, or None for all
    batch: torch.Size
    arrays: bool = False  # whether the caller's operands were NumPy's

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
        """Strict-causal weights a_ij: (N, H, P, T); position 1 has no past, hence zeros."""
        tokens = torch.arange(self.X.shape[1], device=self.X.device)
        rows = tokens if self.positions is None else self.positions
        past = tokens < rows[:, None]  # (P, T)
        queries = self.X[:, rows].unsqueeze(1) @ self.Q.mT
        logits = (queries @ self.keys().mT).masked_fill(~past, torch.finfo(self.X.dtype).min)
        return torch.softmax(logits, dim=-1) * past

    def gram(self) -> Tensor:
        """G_gh = X M_g W_V^h X^T for every pair of heads: (N, g, h, T, T)."""
        # W_Q^g W_V^h x_t: (N, h, T, g, r)
        queries = self.values(self.Q.flatten(0, 1)).unflatten(-1, self.Q.shape[:2])
        return torch.einsum("ngsr,nhtgr->nghst", self.keys(), queries)

    def restore(self, out: Tensor) -> Array:
        """Give a result (N, P) the batch shape and the library that the caller's X had."""
        out = out.reshape(*self.batch, out.shape[-1])
        return out.numpy() if self.arrays else out


def residuals(X: Tensor, W_Q: Tensor, W_K: Tensor) -> Tensor:
    """e_i = x_i - sum over j < i of a_ij x_j, for one head: (..., T, d)."""
    heads = prepare_heads(X, W_Q, W_K)
    return (heads.X - heads.weights()[:, 0] @ heads.X).reshape(X.shape)


def prepare_heads(
    X: Array, W_Q: Array, W_K: Array, W_V: Array | None = None, positions: Array | None = None
) -> AttentionHeads:
    """Check shapes, add a missing head axis, lift half precision, flatten the batch."""
    arrays = not any(map(is_tensor, (X, W_Q, W_K, W_V)))
    operands = alike(X, W_Q, W_K, W_V)
    X, W_Q, W_K, W_V = (None if W is None else torch.as_tensor(W) for W in operands)
    if positions is not None:
        positions = torch.as_tensor(positions)
    if X.ndim < 2 or X.shape[-2] == 0:
        raise ValueError(
            f"X must be (..., T, d) with T >= 1, got {tuple(X.shape)}: pass one sequence of "
            "embeddings."
        )
    Q, K = (W.unsqueeze(0) if W.ndim == 2 else W for W in (W_Q, W_K))
    if Q.ndim != 3 or Q.shape != K.shape or Q.shape[-1] != X.shape[-1]:
        raise ValueError(
            f"W_Q {tuple(W_Q.shape)} and W_K {tuple(W_K.shape)} must both be (r, d) or (H, r, d) "
            f"with d = {X.shape[-1]}, the last dimension of X: rows are query and key directions."
        )
    V = W_V.unsqueeze(0) if W_V is not None and W_V.ndim == 2 else W_V
    if V is not None and V.shape != (Q.shape[0], X.shape[-1], X.shape[-1]):
        raise ValueError(
            f"W_V {tuple(V.shape)} must be (d, d) or (H, d, d): it maps x to what the sum "
            "adds to x."
        )
    if Q.shape[0] == 0 or Q.shape[1] == 0:
        raise ValueError(
            f"W_Q {tuple(W_Q.shape)} has no head or no direction: M would be empty, give H "
            "and r >= 1."
        )
    if positions is not None:
        _check_positions(positions, X.shape[-2])
    X3 = X.reshape(-1, *X.shape[-2:])
    return AttentionHeads(X3, Q, K, V, positions, X.shape[:-2], arrays)


def _check_positions(positions: Tensor, T: int) -> None:
    if positions.ndim != 1 or positions.is_floating_point() or positions.dtype == torch.bool:
        raise ValueError(
            f"positions must be a 1-D integer tensor, got {positions.dtype} of shape "
            f"{tuple(positions.shape)}."
        )
    # A negative index would read the right row and see no past: a score of zero, and no error.
    if len(positions) == 0 or positions.min() < 0 or positions.max() >= T:
        raise ValueError(
            f"positions {positions.tolist()} must name at least one row, each from 0 to {T - 1}."
        )
