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

H heads, head h with W_V^h, S_i^h and M_h, add up: mu_i and what is subtracted from I are sums over
h.

Shapes: X (..., T, d); W_Q, W_K (r, d) or (H, r, d); W_V (d, d) or (H, d, d), None for values equal
to the tokens, averaged over heads; weights (..., T, T) or (..., H, T, T); blocks (..., T, d, d).
Arrays of NumPy and tensors of PyTorch alike, which stay differentiable; PyTorch is never imported.
"""

from typing import Literal, NamedTuple

from papers.arrays import Array, alike, identity, namespace

Causal = Literal["strict", "inclusive"]


class Attention(NamedTuple):
    """Weights a (..., T, T), means xbar (..., T, d) and covariances S (..., T, d, d) of the tokens
    attended to; the last of the leading axes is that of heads, where W_Q has one.
    """

    weights: Array
    mean: Array
    covariance: Array


def softmax_jacobian(a: Array) -> Array:
    """da/dl = diag(a) - a a^T at softmax's value ``a``: (..., n) -> (..., n, n) (Lemma B.1)."""
    (a,) = alike(a)
    return a[..., :, None] * (identity(a.shape[-1], a) - a[..., None, :])


def weighted_covariance(points: Array, a: Array) -> Array:
    """sum_j a_j (u_j - ubar)(u_j - ubar)^T of (..., n, d), a (..., n): (..., d, d) (Lemma B.2)."""
    points, a = alike(points, a)
    einsum = namespace(a).einsum
    centred = points - einsum("...n,...nd->...d", a, points)[..., None, :]
    return einsum("...n,...nd,...ne->...de", a, centred, centred)


def attend(X: Array, W_Q: Array, W_K: Array, *, causal: Causal = "strict") -> Attention:
    """Compute the attention weights and the first two moments of the attended tokens.

    Position 1 of strict attention has no past: its weights, mean and covariance are zero.
    ValueError: Shapes that do not fit, numbers that are not finite, or an unknown ``causal``.
    """
    X, W_Q, W_K = alike(X, W_Q, W_K)
    _check(X, W_Q, W_K, causal)
    xp, T = namespace(X), X.shape[-2]
    X = X if W_Q.ndim == 2 else X[..., None, :, :]
    # seen[i, j]: i attends to j
    seen = xp.tril(xp.ones_like(X[..., :1] @ X[..., :1].mT), -1 if causal == "strict" else 0) > 0
    logits = xp.where(seen, (X @ W_Q.mT) @ (X @ W_K.mT).mT, -xp.inf)
    # finite for the row without a past
    numbers = xp.finfo(X.dtype)
    a = xp.exp(logits - xp.clip(xp.amax(logits, -1)[..., None], numbers.min, None))
    a = a / xp.clip(a.sum(-1)[..., None], numbers.tiny, None)
    # row by row: (T, T, d) does not fit for a long text
    covariance = xp.stack([weighted_covariance(X, a[..., i, :]) for i in range(T)], -3)
    return Attention(a, a @ X, covariance)


def residual_map(
    X: Array, W_Q: Array, W_K: Array, W_V: Array | None = None, *, causal: Causal = "strict"
) -> Array:
    """Compute e_i = x_i - sum_h W_V^h xbar_i^h, (..., T, d) (003, eqs. 4 and 46)."""
    X, W_Q, W_K, W_V = alike(X, W_Q, W_K, W_V)
    written = attend(X, W_Q, W_K, causal=causal).mean @ _value_map(W_V, W_Q, X).mT
    return X - (written if W_Q.ndim == 2 else written.sum(-3))


def attention_jacobian_blocks(
    X: Array, W_Q: Array, W_K: Array, W_V: Array | None = None, *, causal: Causal = "strict"
) -> Array:
    """Compute the diagonal blocks J_i = de_i/dx_i of the residual map (003, eqs. 14, 15 and 53).

    Parameters
    ----------
    X
        Tokens (..., T, d): leading axes are a batch.
    W_Q, W_K
        Query and key matrices (r, d), q = W_Q x, or (H, r, d) for H heads; a scale such as
        1/sqrt(r) belongs into W_Q.
    W_V
        Value map (d, d) or (H, d, d), out-projection included; None for values equal to the tokens,
        averaged over heads, as in ``log_barrier``.
    causal
        ``strict`` attends to j < i (Theorem 1), ``inclusive`` to j <= i (Appendix A, with the key
        term).

    Returns
    -------
    array or tensor (..., T, d, d)
        det J_i = 0 is the degeneracy boundary of position i.  In strict attention J_1 is the
        identity.

    Raises
    ------
    ValueError
        Shapes that do not fit, numbers that are not finite, or an unknown ``causal``.
    """
    return _blocks(X, W_Q, W_K, W_V, causal, key_term=True)


def appendix_a_blocks(X: Array, W_Q: Array, W_K: Array, W_V: Array | None = None) -> Array:
    """The blocks as eq. (53) prints them, I - a_ii W_V - W_V S_i M: without the key term."""
    return _blocks(X, W_Q, W_K, W_V, "inclusive", key_term=False)


def _blocks(
    X: Array, W_Q: Array, W_K: Array, W_V: Array | None, causal: Causal, *, key_term: bool
) -> Array:
    X, W_Q, W_K, W_V = alike(X, W_Q, W_K, W_V)
    a, mean, S = attend(X, W_Q, W_K, causal=causal)
    M, V, one = W_K.mT @ W_Q, _value_map(W_V, W_Q, X), identity(X.shape[-1], X)
    own = one
    if key_term:
        tokens = X if W_Q.ndim == 2 else X[..., None, :, :]
        own = one + (tokens - mean)[..., :, None] * (tokens @ M.mT)[..., None, :]
    a_ii = a.diagonal(0, -2, -1)[..., None, None]  # 0 if strict
    if W_Q.ndim == 2:
        return one - V @ (S @ M + a_ii * own)
    return one - (V[:, None] @ (S @ M[:, None] + a_ii * own)).sum(-4)


def _value_map(W_V: Array | None, W_Q: Array, X: Array) -> Array:
    """The maps (d, d), or one for each head (H, d, d)."""
    d, heads = X.shape[-1], W_Q.shape[:-2]
    if W_V is None:
        return identity(d, X)[None] / heads[0] if heads else identity(d, X)
    if tuple(W_V.shape) != (*heads, d, d):
        raise ValueError(
            f"W_V {tuple(W_V.shape)} must be {(*heads, d, d)}: it maps a token to what the sum "
            "adds, in the tokens' space."
        )
    return W_V


def _check(X: Array, W_Q: Array, W_K: Array, causal: str) -> None:
    if causal not in ("strict", "inclusive"):
        raise ValueError(
            f"causal must be 'strict' (j < i) or 'inclusive' (j <= i), not {causal!r}."
        )
    if X.ndim < 2 or X.shape[-2] == 0:
        raise ValueError(
            f"X must be (..., T, d) with T >= 1, not of shape {tuple(X.shape)}: one sequence is "
            "(T, d)."
        )
    shapes = tuple(W_Q.shape), tuple(W_K.shape)
    if W_Q.ndim not in (2, 3) or len({*shapes}) > 1 or shapes[0][-1] != X.shape[-1]:
        raise ValueError(
            f"W_Q {shapes[0]} and W_K {shapes[1]} must both be (r, d) or (H, r, d) with d = "
            f"{X.shape[-1]}, as X has."
        )
    if not all(namespace(array).isfinite(array).all() for array in (X, W_Q, W_K)):
        raise ValueError(
            "X, W_Q and W_K must be finite: look for NaN or inf in the embeddings or the weights."
        )
