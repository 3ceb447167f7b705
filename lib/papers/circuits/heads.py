"""One attention head as two circuits (002, "Attention Block"): where it looks (QK) and what it
copies (OV).

With row states x (D), a head's write and its attention logits are

    sum_j a_ij x_j W_OV,            W_OV = W_V W_O (D, D);
    l_ij = x_i W_QK x_j^T / sqrt(K),  W_QK = W_Q W_K^T (D, D),

both of rank at most K = d_head, so they are kept as two factors. (The notes write W_QK = W_Q W_K,
which lacks the transpose.) Rotary positions turn the query of position i by R(i) and the key of
position j by R(j), block-diagonal rotations of adjacent pairs, and R(i) R(j)^T = R(i - j): the
circuit depends on the offset, W_QK(i - j) = W_Q R(i - j) W_K^T, and on nothing else of i and j.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from papers.circuits.anatomy import Anatomy, BlockAnatomy
from papers.language_model import rotate


@dataclass(frozen=True)
class FactoredMatrix:
    """A B kept as factors A (m, r), B (r, n): with r small, spectra cost O((m + n) r^2)."""

    A: Tensor
    B: Tensor

    def __post_init__(self) -> None:
        if self.A.ndim != 2 or self.B.ndim != 2 or self.A.shape[1] != self.B.shape[0]:
            raise ValueError(
                f"factors of shapes {tuple(self.A.shape)} and {tuple(self.B.shape)} do not "
                "multiply: give (m, r) and (r, n); is a transpose missing?"
            )

    def full(self) -> Tensor:
        """The product, (m, n)."""
        return self.A @ self.B

    def singular_values(self) -> Tensor:
        """The r largest, descending: those of R_A R_B^T, where A = Q_A R_A and B^T = Q_B R_B."""
        return torch.linalg.svdvals(torch.linalg.qr(self.A).R @ torch.linalg.qr(self.B.T).R.T)

    def rank(self, tolerance: float = 1e-10) -> int:
        """Singular values above `tolerance` times the largest."""
        values = self.singular_values()
        return int((values > tolerance * values[0]).sum())

    def eigenvalues(self) -> Tensor:
        """The r eigenvalues of a square A B that may not be zero: those of B A, complex (r)."""
        if self.A.shape[0] != self.B.shape[1]:
            raise ValueError(
                f"a matrix of shape {(self.A.shape[0], self.B.shape[1])} has no eigenvalues."
            )
        return torch.linalg.eigvals(self.B @ self.A)

    def symmetric_eigenvalues(self) -> Tensor:
        """Eigenvalues of the symmetric part (A B + B^T A^T) / 2 that may not be zero, ascending.

        With G = [A, B^T] = Q R it is Q R J R^T Q^T / 2, J exchanging the two halves. Where the 2 r
        columns of G are independent, which needs 2 r <= n, r of them are positive and r negative
        (Sylvester's law of inertia): no such matrix is positive semidefinite.
        """
        if self.A.shape[0] != self.B.shape[1]:
            raise ValueError(
                f"a matrix of shape {(self.A.shape[0], self.B.shape[1])} is not square."
            )
        R = torch.linalg.qr(torch.cat((self.A, self.B.T), 1)).R
        return torch.linalg.eigvalsh(R @ R.roll(self.B.shape[0], 1).T / 2)

    def copying(self) -> float:
        """Sum of eigenvalues over sum of their moduli: 1 when each direction keeps its sign."""
        eigenvalues = self.eigenvalues()
        return float(eigenvalues.sum().real / eigenvalues.abs().sum())


def ov_circuit(block: BlockAnatomy, head: int) -> FactoredMatrix:
    """W_OV = W_V W_O: what a head writes for what it reads, (D, D) of rank at most K."""
    return FactoredMatrix(block.W_V[head], block.W_O[head])


def token_ov_circuit(anatomy: Anatomy, layer: int, head: int) -> FactoredMatrix:
    """W_E W_OV W_U^T, (V, V) of rank at most K: how attending to token s moves the logit of token t
    by this head alone, for folded norms and up to the divisions. Positive eigenvalues mean that a
    head copies tokens (Elhage et al. 2021).
    """
    block = anatomy.blocks[layer]
    return FactoredMatrix(anatomy.W_E @ block.W_V[head], block.W_O[head] @ anatomy.W_U.T)


def qk_circuit(
    block: BlockAnatomy, head: int, offset: int = 0, rotary_base: float | None = 10_000.0
) -> FactoredMatrix:
    """W_Q R(offset) W_K^T: the bilinear form that scores a query `offset` positions after a key."""
    W_Q = block.W_Q[head]
    if rotary_base is not None:
        W_Q = W_Q @ rotation(offset, W_Q.shape[-1], rotary_base, W_Q.dtype, W_Q.device)
    return FactoredMatrix(W_Q, block.W_K[head].T)


def rotation(
    offset: int,
    d_head: int,
    base: float,
    dtype: torch.dtype = torch.float64,
    device: torch.device | None = None,
) -> Tensor:
    """R(offset), (K, K): x R(offset) is x turned as at that position; R(i) R(j)^T = R(i - j)."""
    # each basis row at one position
    each = torch.eye(d_head, dtype=dtype, device=device)[:, None]
    turned = rotate(each, base, offset=abs(offset))[:, 0]
    return turned if offset >= 0 else turned.T


def scores_by_offset(block: BlockAnatomy, attn_in: Tensor, rotary_base: float | None) -> Tensor:
    """Attention logits from the circuits alone, l_ij = x_i W_QK(i - j) x_j^T / sqrt(K), of heads
    without bias: (B, T, D) -> (B, H, T, T), -inf above the diagonal. No query or key is formed.
    """
    H, _, K = block.W_Q.shape
    T = attn_in.shape[1]
    scores = attn_in.new_full((len(attn_in), H, T, T), -torch.inf)
    for offset in range(T):
        queries = torch.arange(offset, T)
        for head in range(H):
            W_QK = qk_circuit(block, head, offset, rotary_base).full()
            form = (attn_in[:, offset:] @ W_QK * attn_in[:, : T - offset]).sum(-1)
            scores[:, head, queries, queries - offset] = form / math.sqrt(K)
    return scores


def weights_as_printed(block: BlockAnatomy, attn_in: Tensor) -> tuple[Tensor, Tensor]:
    """The two lines of the notes' display for attention weights, without rotary positions: softmax
    over positions up to i of x_i W_Q (X W_K)^T / sqrt(K) and of x_i W_QK X^T / sqrt(K), both (B, H,
    T, T).
    """
    K, T = block.W_Q.shape[-1], attn_in.shape[1]
    queries, keys = (torch.einsum("btd,hdk->bhtk", attn_in, W) for W in (block.W_Q, block.W_K))
    by_circuit = torch.einsum("btd,hde,bse->bhts", attn_in, block.W_Q @ block.W_K.mT, attn_in)
    ahead = torch.ones(T, T, dtype=torch.bool, device=attn_in.device).triu(1)
    first, second = (
        (scores / math.sqrt(K)).masked_fill(ahead, -torch.inf).softmax(-1)
        for scores in (queries @ keys.mT, by_circuit)
    )
    return first, second


def writes_by_ov(block: BlockAnatomy, attn_in: Tensor, pattern: Tensor) -> Tensor:
    """Each head's write from its circuit, sum_j a_ij x_j W_OV + b_V W_O (a pattern's rows sum to
    one): (B, T, D), (B, H, T, T) -> (B, T, H, D). No value is formed.
    """
    W_OV = block.W_V @ block.W_O  # (H, D, D)
    return torch.einsum("bhij,bjd,hde->bihe", pattern, attn_in, W_OV) + torch.einsum(
        "hk,hkd->hd", block.b_V, block.W_O
    )


def offset_profile(
    block: BlockAnatomy, attn_in: Tensor, offsets: Tensor, rotary_base: float | None
) -> Tensor:
    """Mean score over all pairs of queries and keys of a text, if every pair stood at the given
    offset, which by bilinearity is mean_i x_i W_QK(offset) (mean_j x_j)^T / sqrt(K): (H, offsets).
    """
    centre = attn_in.flatten(0, -2).mean(0)  # (D)
    H, _, K = block.W_Q.shape
    forms = (
        qk_circuit(block, head, int(offset), rotary_base) for head in range(H) for offset in offsets
    )
    return torch.stack([centre @ W.full() @ centre for W in forms]).view(H, -1) / math.sqrt(K)


def commuting_basis(heads: int, d_head: int, generator: torch.Generator) -> Tensor:
    """Random M (H, K, K) that commute with every rotation: one complex number for each pair of
    coordinates, since different pairs turn by different angles.
    """
    size = torch.rand(heads, d_head // 2, generator=generator, dtype=torch.float64) + 0.5
    angle = 2 * math.pi * torch.rand(heads, d_head // 2, generator=generator, dtype=torch.float64)
    a, b = size * angle.cos(), size * angle.sin()
    M = torch.zeros(heads, d_head, d_head, dtype=torch.float64)
    even = torch.arange(0, d_head, 2)
    M[:, even, even] = M[:, even + 1, even + 1] = a
    M[:, even, even + 1], M[:, even + 1, even] = b, -b
    return M
