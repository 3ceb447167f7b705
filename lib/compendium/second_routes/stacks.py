"""The whole Jacobian of a deep stack by automatic differentiation, and integrals of its factors by
a grid (003, Section 6).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softgeom.margins.jacobian import attention_jacobian_blocks

Array = NDArray[np.float64]


class Stack(NamedTuple):
    """A stack of an attention prior and two layers: its whole Jacobian by autograd, and the closed
    form of each stage's log-determinant.
    """

    jacobian: Array
    terms: tuple[float, ...]


def compare_stacks(seed: int) -> dict[str, Stack]:
    """Two standard layers above an attention prior, and the same with a last layer that queries
    with its own output (003, Section 6).
    """
    import torch

    from softgeom.margins import depth

    generator = torch.Generator().manual_seed(seed)
    stages = torch.randn(3, 4, 3, generator=generator, dtype=torch.float64)
    W_Q, W_K = (0.7 * W for W in torch.randn(2, 3, 3, generator=generator, dtype=torch.float64))
    standard = [depth.Block.random(3, generator) for _ in range(2)]
    modified = [standard[0], depth.Block.random(3, generator, implicit=True)]
    prior_blocks = attention_jacobian_blocks(stages[0].numpy(), W_Q.numpy(), W_K.numpy())
    prior = float(np.linalg.slogdet(prior_blocks)[1].sum())
    own = (
        torch.linalg.slogdet(depth.implicit_blocks(stages[1], stages[2], modified[1]))
        .logabsdet.sum()
        .item()
    )
    cases = {
        "two standard layers": (standard, 0.0),
        "last layer queries with its own output": (modified, own),
    }
    return {
        name: Stack(depth.stack_jacobian(stages, (W_Q, W_K), layers).numpy(), (prior, 0.0, term))
        for name, (layers, term) in cases.items()
    }


def compare_stack_densities(seed: int, s: float) -> float:
    """Largest gap between the factors' sum (eq. 38) and the change of variables through the whole
    Jacobian (eq. 39), standard and implicit stacks.
    """
    import torch

    from softgeom.margins import depth

    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(3, 4, 3, generator=generator, dtype=torch.float64)
    prior = tuple(0.7 * W for W in torch.randn(2, 3, 3, generator=generator, dtype=torch.float64))
    gaps = []
    for implicit in (False, True):
        layers = [
            depth.Block.random(3, generator),
            depth.Block.random(3, generator, implicit=implicit),
        ]
        energies = (
            torch.distributions.Normal(X.new_zeros(()), X.new_tensor(s))
            .log_prob(depth.stack_residuals(X, prior, layers))
            .sum()
        )
        whole = energies + torch.linalg.slogdet(depth.stack_jacobian(X, prior, layers)).logabsdet
        gaps.append(abs(float(whole - depth.stack_log_densities(X, prior, layers, s=s).sum())))
    return max(gaps)


def layer_masses(
    couplings: Array, s: float, *, points: int = 361, reach: float = 9.0
) -> dict[str, Array]:
    """What one factor of eq. (37) integrates to, by a grid over the plane, for a standard layer and
    one that queries with its own output.

    Queries are c times the token, keys and values the normalised tokens of a past of four; c runs
    through ``couplings``.
    """
    import torch

    from softgeom.margins import depth

    eye = torch.eye(2, dtype=torch.float64)
    past = torch.tensor([[1.0, -1.0], [-1.0, 1.0], [2.0, 0.0], [-0.5, 0.5]], dtype=torch.float64)
    axis = torch.linspace(-reach, reach, points, dtype=torch.float64)
    grid, cell = torch.cartesian_prod(axis, axis), float(axis[1] - axis[0]) ** 2
    return {
        name: np.array(
            [
                cell
                * float(
                    depth.conditional_log_density(
                        grid, past, depth.Block(c * eye, eye, eye, eye, eye, eye, implicit), s=s
                    )
                    .exp()
                    .sum()
                )
                for c in couplings
            ]
        )
        for name, implicit in (("standard", False), ("own output", True))
    }
