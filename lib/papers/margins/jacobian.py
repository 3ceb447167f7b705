"""The Jacobian of the residual map of causal attention, in closed form (003, Theorem 1, Appendices
A and B).

A layer of one head sends tokens x_1..x_T to residuals e_i = x_i - mu_i, with

    logits   l_ij = (W_Q x_i).(W_K x_j),
    weights  a_ij = softmax of l_i. over j < i ("strict") or j <= i ("inclusive"),
    summary  mu_i = sum_j a_ij W_V x_j,     mean xbar_i = sum_j a_ij x_j,
    covariance S_i = sum_j a_ij (x_j - xbar_i)(x_j - xbar_i)^T,     coupling M = W_K^T W_Q.

A token enters mu_i in up to two ways.  As the query:  W_V S_i M.  As key and value j:
a_ij W_V (I + (x_j - xbar_i)(M x_i)^T).  Hence de_i/dx_i = I - W_V S_i M in strict
attention (Theorem 1), where a token is never its own key, and

    de_i/dx_i = I - W_V S_i M - a_ii W_V (I + (x_i - xbar_i)(M x_i)^T)

in inclusive attention.  Eq. (53) of the source lacks the last term, the derivative of l_ii through
the key.

Shapes: X (T, d); W_Q, W_K (r, d); W_V (d, d), None for the identity; weights (T, T); blocks (T, d,
d).  NumPy only.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from softgeom.arrays import Floats

Causal = Literal["strict", "inclusive"]


class Attention(NamedTuple):
    """Weights a (T, T), means xbar (T, d) and covariances S (T, d, d) of the attended tokens."""

    weights: Floats
    mean: Floats
    covariance: Floats


def softmax_jacobian(a: Floats) -> Floats:
    """da/dl = diag(a) - a a^T at softmax's value ``a``: (..., n) -> (..., n, n) (Lemma B.1)."""
    return a[..., :, None] * (np.eye(a.shape[-1]) - a[..., None, :])


def weighted_covariance(points: Floats, a: Floats) -> Floats:
    """sum_j a_j (u_j - ubar)(u_j - ubar)^T of (..., n, d), a (..., n): (..., d, d) (Lemma B.2)."""
    centred = points - np.einsum("...n,...nd->...d", a, points)[..., None, :]
    return np.einsum("...n,...nd,...ne->...de", a, centred, centred)


def attend(X: Floats, W_Q: Floats, W_K: Floats, *, causal: Causal = "strict") -> Attention:
    """Compute the attention weights and the first two moments of the attended tokens.

    Position 1 of strict attention has no past: its weights, mean and covariance are zero.
    ValueError: Shapes that do not fit, numbers that are not finite, or an unknown ``causal``.
    """
    _check(X, W_Q, W_K, causal)
    T = len(X)
    seen = np.tri(T, k=-1 if causal == "strict" else 0, dtype=bool)  # seen[i, j]: i attends to j
    logits = np.where(seen, (X @ W_Q.T) @ (X @ W_K.T).T, -np.inf)
    # finite for the row without a past
    peak = np.max(logits, axis=1, keepdims=True, initial=np.finfo(float).min)
    a = np.exp(logits - peak)
    a /= np.maximum(a.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    covariance = np.stack(
        [weighted_covariance(X, row) for row in a]
    )  # row by row: (T, T, d) does not fit for a long text
    return Attention(a, a @ X, covariance)


def residual_map(
    X: Floats, W_Q: Floats, W_K: Floats, W_V: Floats | None = None, *, causal: Causal = "strict"
) -> Floats:
    """Compute e_i = x_i - W_V xbar_i, (T, d) (003, eqs. 4 and 46)."""
    mean = attend(X, W_Q, W_K, causal=causal).mean
    return X - mean @ _value_map(W_V, X.shape[1]).T


def attention_jacobian_blocks(
    X: Floats, W_Q: Floats, W_K: Floats, W_V: Floats | None = None, *, causal: Causal = "strict"
) -> Floats:
    """Compute the diagonal blocks J_i = de_i/dx_i of the residual map (003, eqs. 14, 15 and 53).

    Parameters
    ----------
    X
        Tokens (T, d).
    W_Q, W_K
        Query and key matrices (r, d), q = W_Q x; a scale such as 1/sqrt(r) belongs into W_Q.
    W_V
        Value map (d, d), out-projection included; None for values equal to the tokens.
    causal
        ``strict`` attends to j < i (Theorem 1), ``inclusive`` to j <= i (Appendix A, with the key
        term).

    Returns
    -------
    array (T, d, d)
        det J_i = 0 is the degeneracy boundary of position i.  In strict attention J_1 is the
        identity.

    Raises
    ------
    ValueError
        Shapes that do not fit, numbers that are not finite, or an unknown ``causal``.
    """
    a, mean, S = attend(X, W_Q, W_K, causal=causal)
    M = W_K.T @ W_Q
    V = _value_map(W_V, X.shape[1])
    # (T, d, d); a_ii = 0 if strict
    own_key = np.eye(X.shape[1]) + (X - mean)[:, :, None] * (X @ M.T)[:, None, :]
    return np.eye(X.shape[1]) - V @ (S @ M + np.diag(a)[:, None, None] * own_key)


def appendix_a_blocks(X: Floats, W_Q: Floats, W_K: Floats, W_V: Floats | None = None) -> Floats:
    """The blocks as eq. (53) prints them, I - a_ii W_V - W_V S_i M: without the key term."""
    d = X.shape[1]
    V = _value_map(W_V, d)
    a, _, S = attend(X, W_Q, W_K, causal="inclusive")
    return np.eye(d) - np.diag(a)[:, None, None] * V - V @ S @ (W_K.T @ W_Q)


def _value_map(W_V: Floats | None, d: int) -> Floats:
    if W_V is None:
        return np.eye(d)
    if W_V.shape != (d, d):
        raise ValueError(
            f"W_V {W_V.shape} must be ({d}, {d}): it maps a token to what the sum adds, in "
            "the tokens' space."
        )
    return W_V


def _check(X: Floats, W_Q: Floats, W_K: Floats, causal: str) -> None:
    if causal not in ("strict", "inclusive"):
        raise ValueError(
            f"causal must be 'strict' (j < i) or 'inclusive' (j <= i), not {causal!r}."
        )
    if X.ndim != 2 or len(X) == 0:
        raise ValueError(
            f"X must hold one sequence, (T, d) with T >= 1, not an array of shape {X.shape}."
        )
    if W_Q.ndim != 2 or W_Q.shape != W_K.shape or W_Q.shape[1] != X.shape[1]:
        raise ValueError(
            f"W_Q {W_Q.shape} and W_K {W_K.shape} must both be (r, d) with d = {X.shape[1]}, "
            "as X has."
        )
    if not all(np.isfinite(array).all() for array in (X, W_Q, W_K)):
        raise ValueError(
            "X, W_Q and W_K must be finite: look for NaN or inf in the embeddings or the weights."
        )
