"""Normalisation as geometry (002, "Layer Normalization"): a projection, a sphere, an affine map;
folded, one division.

A state z is a row of d coordinates; mu(z) its mean, sigma(z) its standard deviation (over d, not d
- 1). With P = I - 1 1^T / d, the projection on the hyperplane orthogonal to (1, ..., 1), and eps >
0 that keeps the division finite,

    LayerNorm(z) = z P / sqrt(sigma(z)^2 + eps) * gamma + beta,
    RMSNorm(z) = z / sqrt(mean(z^2) + eps) * gamma.

As |z P| = sqrt(d) sigma(z), what stands before gamma lies on a sphere of radius sqrt(d) sigma /
sqrt(sigma^2 + eps), just inside sqrt(d). For a fixed sigma(z) the map is affine, z L + beta with L
= P diag(gamma) / sqrt(sigma^2 + eps) (d, d), so that a linear layer that reads it, LayerNorm(z) W +
b, may absorb everything but the division:

    LayerNorm(z) W + b = z / sqrt(sigma(z)^2 + eps) (P diag(gamma) W) + (beta W + b).

RMSNorm has P = I and beta = 0 in all of these. If moreover everything that writes into the stream
is centred (W -> W P), then z = z P, sigma(z)^2 = mean(z^2), and LayerNorm *is* RMSNorm: the
hyperplane was the whole difference.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Normalisation:
    """One norm of a model: gain `gamma` (d), shift `beta` (d), `eps`; centred if LayerNorm."""

    gamma: Tensor
    beta: Tensor
    eps: float
    centred: bool

    def __call__(self, z: Tensor) -> Tensor:
        """The norm of states z (..., d) by its geometry: project, to the sphere, stretch, shift."""
        return on_sphere(z, self.eps, self.centred) * self.gamma + self.beta

    def matrix(self, z: Tensor) -> Tensor:
        """L of the affine map z L + beta, for the scale of each state: (..., d) -> (..., d, d)."""
        P = torch.eye(len(self.gamma), dtype=self.gamma.dtype, device=self.gamma.device)
        P = P - P.mean(0) if self.centred else P
        return P * self.gamma / scale(z, self.eps, self.centred)[..., None]


@dataclass(frozen=True)
class Division:
    """What is left of a norm after folding: the division by the state's own scale."""

    eps: float
    centred: bool

    def __call__(self, z: Tensor) -> Tensor:
        """States (..., d) over their scale; the reader's matrix subtracts the mean."""
        return z / scale(z, self.eps, self.centred)


def scale(z: Tensor, eps: float, centred: bool) -> Tensor:
    """sqrt(sigma(z)^2 + eps), or sqrt(mean(z^2) + eps) without centring: (..., 1)."""
    return torch.sqrt(_mean_square(z, centred) + eps)


def on_sphere(z: Tensor, eps: float, centred: bool) -> Tensor:
    """States projected (if `centred`) and over their scale, before gain and shift: (..., d)."""
    projected = z - z.mean(-1, keepdim=True) if centred else z
    return projected / scale(z, eps, centred)


def radius(z: Tensor, eps: float, centred: bool) -> Tensor:
    """sqrt(d) sigma / sqrt(sigma^2 + eps), (...): the norm of `on_sphere(z)` from the spread."""
    mean_square = _mean_square(z, centred)[..., 0]
    return torch.sqrt(z.shape[-1] * mean_square / (mean_square + eps))


def fold(norm: Normalisation, W: Tensor, b: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Fold gain, shift and centring of a norm into the layer x W + b that reads it, W (..., d, k),
    b (..., k): W' = P diag(gamma) W and b' = beta W + b, to be fed z / sqrt(sigma(z)^2 + eps).
    """
    shift, stretched = norm.beta @ W, norm.gamma[:, None] * W
    # P subtracts from each column its mean over the d coordinates; no (d, d) matrix is needed for
    # that.
    folded = stretched - stretched.mean(-2, keepdim=True) if norm.centred else stretched
    return folded, shift if b is None else shift + b


def _mean_square(z: Tensor, centred: bool) -> Tensor:
    """sigma(z)^2 with centring, mean(z^2) without: (..., d) -> (..., 1)."""
    projected = z - z.mean(-1, keepdim=True) if centred else z
    return projected.square().mean(-1, keepdim=True)
