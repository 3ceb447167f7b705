"""Derivatives of attention written as anybody would write it, with which the closed forms of 003
are compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgeom.margins import scalar
from softgeom.margins.jacobian import (
    appendix_a_blocks,
    attention_jacobian_blocks,
    residual_jacobian,
)

Array = NDArray[np.float64]

_STEP = 1e-30


def slope_by_complex_step(x: float, past: Array, c: float) -> float:
    """Derivative of e(x) = x - softmax(c x past) . past at x, as the imaginary part of e(x + ih) /
    h.
    """
    a = np.exp(c * (x + 1j * _STEP) * past)
    return 1.0 - float((a @ past / a.sum()).imag / _STEP)


def attention_jacobian(X: Array, W_Q: Array, W_K: Array, W_V: Array, causal: str) -> Array:
    """The whole Jacobian of e_i = x_i - W_V sum_j a_ij x_j by automatic differentiation: (T, d, T,
    d).

    The layer is written position by position; ``causal`` is ``strict`` (j < i) or ``inclusive`` (j
    <= i).
    """
    import torch

    Q, K, V = (torch.as_tensor(W) for W in (W_Q, W_K, W_V))

    def layer(Z: torch.Tensor) -> torch.Tensor:
        rows = []
        for i in range(len(Z)):
            context = Z[: i if causal == "strict" else i + 1]
            if len(context) == 0:
                rows.append(Z[i])
                continue
            weights = torch.softmax((context @ K.T) @ (Q @ Z[i]), dim=0)
            rows.append(Z[i] - V @ (weights @ context))
        return torch.stack(rows)

    return np.asarray(torch.autograd.functional.jacobian(layer, torch.as_tensor(X)))


# name -> (mask, whether values are a random W_V, closed form)
BLOCK_FORMS = {
    "Theorem 1: I - S M": ("strict", False, lambda X, Q, K, V: attention_jacobian_blocks(X, Q, K)),
    "with values: I - W_V S M": ("strict", True, attention_jacobian_blocks),
    "Appendix A as printed, eq. (53)": ("inclusive", True, appendix_a_blocks),
    "Appendix A as printed, eq. (54)": (
        "inclusive",
        False,
        lambda X, Q, K, V: appendix_a_blocks(X, Q, K),
    ),
    "Appendix A with the key term": (
        "inclusive",
        True,
        lambda *layer: attention_jacobian_blocks(*layer, causal="inclusive"),
    ),
}


class Comparison(NamedTuple):
    """Gaps of the closed forms of blocks and whole, largest entry above the block diagonal, gap of
    the log-determinant's factorisation.
    """

    formulas: pd.DataFrame
    whole: float
    above_diagonal: float
    determinant: float
    # least |det| over all blocks of inclusive layers with random values
    smallest_inclusive_volume: float


def compare_blocks(layers: Iterable[tuple[Array, Array, Array, Array]]) -> Comparison:
    """Put every closed form of a Jacobian block beside automatic differentiation, on layers (X,
    W_Q, W_K, W_V).
    """
    gaps: dict[str, list[float]] = {name: [] for name in BLOCK_FORMS}
    wholes, above, determinants, volumes = [], [], [], []
    for X, W_Q, W_K, W_V in layers:
        T, d = X.shape
        future = np.triu(np.ones((T, T), dtype=bool), 1)
        for causal in ("strict", "inclusive"):
            for values, V in ((False, np.eye(d)), (True, W_V)):
                full = attention_jacobian(X, W_Q, W_K, V, causal)
                truth = np.einsum("icie->ice", full)
                for name, (mask, with_values, form) in BLOCK_FORMS.items():
                    if (mask, with_values) == (causal, values):
                        gaps[name].append(np.abs(form(X, W_Q, W_K, V) - truth).max())
                wholes.append(np.abs(residual_jacobian(X, W_Q, W_K, V, causal=causal) - full).max())
                above.append(np.abs(full.transpose(0, 2, 1, 3)[future]).max())
                # singular for every input: its first block is zero
                if causal == "inclusive" and not values:
                    continue
                blocks = np.linalg.slogdet(
                    attention_jacobian_blocks(X, W_Q, W_K, V, causal=causal)
                )[1]
                determinants.append(
                    abs(np.linalg.slogdet(full.reshape(T * d, T * d))[1] - blocks.sum())
                )
                if causal == "inclusive":
                    volumes.append(np.exp(blocks.min()))
    rows = [
        {"formula": name, "median_gap": np.median(g), "largest_gap": max(g)}
        for name, g in gaps.items()
    ]
    return Comparison(
        pd.DataFrame(rows),
        float(max(wholes)),
        float(max(above)),
        float(max(determinants)),
        float(min(volumes)),
    )


def negative_couplings(rng: np.random.Generator, trials: int, T: int, d: int) -> dict[str, float]:
    """Smallest determinant of a block under three kinds of negative coupling.

    ``line``: a negative number; ``definite``: random matrices with a negative definite symmetric
    part; ``skew``: a shear whose eigenvalues are both -1, with a past that is dispersed along the
    direction in which it stretches.
    """
    line = [scalar.margin(x, np.array(past), -2.0) for x, *past in rng.standard_normal((200, 5))]
    definite = []
    for _ in range(trials):
        root, turn = rng.standard_normal((2, d, d))
        coupling = -root @ root.T - 0.1 * np.eye(d) + turn - turn.T
        cloud = 2.0 * rng.standard_normal((T, d))
        definite.append(np.linalg.det(attention_jacobian_blocks(cloud, coupling, np.eye(d))).min())
    shear, along = np.array([[-1.0, 10.0], [0.0, -1.0]]), np.array([1.0, 1.0]) / np.sqrt(2)
    torn = np.linalg.det(
        attention_jacobian_blocks(np.array([along, -along, 0 * along]), shear, np.eye(2))
    ).min()
    return {"line": float(min(line)), "definite": float(min(definite)), "skew": float(torn)}
