"""log |det J| of a batch of matrices, finite and differentiable up to, at and beyond singularity.

The change of variables of the source (003, eq. 5) charges log |det J_i|, which is -inf, without a
gradient, where J_i is singular.  So static pivoting: in J = P L U a pivot smaller in absolute value
than delta = eps * max(1, max |J|), eps the unit round-off of the dtype, is replaced by +-delta (+
for an exact zero).  Value and gradient then belong to one matrix, which differs from J by at most
delta in one entry per replaced pivot.  Away from the boundary nothing is replaced; at it the value
is about log delta plus the other pivots, and the gradient at most of order 1/delta.

Shapes: J (..., n, n); log |det J|, sign and the number of replaced pivots (...).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class SignedLogDet(NamedTuple):
    """log |det J|, sign of det J (-1, +1), number of replaced pivots: (...) each."""

    logabsdet: Tensor
    sign: Tensor
    replaced: Tensor


class _InverseTranspose(torch.autograd.Function):
    """X = J^{-T} from the logarithm's factors: dX = -X dJ^T X, <G, dX> = <-X G^T X, dJ>."""

    generate_vmap_rule = True

    @staticmethod
    def forward(J: Tensor, LU: Tensor, order: Tensor) -> Tensor:
        identity = torch.eye(LU.shape[-1], dtype=LU.dtype, device=LU.device).expand_as(LU)
        return torch.linalg.lu_solve(LU, order, identity, adjoint=True)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor, None, None]:
        (X,) = ctx.saved_tensors
        return -(X @ G.mT @ X), None, None


class _PivotedLogDet(torch.autograd.Function):
    """d log |det J| = <J^{-T}, dJ>, from the value's own factors, which are given back."""

    generate_vmap_rule = True

    @staticmethod
    def forward(J: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # J: (..., n, n)
        LU, order, _ = torch.linalg.lu_factor_ex(J)
        u = LU.diagonal(dim1=-2, dim2=-1)  # (..., n), a view
        delta = torch.finfo(J.dtype).eps * J.abs().amax(dim=(-2, -1)).clamp_min(1.0)
        small = u.abs() < delta.unsqueeze(-1)  # False for NaN: a NaN input stays visible
        u.copy_(torch.where(small, torch.where(u < 0, -1.0, 1.0) * delta.unsqueeze(-1), u))
        swaps = (order != torch.arange(1, J.shape[-1] + 1, device=J.device, dtype=order.dtype)).sum(
            -1
        )
        sign = torch.where((swaps + (u < 0).sum(-1)) % 2 == 0, 1.0, -1.0).to(J.dtype)
        return u.abs().log().sum(-1), sign, small.sum(-1), LU, order

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, ...]) -> None:
        _, sign, replaced, LU, order = output
        ctx.mark_non_differentiable(sign, replaced, LU, order)
        ctx.save_for_backward(inputs[0], LU, order)

    @staticmethod
    def backward(ctx: Any, g: Tensor, *_: Tensor) -> Tensor:
        J, LU, order = ctx.saved_tensors
        return g[..., None, None] * _InverseTranspose.apply(J, LU, order)


def signed_logdet(J: Tensor) -> SignedLogDet:
    """Compute log |det J| of J (..., n, n), float32 or float64, with static pivoting: finite for
    every finite J, differentiable as often as asked, under ``vmap`` as well. ``replaced > 0`` marks
    matrices that are singular to working precision, for which the value is a cap.
    """
    return SignedLogDet(*_PivotedLogDet.apply(J)[:3])
