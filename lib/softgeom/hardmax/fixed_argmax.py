"""The mean of the tokens after K hardmax layers, with its exact derivative, at the price of K
comparisons.

Source 004, equations (1a) and (1b) with A = identity. Away from ties every set C_i holds one token
j(i), and a layer is the linear map z_i <- z_i + c (z_j(i) - z_i), c = alpha / (1 + alpha). So the
mean after K layers is sum_j m_j z_j^0 with weights that depend on the sets alone: they start as the
tokens' shares, m_i = counts_i / sum counts, and going back through the layers each token hands c
m_i on to the one that it looked to,

    m_j  <-  (1 - c) m_j + c * sum of m_i over i with j(i) = j.

These weights are the derivative of the mean with respect to the embeddings, and the tokens' moves
under them are its derivative in c. Nothing of size n x n is kept for the way back, which is what
makes training through the layers ten times faster than by recording every operation. Z (B, n, d)
reviews of at most n distinct words, counts (B, n) with padding (0) behind the words.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

_COMFORTABLE = 8  # coordinates from which batched products run at full speed; fewer are filled up


class _MeanAfterLayers(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, Z: Tensor, counts: Tensor, alpha: Tensor, layers: int) -> Tensor:
        c = float(alpha / (1 + alpha))
        shares = counts / counts.sum(-1, keepdim=True)
        # Padding stands where the first word stands, so that no number in it matters, and is barred
        # below: the scores of a copy may differ by rounding, and then it could win.
        there = counts > 0
        state = torch.where(there[..., None], Z, Z[:, :1])
        barred = ~there[:, None]
        looks_to, moves = [], []
        for _ in range(layers):
            chosen = _farthest(state, barred)
            move = torch.gather(state, 1, chosen[..., None].expand_as(state)) - state
            state = state + c * move
            looks_to.append(chosen)
            moves.append(move)
        weights, slope = shares, torch.zeros_like(state[:, 0])
        for chosen, move in zip(reversed(looks_to), reversed(moves), strict=True):
            slope += (weights[..., None] * move).sum(1)
            handed_on = c * weights
            weights = (weights - handed_on).scatter_add(1, chosen, handed_on)
        ctx.save_for_backward(weights, slope, alpha)
        return (shares[..., None] * state).sum(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, Tensor, None]:
        (gradient,) = gradients
        weights, slope, alpha = ctx.saved_tensors
        slope_of_alpha = (gradient * slope).sum() / (1 + alpha) ** 2
        return weights[..., None] * gradient[:, None], None, slope_of_alpha, None


def mean_after_layers(Z: Tensor, counts: Tensor, alpha: Tensor, layers: int) -> Tensor:
    """The mean (B, d) of the tokens after `layers` hardmax layers with A = identity, differentiable
    in Z and alpha with the argmax held fixed.

    Of tokens that tie for the largest score one is taken (rounding decides which, but never
    padding), where `hardmax_step` takes their mean: the two differ at exact ties only, where the
    derivative does not exist either. Use it to train, and `hardmax_step` to judge.
    """
    return _MeanAfterLayers.apply(Z, counts, alpha, layers)


def _farthest(state: Tensor, barred: Tensor) -> Tensor:
    """argmax_j <z_i, z_j> over tokens not `barred`: (B, n, d) -> (B, n). NumPy's is the faster."""
    filled = F.pad(state, (0, max(0, _COMFORTABLE - state.shape[-1])))
    scores = (filled @ filled.mT).masked_fill_(barred, -torch.inf)
    if scores.device.type == "cpu":
        return torch.from_numpy(scores.numpy().argmax(-1))
    return scores.argmax(-1)
