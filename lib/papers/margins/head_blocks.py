"""The block of attention as released models have it: inclusive, rotary, grouped, behind a norm; in
r dimensions (003, Appendix A, corrected).

A head reads y_j = N(x_j), with N an RMSNorm or LayerNorm, and writes W_O sum_j a_ij W_V y_j, where
W_V is (r, d), W_O (d, r), and a_ij is the softmax over j <= i of

    l_ij = (R_i W_Q y_i).(R_j W_K y_j) / sqrt(r).

A token enters its own write as query, as key and as value. With ybar_i = sum_j a_ij y_j, u = y_i -
ybar_i, and kappa_ij = W_Q^T R_i^T R_j W_K y_j / sqrt(r), of mean kappabar_i, the derivative of the
write by x_i is W_O C_i D_i with

    C_i = a_ii W_V (I + u (W_K^T W_Q y_i)^T / sqrt(r))
          + W_V sum_j a_ij (y_j - ybar_i)(kappa_ij - kappabar_i)^T,                       (r, d)
    D_i = dN/dx_i = diag(gamma) (P - n n^T / d) / s,   n = (x_i P) / s,                   (d, d)

since R_i^T R_i = I in the term through the own key. Two maps are of interest, with the block of one
position

    residual map  e = x - attention(N(x)):  J = I_d - W_O C D,
    stream map        x + attention(N(x)):  J = I_d + W_O C D,

and det(I_d -+ W_O C D) = det(I_r -+ C D W_O): everything is read off the r x r matrix B = C D W_O,
whose eigenvalues are those of W_O C D that may differ from zero. The residual map folds where an
eigenvalue reaches 1, the stream map where one reaches -1. For H heads together B is (H r, H r),
with blocks B_gh = C_g D W_O^h.

Columns are vectors, as in the other files of this chapter: W_Q y, not y W_Q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from papers.language_model import rotate

# relative; some thousand times the rounding of an eigenvalue of a small block
EQUAL = 1e-9


@dataclass(frozen=True)
class HeadWeights:
    """The heads of one layer and the norm that they read through.

    A group of query heads that share keys and values repeats them; a LayerNorm's shift is in the
    states `y` already.
    """

    W_Q: Tensor  # (H, r, d)
    W_K: Tensor  # (H, r, d)
    W_V: Tensor  # (H, r, d)
    W_O: Tensor  # (H, d, r)
    gamma: Tensor  # (d,)
    centred: bool  # LayerNorm, which subtracts the mean
    rotary_base: float | None  # None for learned positions

    def __post_init__(self) -> None:
        H, r, d = self.W_Q.shape
        K, V, out, gamma = (tuple(W.shape) for W in (self.W_K, self.W_V, self.W_O, self.gamma))
        if (K, V, out, gamma) != ((H, r, d), (H, r, d), (H, d, r), (d,)):
            raise ValueError(
                f"W_Q {(H, r, d)}, W_K {K}, W_V {V}, W_O {out} and gamma {gamma} do not fit: "
                "give (H, r, d) three times, (H, d, r) and (d,)."
            )

    def of(self, some: list[int]) -> HeadWeights:
        """Some heads of the layer."""
        W_Q, W_K, W_V, W_O = (W[some] for W in (self.W_Q, self.W_K, self.W_V, self.W_O))
        return HeadWeights(W_Q, W_K, W_V, W_O, self.gamma, self.centred, self.rotary_base)


def head_blocks(
    heads: HeadWeights,
    y: Tensor,
    n: Tensor,
    s: Tensor,
    positions: Tensor,
    *,
    together: bool = False,
) -> Tensor:
    """B of every head, (H, P, r, r), or of all heads together, (P, H r, H r), at positions (P,) of
    a text.

    The heads read y (T, d), after gain and shift; n (T, d) are the states centred (LayerNorm) and
    divided by their scales s (T,), before gain and shift. ValueError when a position is outside the
    text, or the states are in half precision.
    """
    if y.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"states in {y.dtype} leave nothing of a determinant: take float64.")
    if len(positions) == 0 or positions.min() < 0 or positions.max() >= len(y):
        raise ValueError(
            f"positions must be at least one number from 0 to {len(y) - 1}, got "
            f"{positions.tolist()}."
        )
    H, r, d = heads.W_Q.shape
    q, k, v = (y @ W.mT for W in (heads.W_Q, heads.W_K, heads.W_V))  # (H, T, r) each, not turned
    turned_q, turned_k = (
        (q, k) if heads.rotary_base is None else (rotate(x, heads.rotary_base) for x in (q, k))
    )
    scores = (turned_q[:, positions] @ turned_k.mT) / math.sqrt(r)  # (H, P, T)
    ahead = torch.arange(len(y)) > positions[:, None]
    a = scores.masked_fill(ahead, -torch.inf).softmax(-1)
    # (H, d, r), or all heads side by side (1, d, H r)
    W_O = heads.W_O if not together else heads.W_O.transpose(0, 1).flatten(1)[None]
    projected = W_O - W_O.mean(1, keepdim=True) if heads.centred else W_O
    # s W D W_O = constant - left right^T for W = W_V, W_K, W_Q
    scaled = [W * heads.gamma for W in (heads.W_V, heads.W_K, heads.W_Q)]
    constant = [W @ projected for W in scaled]  # (H, r, m)
    left = [(n[positions] @ W.mT)[..., None] for W in scaled]  # (H, P, r, 1)
    right = (n[positions] @ projected / d).expand(H, -1, -1)[:, :, None]  # (H, P, 1, m)
    blocks = []
    # One head at a time: the (P, r, r) products of all would not stay in the processor's cache.
    for head in range(H):
        weights, query = a[head], q[head, positions, None] / math.sqrt(r)
        own = weights.gather(-1, positions[:, None])[..., None]  # a_ii, (P, 1, 1)
        u = (v[head, positions] - weights @ v[head])[..., None]  # W_V (y_i - ybar_i)
        moments = _moments(weights, v[head], turned_k[head], positions, heads.rotary_base)
        of_constant, of_left = (
            own * (V[head] + u @ (query @ K[head])) + moments @ Q[head] / math.sqrt(r)
            for V, K, Q in (constant, left)
        )
        B = of_constant - of_left @ right[head]
        blocks.append(B / s[positions, None, None])
    return torch.cat(blocks, 1) if together else torch.stack(blocks)


def margins(B: Tensor) -> dict[str, Tensor]:
    """What the eigenvalues of B (..., r, r) say about both maps: ``coupling``, the real eigenvalue
    of largest modulus (0 where none is real), whose sign is the sign of the coupling; ``residual``
    and ``stream``, the distances of the spectrum from 1 and from -1; ``log_residual`` and
    ``log_stream``, log |det(I - B)| and log |det(I + B)|; ``folded``, whether det(I - B) is
    negative, so that the residual map has turned over.
    """
    eigenvalues = torch.linalg.eigvals(B)
    size = eigenvalues.abs()
    real = eigenvalues.imag.abs() <= EQUAL * size.amax(-1, keepdim=True)
    largest = torch.where(real, size, 0.0).amax(-1, keepdim=True)
    # Of a and -a the positive one: rounding must not choose the sign.
    leading = real & (size >= (1 - EQUAL) * largest)
    coupling = torch.where(leading, eigenvalues.real, -torch.inf).amax(-1)
    coupling = torch.where(real.any(-1), coupling, 0.0)
    eye = torch.eye(B.shape[-1], dtype=B.dtype)
    residual, stream = torch.linalg.slogdet(eye - B), torch.linalg.slogdet(eye + B)
    return {
        "coupling": coupling,
        "residual": (1 - eigenvalues).abs().amin(-1),
        "stream": (1 + eigenvalues).abs().amin(-1),
        "log_residual": residual.logabsdet,
        "log_stream": stream.logabsdet,
        "folded": residual.sign < 0,
    }


def _moments(a: Tensor, v: Tensor, k: Tensor, positions: Tensor, base: float | None) -> Tensor:
    """sum_j a_ij (v_j - vbar_i)(k_j - kbar_i)^T R_i of a head, (P, r, r): weights a (P, T), values
    v (T, r), turned keys k (T, r). The query's turn comes from the right: k_j^T R_j^T R_i.
    """
    found = (a[:, None] * v.T) @ k - (a @ v)[..., None] * (a @ k)[:, None]
    if base is None:
        return found
    # A pair of coordinates is a complex number; turning (1, 0) shows by how much position i turns.
    unit = torch.zeros_like(k)
    unit[:, ::2] = 1
    turns = torch.view_as_complex(rotate(unit, base).unflatten(-1, (-1, 2)))[positions]
    pairs = torch.view_as_complex(found.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turns.conj()[:, None]).flatten(-2)
