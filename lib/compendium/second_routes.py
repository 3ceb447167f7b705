"""Second routes: derivatives of attention written as anybody would write it, with which the closed forms of 003 are compared.

A complex step loses no digits to cancellation, automatic differentiation none at all; neither knows a formula of the chapter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_STEP = 1e-30


def slope_by_complex_step(x: float, past: Array, c: float) -> float:
    """Derivative of e(x) = x - softmax(c x past) . past at x, as the imaginary part of e(x + ih) / h."""
    a = np.exp(c * (x + 1j * _STEP) * past)
    return 1.0 - float((a @ past / a.sum()).imag / _STEP)


def attention_jacobian(X: Array, W_Q: Array, W_K: Array, W_V: Array, causal: str) -> Array:
    """The whole Jacobian of e_i = x_i - W_V sum_j a_ij x_j by automatic differentiation: (T, d, T, d).

    The layer is written position by position; ``causal`` is ``strict`` (j < i) or ``inclusive`` (j <= i).
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
