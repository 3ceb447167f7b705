"""From logits to the probability of a text, and how close each prediction is to another one.

Chain rule (002, "Components"): log P(t_1..t_n) = log P(t_1) + sum_i log P(t_i+1 | t_1..t_i). These
models start from a given first token, so the sum is conditional on it. Logits are affine in the
final state x, l_t = x . w_t + b_t with w_t a row of W_U (V, D), so the states for which t wins form
a polyhedral cell, and the distance from x to its boundary is the least of the distances to the
bisecting hyperplanes, min_j (l_t - l_j) / |w_t - w_j|: the margin that the bottleneck chapter
certifies (there called radius), here at states that occur.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Decisions:
    """The winning token at each state and the nearest boundary of its cell."""

    winner: Tensor  # (...) token with the largest logit
    rival: Tensor  # (...) token across the nearest boundary: not always the runner-up
    runner_up: Tensor  # (...) token with the second largest logit
    margin: Tensor  # (...) Euclidean distance from the state to that boundary


def token_log_probabilities(logits: Tensor, tokens: Tensor) -> Tensor:
    """log P(t_i+1 | t_1..t_i) for i = 1..T-1: logits (B, T, V), tokens (B, T) -> (B, T - 1)."""
    return logits[:, :-1].log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0]


def decisions(states: Tensor, W_U: Tensor, b_U: Tensor | None = None) -> Decisions:
    """Winner, nearest rival and margin for states (..., D) under W_U (V, D) and b_U (V). Rows equal
    to the winner's never bound its cell; they are left out.
    """
    bias = W_U.new_zeros(len(W_U)) if b_U is None else b_U
    logits = states @ W_U.T + bias
    top = logits.topk(2, dim=-1).indices
    winner = top[..., 0]
    gaps = logits.gather(-1, winner[..., None]) - logits
    # |w_t - w_j|, (..., V)
    normals = torch.cdist(W_U[winner], W_U, compute_mode="donot_use_mm_for_euclid_dist")
    distances = (gaps / normals).where(normals > 0, torch.inf)
    margin, rival = distances.min(-1)
    return Decisions(winner, rival, top[..., 1], margin)


def p_of_draws(counts: Tensor, probabilities: Tensor, least: float = 5.0) -> float:
    """P-value of a chi-square test that tokens drawn `counts` (V) times come from `probabilities`
    (V). Tokens expected fewer than `least` times share one cell, which joins the rarest of the
    others when even that is expected less often.
    """
    from scipy.stats import chisquare

    expected = probabilities.double() / probabilities.double().sum() * counts.sum()
    common = expected >= least
    seen, meant = (
        torch.cat([v[common].double(), v[~common].double().sum()[None]]) for v in (counts, expected)
    )
    if meant[-1] < least and len(meant) > 1:
        rarest = int(meant[:-1].argmin())
        seen[rarest], meant[rarest] = seen[rarest] + seen[-1], meant[rarest] + meant[-1]
        seen, meant = seen[:-1], meant[:-1]
    return float(chisquare(seen.numpy(), meant.numpy()).pvalue) if len(meant) > 1 else 1.0
