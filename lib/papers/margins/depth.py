"""Where the volume correction of a deep stack lives (003, Section 6, Lemmas D.1 and D.2, Corollary
6.1).

Stage 0 is the attention prior on embeddings, e^0 = x^0 - mu(x^0), whose queries are the variable
being generated.  Layer l >= 1 is x^l = f(x^{l-1}) + e^l with f a pre-norm transformer block (eqs.
41-43).  In the variables ordered by (layer, position) the Jacobian of all residuals is block
lower-triangular, and since x^l enters e^l only as itself the diagonal blocks of layers l >= 1 are
identities: log |det| is that of stage 0.  A layer whose queries read its own output x^l instead
(Section 6.5) contributes log |det(I - W_O W_V S W_K^T W_Q)| per position again, with S the
covariance of the previous layer's normalised tokens.

The law of a stack is the product over layers and positions of the laws of x_i^l given what precedes
it (eqs. 37 and 38): Gaussians above stage 0 for standard layers; a layer that queries with its own
output can fold, and its factor then integrates to the expected number of solutions, as stage 0's.

Shapes: X (L + 1, T, d), one slice per stage; every weight (d, d); residuals like X.  Float64 torch,
for autograd.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, gelu, layer_norm

from papers.margins.barrier import log_barrier
from papers.margins.heads import residuals
from papers.margins.prior import check_scale


@dataclass(frozen=True)
class Block:
    """One pre-norm block with a single head: attention, then a two-layer GELU network."""

    W_Q: Tensor
    W_K: Tensor
    W_V: Tensor
    W_O: Tensor
    W_in: Tensor
    W_out: Tensor
    implicit: bool = False  # True: the queries read the layer's own output (Section 6.5)

    @classmethod
    def random(
        cls, d: int, generator: torch.Generator, *, size: float = 0.8, implicit: bool = False
    ) -> Block:
        """Draw six matrices with entries N(0, size^2 / d)."""
        weights = size / d**0.5 * torch.randn(6, d, d, generator=generator, dtype=torch.float64)
        W_Q, W_K, W_V, W_O, W_in, W_out = weights
        return cls(W_Q, W_K, W_V, W_O, W_in, W_out, implicit)


def attention_weights(
    queries: Tensor, normed: Tensor, block: Block, *, causal: bool = True
) -> Tensor:
    """Softmax over j of (W_Q x_i).(W_K y_j), x (n, d), y (k, d), over j <= i if causal: (n, k)."""
    logits = (queries @ block.W_Q.T) @ (normed @ block.W_K.T).T
    if causal:
        ahead = torch.ones_like(logits, dtype=torch.bool).triu(1)
        logits = logits.masked_fill(ahead, -torch.inf)
    return logits.softmax(-1)


def block_output(previous: Tensor, current: Tensor, block: Block) -> Tensor:
    """f(x^{l-1}), or f(x^{l-1}; x^l) with queries from ``current`` if implicit: (T, d)."""
    normed = layer_norm(previous, previous.shape[-1:])
    a = attention_weights(current if block.implicit else normed, normed, block)
    attended = previous + a @ normed @ (block.W_O @ block.W_V).T
    if block.implicit:  # keep the network out of it, so that Theorem 1 applies as it stands
        return attended
    hidden = gelu(layer_norm(attended, attended.shape[-1:]) @ block.W_in.T)
    return attended + hidden @ block.W_out.T


def stack_residuals(X: Tensor, prior: tuple[Tensor, Tensor], blocks: list[Block]) -> Tensor:
    """All residuals e^0, ..., e^L of the stack at the variables X (L + 1, T, d) (eq. 36)."""
    layers = [
        X[level] - block_output(X[level - 1], X[level], block)
        for level, block in enumerate(blocks, start=1)
    ]
    return torch.stack([residuals(X[0], *prior), *layers])


def stack_jacobian(X: Tensor, prior: tuple[Tensor, Tensor], blocks: list[Block]) -> Tensor:
    """The full Jacobian by automatic differentiation, by (layer, position, coordinate)."""
    full = torch.autograd.functional.jacobian(lambda Z: stack_residuals(Z, prior, blocks), X)
    return full.reshape(X.numel(), X.numel())


def implicit_blocks(previous: Tensor, current: Tensor, block: Block) -> Tensor:
    """Closed form of an implicit layer's diagonal blocks, I - W_O W_V S_i W_K^T W_Q: (T, d, d)."""
    normed = layer_norm(previous, previous.shape[-1:])
    return _implicit_jacobians(attention_weights(current, normed, block), normed, block)


def conditional_log_density(
    candidates: Tensor, previous: Tensor, block: Block, *, s: float
) -> Tensor:
    """log p(x_i^l | x_1^{l-1}, ..., x_i^{l-1}) at candidates (n, d), a factor of eq. (37): (n,)."""
    if not block.implicit:
        return _gaussian(candidates - block_output(previous, previous, block)[-1], s)
    normed = layer_norm(previous, previous.shape[-1:])
    a = attention_weights(candidates, normed, block, causal=False)
    written = a @ normed @ (block.W_O @ block.W_V).T
    volume = torch.linalg.slogdet(_implicit_jacobians(a, normed, block)).logabsdet
    return _gaussian(candidates - previous[-1] - written, s) + volume


def _implicit_jacobians(a: Tensor, normed: Tensor, block: Block) -> Tensor:
    """I - W_O W_V S W_K^T W_Q, S the covariance of the tokens under weights a (n, k): (n, d, d)."""
    centred = normed - (a @ normed).unsqueeze(1)  # (n, k, d)
    S = torch.einsum("nk,nkc,nke->nce", a, centred, centred)
    identity = torch.eye(normed.shape[-1], dtype=normed.dtype)
    return identity - block.W_O @ block.W_V @ S @ block.W_K.T @ block.W_Q


def stack_log_densities(
    X: Tensor, prior: tuple[Tensor, Tensor], blocks: list[Block], *, s: float
) -> Tensor:
    """Logarithm of every factor of eq. (38), (L + 1, T): their sum is the log-density of the
    stack's variables X (eq. 78). ValueError if the noise scale s is not positive.
    """
    check_scale(s)
    layers = [_gaussian(residuals(X[0], *prior), s) - log_barrier(X[0], *prior)]
    for level, block in enumerate(blocks, start=1):
        factors = [
            conditional_log_density(X[level, i : i + 1], X[level - 1, : i + 1], block, s=s)
            for i in range(X.shape[1])
        ]
        layers.append(torch.cat(factors))
    return torch.stack(layers)


class JointTerms(NamedTuple):
    """The summands of -log p(w, x), in nats."""

    cross_entropy: Tensor
    energy: Tensor
    barrier: Tensor
    constant: Tensor

    @property
    def total(self) -> Tensor:
        return torch.stack(list(self)).sum()


def joint_terms(
    X: Tensor, tokens: Tensor, U: Tensor, W_Q: Tensor, W_K: Tensor, *, s: float
) -> JointTerms:
    """Every summand of the training objective of stage 0, -log p(w | x) p(x) with token
    probabilities softmax(U x_i) (Sections 4.3 and 5.3, eqs. 26, 27 and 34):

        cross-entropy + sum_i |e_i|^2 / (2 s^2) + sum_i beta_i + T d log(s sqrt(2 pi)).

    The experiments of Section 7.1 leave the energy out. X (T, d), tokens (T,), U (C, d), W_Q and
    W_K (r, d). ValueError if the noise scale s is not positive.
    """
    check_scale(s)
    return JointTerms(
        cross_entropy=cross_entropy(X @ U.T, tokens, reduction="sum"),
        energy=0.5 * (residuals(X, W_Q, W_K) / s).square().sum(),
        barrier=log_barrier(X, W_Q, W_K).sum(),
        constant=X.new_tensor(X.numel() * math.log(s * math.sqrt(2 * math.pi))),
    )


def _gaussian(residuals: Tensor, s: float) -> Tensor:
    d = residuals.shape[-1]
    return -0.5 * (residuals / s).square().sum(-1) - d * math.log(s * math.sqrt(2 * math.pi))
