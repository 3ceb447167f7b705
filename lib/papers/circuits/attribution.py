"""Localising inputs: how much of a prediction rests on each token of the text (002, "localising").

A readout f of the final stream is a function of the embeddings x (T, D) of a text. Against a blank
text x0, token i gets

    gradient times input    (x_i - x0_i) . df/dx_i (x),
    integrated gradients    (x_i - x0_i) . int_0^1 df/dx_i (x0 + s (x - x0)) ds
                            (Sundararajan, Taly and Yan 2017),
    occlusion               f(x) - f(x with x0_i in the place of x_i).

Integrated gradients sum to f(x) - f(x0) (completeness). The first is their integrand at s = 1 and
knows f at one point alone. The third is an intervention on one token, not on several together. A
blank has no one right choice: here each position has the mean of all embeddings, and the first
tokens, such as the start of the text, may stay.
"""

import numpy as np
import torch
from torch import Tensor

from papers.circuits.anatomy import Anatomy, walk
from papers.circuits.patching import Readout, run_from


def blank(anatomy: Anatomy, x: Tensor, kept: int = 1) -> Tensor:
    """Embeddings (B, T, D) with the mean row of W_E (and the position's own vector, where there are
    any) in the place of all but the first ``kept`` tokens.
    """
    mean = anatomy.W_E.mean(0).expand(x.shape[1] - kept, -1)
    if anatomy.W_pos is not None:
        mean = mean + anatomy.W_pos[kept : x.shape[1]]
    return torch.cat((x[:, :kept], mean.expand(len(x), -1, -1)), dim=1)


def gradient_times_input(anatomy: Anatomy, x: Tensor, x0: Tensor, readout: Readout) -> Tensor:
    """Attributions (B, T) of embeddings (B, T, D) against a blank of the same shape."""
    return ((x - x0) * _gradient(anatomy, x, readout)).sum(-1)


def integrated_gradients(
    anatomy: Anatomy, x: Tensor, x0: Tensor, readout: Readout, points: int = 16
) -> Tensor:
    """The same by Gauss-Legendre quadrature, exact for polynomials of degree below 2 ``points``."""
    nodes, weights = np.polynomial.legendre.leggauss(points)  # on [-1, 1]
    steps = zip((nodes + 1) / 2, weights / 2, strict=True)
    mean = sum(w * _gradient(anatomy, x0 + s * (x - x0), readout) for s, w in steps)
    return ((x - x0) * mean).sum(-1)


@torch.no_grad()
def occlusion(anatomy: Anatomy, x: Tensor, x0: Tensor, readout: Readout) -> Tensor:
    """What the readout loses without each token alone: (B, T)."""
    before = readout(run_from(anatomy, 0, x))
    each = torch.arange(x.shape[1]).expand(len(x), -1)[..., None].unbind(1)  # T times (B, 1)
    after = [readout(run_from(anatomy, 0, take_out(x, x0, place))) for place in each]
    return before[:, None] - torch.stack(after, dim=1)


def take_out(x: Tensor, x0: Tensor, positions: Tensor) -> Tensor:
    """Embeddings (B, T, D) with the blank's at some positions (B, n) of each text."""
    places = positions[..., None].expand(-1, -1, x.shape[-1])
    return x.scatter(1, places, x0.gather(1, places))


@torch.no_grad()
def attention_from(anatomy: Anatomy, tokens: Tensor, position: int = -1) -> Tensor:
    """The weight that a position gives to each token, mean over all heads: (B, T)."""
    layers = walk(anatomy, tokens)
    return torch.stack([layer.pattern[:, :, position].mean(1) for layer in layers]).mean(0)


def _gradient(anatomy: Anatomy, x: Tensor, readout: Readout) -> Tensor:
    """df/dx at embeddings (B, T, D); texts of a batch do not see each other."""
    with torch.enable_grad():
        at = x.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(readout(run_from(anatomy, 0, at)).sum(), at)
    return gradient
