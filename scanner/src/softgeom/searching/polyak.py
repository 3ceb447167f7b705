"""Polyak steps on the smoothed margin of many classes, each against a few rivals.

p = softmax(rival logits / temperature),   g = w'_t - sum_i p_i w'_i,
z <- project(z + (target - m) g / ||g||^2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TEMPERATURE = 0.05  # of the smoothed margin, relative to the spread of the rivals' logits


def polyak_ascent(
    xp: Any, A: Any, c: Any, Z: Any, project: Callable[[Any], Any], steps: int
) -> tuple[Any, Any]:
    """Polyak steps of g classes at once, in the arrays of ``xp`` (NumPy or PyTorch), from Z (g, D):
    the best point of each, projected to the region, and the lead of its best rival there, negative
    where the class wins. A (g, k, D) and c (g, k), float32, are the rows and biases of each class's
    rivals minus its own.
    """
    best, best_lead = Z + 0, xp.full_like(Z[:, 0], float("inf"))
    for _ in range(steps):
        lead = xp.matmul(A, Z[..., None])[..., 0] + c  # (g, k): rival minus own logit
        worst = xp.amax(lead, 1)
        better = worst < best_lead
        best_lead[better], best[better] = worst[better], Z[better]
        target = (worst - lead.sum(1) / lead.shape[1]).clip(1e-12) * TEMPERATURE
        p = xp.exp((lead - worst[:, None]) / target[:, None])
        p /= p.sum(1)[:, None]
        g = xp.matmul(p[:, None], A)[:, 0]  # (g, D): gradient of the smoothed lead
        step = (worst.clip(0) + target) / xp.einsum("gd,gd->g", g, g).clip(1e-30)
        Z = project(Z - step[:, None] * g)
    return best, best_lead
