"""A control for a training under the margin penalty: how much the embeddings feel of it.

Training may be chaotic: a difference in the last digit of a gradient may grow until two runs of one
seed differ by as much as a small effect would. Runs with the same code path and random draws, and a
penalty that does nothing but that, show whether it does.

* `DosedPrior` hands on the penalty's value and the whole gradient of M, but only ``dose`` times the
  gradient of the embeddings: with X0 a detached copy of X, penalty(X0 + dose (X - X0)). One is the
  treatment, zero a penalty on a detached copy, 1e-6 a placebo.

Shapes: X (..., T, d), sizes (steps,).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from papers.margins.embedding_prior import EmbeddingPrior, PriorConfig


class DosedPrior(nn.Module):
    """An `EmbeddingPrior` of which the embeddings feel a share, ``dose`` from 0 to 1; it notes
    their size (root mean square) at each of up to ``steps`` calls in ``sizes``. ``seed`` seeds M.
    """

    sizes: Tensor
    calls: Tensor

    def __init__(self, config: PriorConfig, seed: int, dose: float, steps: int) -> None:
        super().__init__()
        if not 0 <= dose <= 1:
            raise ValueError(f"dose is {dose}: give a share from 0 to 1.")
        self.prior, self.dose = EmbeddingPrior(config, seed), dose
        self.register_buffer("sizes", torch.zeros(steps))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def extra_repr(self) -> str:
        """Name the dose, so that checkpoints of different ones are told apart."""
        return f"dose={self.dose}"

    def forward(self, X: Tensor) -> Tensor:
        """The prior's penalty on X."""
        still = X.detach()
        self.sizes[self.calls] = still.pow(2).mean().sqrt()
        self.calls += 1
        # A whole dose is the prior itself, to the last digit.
        return self.prior(X if self.dose == 1 else still + self.dose * (X - still))
