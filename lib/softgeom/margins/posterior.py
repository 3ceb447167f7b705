"""The joint law of tokens and embeddings, whose negative logarithm is the training objective (003,
Sections 4.3 and 5.3, eqs. 26, 27 and 34).

p(w, x) = p(w | x) p(x): a decoder head gives each position's token w_i the probability softmax(U
x_i)_{w_i}, and the attention prior gives the embeddings their density.  So

    -log p(w, x) = cross-entropy + sum_i |e_i|^2 / (2 s^2) + sum_i beta_i + T d log(s sqrt(2 pi)),

with e_i = x_i - mu_i(x_i) and beta_i = -log |det J_i|.  The prior has two terms that depend on x
and on the coupling: an energy and the barrier.  The experiments of Section 7.1 train with the
barrier alone.

Shapes: X (T, d), tokens (T,) integers, U (C, d), W_Q and W_K (r, d).  Torch, for autograd.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from softgeom.margins.barrier import log_barrier
from softgeom.margins.depth import prior_residuals


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
    """Every summand of -log p(w, x) of one sequence. ValueError if the noise scale s is not
    positive.
    """
    if not s > 0:
        raise ValueError(
            f"the noise scale s must be positive, not {s}: at s = 0 the embeddings have no density"
        )
    return JointTerms(
        cross_entropy=torch.nn.functional.cross_entropy(X @ U.T, tokens, reduction="sum"),
        energy=0.5 * (prior_residuals(X, W_Q, W_K) / s).square().sum(),
        barrier=log_barrier(X, W_Q, W_K).sum(),
        constant=X.new_tensor(X.numel() * math.log(s * math.sqrt(2 * math.pi))),
    )
