"""Texts of a CTC decoder, summed over their alignments, and pictures that try to break a theorem.

CTC (Graves et al. 2006) gives each of T frames a distribution over C classes. An *alignment* is one
class a frame; its text is what stays when repeats are merged and then blanks (class 0) dropped; the
probability of a text is the sum over its alignments.
"""

import heapq
from collections.abc import Sequence

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


def best_text(
    Y: Floats, without: Sequence[int] = (), most: int = 2000
) -> tuple[float, tuple[int, ...]]:
    """The most probable text that has none of some classes, and the logarithm of its probability,
    for log-probabilities Y (T, C): exact, over all alignments and texts.

    Texts grow letter by letter, those first that may still become the best one: what follows is at
    most what it would be if each next letter were the best class in every run of frames at once.
    RuntimeError if ``most`` beginnings do not decide.
    """
    run, gap, starts, ends = _pieces(np.exp(Y))
    run[:, :, [BLANK, *without]] = 0.0
    more = [ends]
    for _ in Y:
        more.append(gap @ (run.max(axis=2) @ more[-1]))
    follow, best = np.array(more[1:]), float(np.exp(Y[:, BLANK].sum()))
    # minus a bound, whether more letters follow, the letters, and the probability (T,) that the
    # frames up to each one read so, with the last letter there
    heap: list[tuple[float, bool, tuple[int, ...], Floats]]
    heap = [(-np.inf, True, (), ends), (-best, False, (), ends)]
    for _ in range(most):
        bound, grows, text, at = heapq.heappop(heap)
        if not grows:
            return float(np.log(-bound)), text
        longer = np.einsum("k,klv->vl", at @ gap if text else starts, run)
        if text:  # a blank parts a letter from itself
            longer[text[-1]] = at @ np.triu(gap, 2) @ run[:, :, text[-1]]
        whole, bounds = longer @ ends, (longer @ follow.T).max(axis=1)
        v = int(whole.argmax())
        heapq.heappush(heap, (-float(whole[v]), False, (*text, v), longer[v]))
        best = max(best, float(whole[v]))
        for v in np.flatnonzero(bounds > best).tolist():
            heapq.heappush(heap, (-float(bounds[v]), True, (*text, v), longer[v]))
    raise RuntimeError(f"{most:,} beginnings of texts do not decide which text is best.")


def _pieces(P: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Of frames with probabilities P (T, C), those of one class at frames k to l (T, T, C), of
    blanks between l and k (T, T), before k and after l (T,).
    """
    T, blank = len(P), P[:, BLANK]
    run, gap = np.zeros((T, *P.shape)), np.zeros((T, T))
    for k in range(T):
        run[k, k:] = np.cumprod(P[k:], axis=0)
        gap[k, k + 1 :] = np.cumprod([1.0, *blank[k + 1 : -1]])[: T - 1 - k]
    return run, gap, np.cumprod([1.0, *blank[:-1]]), np.cumprod([1.0, *blank[:0:-1]])[::-1]
