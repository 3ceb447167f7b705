"""The EmbeddingPrior of the experiments (003, Section 7.1): one strict-causal attention layer, used
as a penalty.

The paper trains "a learnable matrix" M beside the language model and adds lambda * mean_i beta_i to
the cross-entropy, beta_i = -log |det(I - S_i M)|, without the quadratic term of eq. (24). Its text
leaves four readings open; each is a field of :class:`PriorConfig`:

* M a full d x d matrix (the paper's words), or W_K^T W_Q of rank r, where the r x r determinant is
  enough;
* its coupling: free, positive (W_K = W_Q, so M is positive semidefinite and the barrier bounds
  dispersion), held (positive, with the Frobenius norm that M had at the start: it can turn, and
  cannot die), or negative (W_K = -W_Q: no boundary, dispersion is rewarded without limit);
* the quadratic term |x_i - mu_i|^2 / (2 s^2), left out by the paper;
* the size of M at the start.

Shapes: X (..., T, d), W_Q and W_K (r, d), M (d, d).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from papers.margins.barrier import log_barrier
from papers.margins.heads import residuals

COUPLINGS = ("free", "positive", "held", "negative")


@dataclass(frozen=True)
class PriorConfig:
    """Readings of the EmbeddingPrior that the paper leaves open."""

    d_model: int = 64  # width of the embeddings
    rank: int = 16  # of M; 0 for a full d x d matrix
    coupling: str = "free"  # free, positive, held or negative
    quadratic: bool = False  # add mean_i |x_i - mu_i|^2 / (2 s^2)
    noise_scale: float = 1.0  # s of the quadratic term
    init_scale: float = 1.0  # entries of the factors start as N(0, init_scale^2 / d_model)
    # training averages beta over every stride-th position only: makes a full M affordable
    stride: int = 1

    def __post_init__(self) -> None:
        if self.coupling not in COUPLINGS:
            raise ValueError(
                f"coupling is {self.coupling!r}: choose one of {', '.join(COUPLINGS)}."
            )
        if not 0 <= self.rank <= self.d_model:
            raise ValueError(
                f"rank is {self.rank}: choose 1 to d_model = {self.d_model}, or 0 for a full "
                "matrix."
            )
        if not self.noise_scale > 0:
            raise ValueError(f"noise_scale is {self.noise_scale}: give a positive s.")
        if self.stride < 1:
            raise ValueError(
                f"stride is {self.stride}: take every position (1) or every stride-th."
            )


class EmbeddingPrior(nn.Module):
    """A learnable M; called on embeddings, it returns the penalty averaged over positions. ``seed``
    seeds M; the global random state is neither read nor changed.
    """

    first_norm: Tensor

    def __init__(self, config: PriorConfig, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        d = config.d_model
        self.W_Q = nn.Parameter(torch.empty(config.rank or d, d))
        factors = [self.W_Q]
        if config.coupling == "free" and config.rank:
            self.W_K = nn.Parameter(torch.empty(config.rank, d))
            factors.append(self.W_K)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for factor in factors:
                factor.normal_(0.0, config.init_scale / math.sqrt(d), generator=generator)
        if config.coupling == "held":
            self.register_buffer("first_norm", (self.W_Q @ self.W_Q.T).detach().norm())

    def extra_repr(self) -> str:
        """Name the readings, so that checkpoints of different ones are told apart."""
        return repr(self.config)

    def factors(self) -> tuple[Tensor, Tensor]:
        """``(W_Q, W_K)`` with M = W_K^T W_Q; a free full M is ``(M, I)``."""
        W = self.W_Q
        if self.config.coupling == "positive":
            return W, W
        if self.config.coupling == "held":
            # |W^T W| = |W W^T|, the smaller matrix
            W = W * (self.first_norm / (W @ W.T).norm()).sqrt()
            return W, W
        if self.config.coupling == "negative":
            return W, -W
        if self.config.rank:
            return W, self.W_K
        return W, torch.eye(self.config.d_model, dtype=W.dtype, device=W.device)

    def coupling_matrix(self) -> Tensor:
        """M = W_K^T W_Q, (d, d)."""
        W_Q, W_K = self.factors()
        return W_K.T @ W_Q

    def scores(self, X: Tensor) -> Tensor:
        """Barrier scores beta_i = -log |det(I - S_i M)|: (..., T, d) -> (..., T), in nats."""
        return log_barrier(X, *self.factors())

    def forward(self, X: Tensor) -> Tensor:
        """Mean of beta over sequences and positions (plus the quadratic term)."""
        c, kept = self.config, None
        if c.stride > 1:
            # The last position of each stretch: the first positions have no past and no score, and
            # would bias the mean.
            kept = torch.arange(c.stride - 1, X.shape[-2], c.stride, device=X.device)
        penalty = log_barrier(X, *self.factors(), positions=kept).mean()
        if c.quadratic:
            energy = residuals(X, *self.factors()).pow(2).sum(-1).mean()
            penalty = penalty + energy / (2 * c.noise_scale**2)
        return penalty
