"""The log-barrier of strict-causal attention, exact, batched and differentiable (003, eqs. 14-16,
24).

For tokens x_1..x_T with logits l_ij = (W_Q x_i).(W_K x_j), weights a_ij = softmax over j < i and
covariance S_i = sum_j a_ij (x_j - xbar_i)(x_j - xbar_i)^T the barrier score of a position is

    beta_i = -log |det J_i|,    J_i = I - S_i M,    M = W_K^T W_Q                    (Theorem 1)

and with H heads, head h carrying the value map W_V^h, J_i = I - sum_h W_V^h S_i^h M_h.  Three exact
routes:

* ``dense``: the d x d determinant as written: O(T^2 d^2 + T d^3) per sequence;
* ``low_rank``: det(I_d - A B) = det(I_Hr - B A) (Sylvester), where block (g, h) of B A is
  W_Q^g W_V^h S_i^h W_K^h^T = sum_j a_ij (W_Q^g W_V^h x_j)(W_K^h x_j)^T - (mean)(mean)^T, so that
  one product of the weights with the T outer products serves all positions, and no d x d matrix is
  formed: O((Hr)^2 T^2 + T (Hr)^3);
* ``dual``: the same identity with the tokens of the past as inner dimension, HT x HT, for sequences
  shorter than r.

Two estimates with their errors are in :mod:`papers.margins.barrier_estimates`.  The boundary is
treated as :mod:`papers.margins.determinant` says.  Everything is computed in float32 or float64,
inside autocast too; gradients as well if, as torch asks, ``backward`` is called outside.  A
covariance has a rounding error of about eps |p_j| |k_j|, which a float32 barrier feels once queries
and keys are longer than some hundreds.

Shapes: X (..., T, d); W_Q, W_K (r, d) or (H, r, d); W_V (d, d) or (H, d, d); beta (..., T).  N:
flattened batch.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from papers.margins.barrier_estimates import series_log_barrier, stochastic_log_barrier
from papers.margins.determinant import signed_logdet
from papers.margins.heads import AttentionHeads, prepare_heads
from papers.margins.sylvester import sylvester_matrices

EXACT_METHODS = ("dense", "low_rank", "dual")


class SignedBarrier(NamedTuple):
    """beta, sign of det J_i (-1 beyond the boundary), replaced pivots: (..., T) each."""

    beta: Tensor
    sign: Tensor
    replaced: Tensor


def _dense_matrices(heads: AttentionHeads) -> Tensor:
    """sum_h W_V^h S_i^h M_h: (N, P, d, d), by the definition, for reference."""
    H, _, d = heads.Q.shape
    V = (
        heads.V
        if heads.V is not None
        else torch.eye(d, dtype=heads.X.dtype, device=heads.X.device).expand(H, d, d) / H
    )
    a = heads.weights()
    mean = a @ heads.X.unsqueeze(1)  # (N, H, P, d)
    S = torch.einsum("nhpt,ntc,nte->nhpce", a, heads.X, heads.X) - mean.unsqueeze(
        -1
    ) * mean.unsqueeze(-2)
    return (V[:, None] @ S @ (heads.K.mT @ heads.Q)[:, None]).sum(1)


def _dual_matrices(heads: AttentionHeads) -> Tensor:
    """D_i with blocks A_g C_g X M_g W_V^h X^T C_h^T (A = diag a, C = I - 1 a^T): (N, P, HT, HT)."""
    a = heads.weights()  # (N, H, P, T)
    H, _, T = a.shape[1:]
    G = heads.gram()
    left = torch.einsum("ngps,nghst->nghpt", a, G)
    right = torch.einsum("nghst,nhpt->nghps", G, a)
    both = torch.einsum("nghpt,nhpt->nghp", left, a)
    # (N, g, h, P, s, t)
    D = G.unsqueeze(3) - left.unsqueeze(-2) - right.unsqueeze(-1) + both[..., None, None]
    D = a.unsqueeze(2).unsqueeze(-1) * D
    return D.permute(0, 3, 1, 4, 2, 5).reshape(a.shape[0], a.shape[2], H * T, H * T)


def cheapest_exact_method(tokens: int, rank: int, dimension: int) -> str:
    """The exact method with the smallest determinant; ``rank`` is H r, of all heads."""
    return min(
        (("low_rank", rank), ("dense", dimension), ("dual", tokens)), key=lambda choice: choice[1]
    )[0]


def signed_log_barrier(
    X: Tensor,
    W_Q: Tensor,
    W_K: Tensor,
    *,
    W_V: Tensor | None = None,
    method: str = "auto",
    positions: Tensor | None = None,
) -> SignedBarrier:
    """Compute beta_i with the sign of det J_i and the number of pivots replaced: what a training
    run should report.

    Parameters are those of :func:`log_barrier`, exact methods only.  ``sign == -1`` says that
    position i lies beyond the boundary, where the map is orientation-reversing; ``replaced > 0``
    that J_i is singular to working precision, so that beta_i is a cap (about 16 nats in float32, 36
    in float64, for one vanishing pivot).
    """
    heads = prepare_heads(X, W_Q, W_K, W_V, positions)
    H, r, d = heads.Q.shape
    if method == "auto":
        method = cheapest_exact_method(X.shape[-2], H * r, d)
    if method not in EXACT_METHODS:
        raise ValueError(
            f"method {method!r} is not exact: choose one of {', '.join(EXACT_METHODS)} or auto."
        )
    matrices = {"dense": _dense_matrices, "low_rank": sylvester_matrices, "dual": _dual_matrices}[
        method
    ]
    with torch.autocast(device_type=X.device.type, enabled=False):
        A = matrices(heads)
        identity = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
        logabsdet, sign, replaced = signed_logdet(identity - A)
    return SignedBarrier(*map(heads.restore, (-logabsdet, sign, replaced)))


def log_barrier(
    X: Tensor,
    W_Q: Tensor,
    W_K: Tensor,
    *,
    W_V: Tensor | None = None,
    method: str = "auto",
    positions: Tensor | None = None,
    order: int | None = None,
    probes: int = 8,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Compute the barrier score beta_i = -log |det(I - S_i W_K^T W_Q)| of every position.

    Parameters
    ----------
    X
        Embeddings (..., T, d).  The finest type of all operands is used, half precision lifted to
        float32.
    W_Q, W_K
        Query and key matrices (r, d), q = W_Q x; or (H, r, d) for H heads.  A full d x d matrix M
        is ``log_barrier(X, M, torch.eye(d))``.  An attention scale such as 1/sqrt(r) belongs into
        W_Q.
    W_V
        Value matrix (d, d) or (H, d, d), out-projection included.  None: values are the embeddings,
        averaged over heads.
    method
        ``dense``, ``low_rank``, ``dual`` (exact, see the module); ``auto``, the exact one with the
        smallest matrices; ``series``, ``stochastic`` (estimates, whose errors
        :mod:`papers.margins.barrier_estimates` gives).
    positions
        1-D indices from 0 of the positions wanted; a random subset gives an unbiased estimate of
        the mean over all positions.
    order, probes, generator
        Terms of the series (default 2; 6 for ``stochastic``), random probes and their generator.

    Returns
    -------
    Tensor
        (..., T), or (..., len(positions)), in nats, float32 or float64.  Position 1 has no past:
        beta_1 = 0.

    Raises
    ------
    ValueError
        Shapes that do not fit, or an unknown method.

    Notes
    -----
    Theorem 1 and eq. (24) of the source; differentiable as often as asked in X, W_Q, W_K, W_V,
    under ``torch.func.vmap`` as well.  A NaN in X gives NaN, never a number.
    """
    if method == "series":
        return series_log_barrier(X, W_Q, W_K, W_V=W_V, order=order or 2, positions=positions).beta
    if method == "stochastic":
        settings = {"order": order or 6, "probes": probes}
        return stochastic_log_barrier(
            X, W_Q, W_K, W_V=W_V, generator=generator, positions=positions, **settings
        ).beta
    if method not in (*EXACT_METHODS, "auto"):
        raise ValueError(
            f"unknown method {method!r}: choose {', '.join(EXACT_METHODS)}, auto, series or "
            "stochastic."
        )
    return signed_log_barrier(X, W_Q, W_K, W_V=W_V, method=method, positions=positions).beta
