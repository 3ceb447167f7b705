"""Perturbed embeddings and what they cost a language model (003, Section 7.3, Figure 7.5, Appendix
E.1).

Two families act on the token embeddings e_t of a sequence before the first block:

* noise:  e'_t = e_t + sigma eps_t, eps_t ~ N(0, I_d);
* drift:  e'_t = e_t + sigma z_t u, z_t ~ N(0, 1), with one random unit vector u per sequence.

The paper compares models at equal absolute sigma by the degradation ratio, perturbed over clean
perplexity. A model whose embeddings are larger sees a smaller relative perturbation at the same
sigma: so sigma is also given relative to the root mean square of the embeddings. That u has unit
length is our reading.

Shapes: embeddings X (B, T, d), losses (windows, T), E (V, d).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

FAMILIES = ("noise", "drift")
SCALES = ("absolute", "relative")


@dataclass(frozen=True)
class Perturbation:
    """One condition of the robustness experiment."""

    family: str  # noise or drift
    scale: str  # absolute, or relative to the embeddings' root mean square
    level: int  # number in its grid, from 1
    sigma: float  # in the units of the scale

    def __post_init__(self) -> None:
        if self.family not in FAMILIES or self.scale not in SCALES:
            raise ValueError(
                f"perturbation {self.family!r} at scale {self.scale!r}: choose a family of "
                f"{', '.join(FAMILIES)} and a scale of {', '.join(SCALES)}."
            )
        if not self.sigma >= 0:
            raise ValueError(f"sigma is {self.sigma}: a perturbation's size is zero or positive.")


def add_noise(X: Tensor, sigma: float, generator: torch.Generator) -> Tensor:
    """Add independent Gaussian noise of deviation ``sigma`` to every coordinate of X (B, T, d)."""
    return X + sigma * _normal(X.shape, generator).to(X)


def add_drift(X: Tensor, sigma: float, generator: torch.Generator) -> Tensor:
    """Move each token of X (B, T, d) by ``sigma * z_t`` along its sequence's own random unit vector
    u. The generator is on the CPU, so that a draw does not depend on the device.
    """
    B, T, d = X.shape
    u = _normal((B, 1, d), generator)
    u = u / u.norm(dim=-1, keepdim=True)
    return X + (sigma * _normal((B, T, 1), generator) * u).to(X)


def perturber(
    perturbation: Perturbation, rms: float, seed: int
) -> Callable[[Tensor, slice], Tensor]:
    """A function for :func:`papers.language_model.window_losses` that adds a perturbation to a
    model whose embeddings have the root mean square ``rms``, the unit of a relative sigma.

    A drift along a unit vector moves one coordinate out of d, so its unit is the typical length of
    an embedding, sqrt(d) rms. Window w always gets the draw of ``(seed, w)``, so that models and
    levels are compared on the same randomness.
    """

    def perturb(X: Tensor, rows: slice) -> Tensor:
        sigma = perturbation.sigma
        if perturbation.scale == "relative":
            sigma *= rms * (X.shape[-1] ** 0.5 if perturbation.family == "drift" else 1.0)
        perturbed = []
        for window, x in enumerate(X, start=rows.start):
            generator = torch.Generator().manual_seed(seed * 1_000_003 + window)
            if perturbation.family == "noise":
                perturbed.append(add_noise(x[None], sigma, generator))
            else:
                perturbed.append(add_drift(x[None], sigma, generator))
        return torch.cat(perturbed)

    return perturb


def embedding_rms(X: Tensor) -> float:
    """Root mean square of all entries of X, sqrt(mean of squares)."""
    return X.detach().double().pow(2).mean().sqrt().item()


def contextual_embedding_error(logits: Tensor, tokens: Tensor, E: Tensor) -> Tensor:
    """|e_t - sum_v p(v | past) E_v|^2 / |e_t|^2 (003, Section 7.5, item 3): how far a token's
    embedding is from the one that the model expects. Logits (..., V) of the token that follows,
    the tokens that follow (...), embeddings E (V, d) -> (...).
    """
    expected = logits.softmax(-1).to(E.dtype) @ E
    truth = E[tokens]
    return (truth - expected).pow(2).sum(-1) / truth.pow(2).sum(-1)


def _normal(shape: tuple[int, ...] | torch.Size, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)
