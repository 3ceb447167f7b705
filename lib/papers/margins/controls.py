"""Controls for a training under the margin penalty: what the embeddings feel of it, and size alone.

Training may be chaotic: a difference in the last digit of a gradient may grow until two runs of one
seed differ by as much as a small effect would. Runs with the same code path and random draws, and a
penalty that does nothing but that, show whether it does.

* `DosedPrior` hands on the penalty's value and the whole gradient of M, but only ``dose`` times the
  gradient of the embeddings: with X0 a detached copy of X, penalty(X0 + dose (X - X0)). One is the
  treatment, zero a penalty on a detached copy, 1e-6 a placebo.
* `SizePull` makes embeddings follow a given path of sizes and knows nothing of M: what it gains, a
  penalty gains by size.

Shapes: X (..., T, d), path and sizes (steps,).
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
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


class SizePull(nn.Module):
    """(log rms(X) - log path[call])^2: the distance of the embeddings' size from that of a path
    (steps,) of positive numbers, one for each call.
    """

    path: Tensor
    calls: Tensor

    def __init__(self, path: NDArray[np.float64]) -> None:
        super().__init__()
        if not (path > 0).all():
            raise ValueError("every size of the path must be positive.")
        self.register_buffer("path", torch.from_numpy(np.asarray(path, dtype=np.float32)))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def extra_repr(self) -> str:
        """Name the path's ends, so that checkpoints of different ones are told apart."""
        return f"from={self.path[0].item():.6g}, to={self.path[-1].item():.6g}"

    def forward(self, X: Tensor) -> Tensor:
        """The squared distance of logarithms at this call."""
        wanted = self.path[self.calls]
        self.calls += 1
        return (0.5 * X.pow(2).mean().log() - wanted.log()).square()
