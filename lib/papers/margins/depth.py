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
it (eqs. 37 and 38); its logarithm is the sum of Gaussian energies and of those log-determinants
(eqs. 39 and 78). Above stage 0 a standard layer's factor is a Gaussian. A layer that queries with
its own output can fold, and its factor then integrates to the expected number of solutions, like
that of stage 0.

Shapes: X (L + 1, T, d), one slice per stage; every weight (d, d); residuals like X.  Float64 torch,
for autograd.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from papers.margins.barrier import log_barrier
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


def attention_weights(queries: Tensor, keys: Tensor, *, inclusive: bool) -> Tensor:
    """Softmax over the past of logits q_i.k_j: (T, T); the strict row of position 1 is zero."""
    seen = torch.ones(len(queries), len(keys), dtype=torch.bool).tril(0 if inclusive else -1)
    return (
        torch.softmax((queries @ keys.T).masked_fill(~seen, torch.finfo(queries.dtype).min), dim=-1)
        * seen
    )


def prior_residuals(X: Tensor, W_Q: Tensor, W_K: Tensor) -> Tensor:
    """Stage 0: e_i = x_i - sum_{j<i} a_ij x_j, (T, d)."""
    return X - attention_weights(X @ W_Q.T, X @ W_K.T, inclusive=False) @ X


def block_output(previous: Tensor, current: Tensor, block: Block) -> Tensor:
    """f(x^{l-1}), or f(x^{l-1}; x^l) with queries from ``current`` if implicit: (T, d)."""
    normed = torch.nn.functional.layer_norm(previous, previous.shape[-1:])
    queries = current if block.implicit else normed
    a = attention_weights(queries @ block.W_Q.T, normed @ block.W_K.T, inclusive=True)
    attended = previous + a @ normed @ (block.W_O @ block.W_V).T
    if block.implicit:  # keep the network out of it, so that Theorem 1 applies as it stands
        return attended
    hidden = torch.nn.functional.gelu(
        torch.nn.functional.layer_norm(attended, attended.shape[-1:]) @ block.W_in.T
    )
    return attended + hidden @ block.W_out.T


def stack_residuals(X: Tensor, prior: tuple[Tensor, Tensor], blocks: list[Block]) -> Tensor:
    """All residuals e^0, ..., e^L of the stack at the variables X (L + 1, T, d) (eq. 36)."""
    layers = [
        X[level] - block_output(X[level - 1], X[level], block)
        for level, block in enumerate(blocks, start=1)
    ]
    return torch.stack([prior_residuals(X[0], *prior), *layers])


def stack_jacobian(X: Tensor, prior: tuple[Tensor, Tensor], blocks: list[Block]) -> Tensor:
    """The full Jacobian by automatic differentiation, by (layer, position, coordinate)."""
    full = torch.autograd.functional.jacobian(lambda Z: stack_residuals(Z, prior, blocks), X)
    return full.reshape(X.numel(), X.numel())


def implicit_blocks(previous: Tensor, current: Tensor, block: Block) -> Tensor:
    """Closed form of an implicit layer's diagonal blocks, I - W_O W_V S_i W_K^T W_Q: (T, d, d)."""
    normed = torch.nn.functional.layer_norm(previous, previous.shape[-1:])
    a = attention_weights(current @ block.W_Q.T, normed @ block.W_K.T, inclusive=True)
    centred = normed - (a @ normed).unsqueeze(1)  # (T, T, d)
    S = torch.einsum("ij,ijc,ije->ice", a, centred, centred)
    identity = torch.eye(previous.shape[-1], dtype=previous.dtype)
    return identity - block.W_O @ block.W_V @ S @ block.W_K.T @ block.W_Q


def conditional_log_density(
    candidates: Tensor, previous: Tensor, block: Block, *, s: float
) -> Tensor:
    """log p(x_i^l | x_1^{l-1}, ..., x_i^{l-1}) at candidates (n, d), a factor of eq. (37): (n,)."""
    context = previous.expand(len(candidates), *previous.shape)
    if not block.implicit:
        mean = block_output(previous, previous, block)[-1]
        return _gaussian(candidates - mean, s)
    normed = torch.nn.functional.layer_norm(context, previous.shape[-1:])
    a = torch.softmax(
        torch.einsum("nd,nkd->nk", candidates @ block.W_Q.T, normed @ block.W_K.T), dim=-1
    )
    attended = torch.einsum("nk,nkd->nd", a, normed)
    centred = normed - attended.unsqueeze(1)
    S = torch.einsum("nk,nkc,nke->nce", a, centred, centred)
    values = block.W_O @ block.W_V
    J = torch.eye(previous.shape[-1], dtype=previous.dtype) - values @ S @ block.W_K.T @ block.W_Q
    return (
        _gaussian(candidates - previous[-1] - attended @ values.T, s)
        + torch.linalg.slogdet(J).logabsdet
    )


def stack_log_densities(
    X: Tensor, prior: tuple[Tensor, Tensor], blocks: list[Block], *, s: float
) -> Tensor:
    """Logarithm of every factor of eq. (38), (L + 1, T): their sum is the log-density of the
    stack's variables X (eq. 78). ValueError if the noise scale s is not positive.
    """
    check_scale(s)
    first = _gaussian(prior_residuals(X[0], *prior), s) - log_barrier(X[0], *prior)
    above = [
        torch.cat(
            [
                conditional_log_density(X[level, i : i + 1], X[level - 1, : i + 1], block, s=s)
                for i in range(X.shape[1])
            ]
        )
        for level, block in enumerate(blocks, start=1)
    ]
    return torch.stack([first, *above])


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
    """Every summand of the training objective of stage 0, -log p(w | x) p(x) (Sections 4.3 and 5.3,
    eqs. 26, 27 and 34): a decoder head gives each token w_i the probability softmax(U x_i)_{w_i},
    and the prior gives the embeddings their density, so that it is

        cross-entropy + sum_i |e_i|^2 / (2 s^2) + sum_i beta_i + T d log(s sqrt(2 pi)),

    with e_i = x_i - mu_i(x_i) and beta_i = -log |det J_i|. The prior has two terms that depend on x
    and on the coupling, an energy and the barrier; the experiments of Section 7.1 train with the
    barrier alone. X (T, d), tokens (T,), U (C, d), W_Q and W_K (r, d). ValueError if the noise
    scale s is not positive.
    """
    check_scale(s)
    return JointTerms(
        cross_entropy=torch.nn.functional.cross_entropy(X @ U.T, tokens, reduction="sum"),
        energy=0.5 * (prior_residuals(X, W_Q, W_K) / s).square().sum(),
        barrier=log_barrier(X, W_Q, W_K).sum(),
        constant=X.new_tensor(X.numel() * math.log(s * math.sqrt(2 * math.pi))),
    )


def _gaussian(residuals: Tensor, s: float) -> Tensor:
    d = residuals.shape[-1]
    return -0.5 * (residuals / s).square().sum(-1) - d * math.log(s * math.sqrt(2 * math.pi))
