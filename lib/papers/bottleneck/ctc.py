"""Texts of a CTC decoder, summed over their alignments, and pictures that try to break a theorem.

CTC (Graves et al. 2006) gives each of T frames a distribution over C classes. An *alignment* is one
class a frame; its text is what stays when repeats are merged and then blanks (class 0) dropped; the
probability of a text is the sum over its alignments.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from softgeom.layer import SoftmaxLayer

Floats = NDArray[np.float64]
BLANK = 0
NEVER = -1e30  # a logarithm of 0 whose gradient is 0, too
LEAST = 1e-300  # probabilities that have a logarithm


def read(Y: torch.Tensor, text: tuple[int, ...]) -> torch.Tensor:
    """Logarithms (n, T + 1) of the probability that the first s frames have the text, s = 0 to T,
    for log-probabilities Y (n, T, C).
    """
    states = [BLANK, *(k for letter in text for k in (letter, BLANK))]
    jumps = [s > 1 and k != BLANK and k != states[s - 2] for s, k in enumerate(states)]
    barred = torch.where(torch.tensor(jumps), 0.0, NEVER)
    at = torch.full((len(Y), len(states)), NEVER, dtype=Y.dtype)
    at[:, 0] = 0.0  # before the first frame, as after a blank
    found = [at[:, 0] if not text else at[:, -1]]
    for frame in range(Y.shape[1]):
        past = torch.nn.functional.pad(at, (2, 0), value=NEVER)
        ways = torch.stack([at, past[:, 1:-1], past[:, :-2] + barred])
        at = torch.logsumexp(ways, 0) + Y[:, frame, states]
        found.append(torch.logsumexp(at[:, -2:], 1))
    return torch.stack(found, 1)


def with_each(Y: torch.Tensor, before: tuple[int, ...], after: tuple[int, ...]) -> torch.Tensor:
    """Logarithms (n, C) of the probability of ``before k after`` for each class k, as in `read`;
    `NEVER` for the blank and the two neighbours of k.
    """
    P, start = Y.exp(), read(Y, before).exp()
    end = read(Y.flip(1), after[::-1]).flip(1).exp()
    inside, found = torch.zeros_like(P[:, 0]), torch.zeros_like(P[:, 0])
    for frame in range(Y.shape[1]):
        inside = P[:, frame] * (inside + start[:, frame, None])
        found = found + inside * end[:, frame + 1, None]
    other = torch.tensor([BLANK, *before[-1:], *after[:1]])
    return found.clamp(min=LEAST).log().index_fill(1, other, NEVER)


def climb(
    layer: SoftmaxLayer,
    text: tuple[tuple[int, ...], int, tuple[int, ...]],
    X: Floats,
    steps: int,
    bound: float,
) -> tuple[Floats, Floats]:
    """The largest log ratio (n,) on the way of the probability of a text, as (before, t, after), to
    the best text of another class at the place of t; and the features (n, T, d) there. Gradient
    ascent from features X (n, T, d), in the box of ``bound``.
    """
    W, b = torch.tensor(layer.W, dtype=torch.float64), torch.tensor(layer.bias)
    before, t, after = text
    there, step = torch.tensor(X), torch.full((len(X),), bound / 100)
    best, where = torch.full((len(X),), -torch.inf, dtype=torch.float64), there
    uphill = torch.zeros_like(there)
    for _ in range(steps + 1):
        there = there.detach().requires_grad_()
        Y = torch.log_softmax(there @ W.T + b, 2)
        each = with_each(Y, before, after)
        ratio = each[:, t] - torch.cat([each[:, :t], each[:, t + 1 :]], 1).amax(1)
        (G,) = torch.autograd.grad(ratio.sum(), there)
        with torch.no_grad():
            G /= G.norm(dim=(1, 2), keepdim=True).clamp(min=1e-12)
            better = ratio > best
            where, uphill = (
                torch.where(better[:, None, None], new, old)
                for new, old in ((there, where), (G, uphill))
            )
            best, step = torch.maximum(best, ratio), torch.where(better, 1.2 * step, 0.5 * step)
            there = (where + step[:, None, None] * uphill).clamp(-bound, bound)
    return best.numpy(), where.detach().numpy()
