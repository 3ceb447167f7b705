"""Support tokens: how the barrier's pressure is shared among the positions of a sequence (003,
Section 7.4, Figure 7.6).

A position has the barrier score beta_i = -log |det(I - S_i M)|; support tokens are the positions
with the largest (Definition 3.1: the smallest margin). The paper normalises the scores to shares
p_i that sum to one, and does not say how. Scores may be negative, so three readings are computed:

* ``positive``:  p_i proportional to max(beta_i, 0), undefined (NaN) where no score is positive;
* ``softmax``:   p_i proportional to exp(beta_i) = 1 / |det J_i|;
* ``absolute``:  p_i proportional to |beta_i|.

Concentration is summarised by the sum of the five largest shares and by exp(entropy), which counts
the positions that carry the pressure: T for equal shares, 1 for a single one. Scores and shares:
(..., T).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

READINGS = ("positive", "softmax", "absolute")

# nats; a position with one token in its past has S_i = 0 and a score of rounding errors
ROUNDING = 1e-9

Shares = NDArray[np.float64]


def barrier_shares(beta: ArrayLike, reading: str) -> Shares:
    """Normalise barrier scores (..., T), in nats, to shares that sum to one over the last axis; NaN
    for a sequence without any pressure under that reading. Scores below ``ROUNDING`` in absolute
    value count as zero (compute them in float64). ValueError if the reading is unknown or a score
    is not finite.
    """
    scores = np.asarray(beta, dtype=float)
    if not np.isfinite(scores).all():
        raise ValueError(
            "barrier scores must be finite: a position on the boundary itself has no share; "
            "exclude it."
        )
    scores = np.where(np.abs(scores) < ROUNDING, 0.0, scores)
    if reading == "softmax":
        weights = np.exp(scores - scores.max(-1, keepdims=True))
    elif reading == "positive":
        weights = np.maximum(scores, 0.0)
    elif reading == "absolute":
        weights = np.abs(scores)
    else:
        raise ValueError(f"reading is {reading!r}: choose one of {', '.join(READINGS)}.")
    total = weights.sum(-1, keepdims=True)
    return np.divide(weights, total, out=np.full_like(weights, np.nan), where=total > 0)


def cumulative_shares(shares: Shares) -> Shares:
    """Share of the k positions with the largest shares, for k = 1..T: (..., T), rising to one."""
    return np.cumsum(np.sort(shares, axis=-1)[..., ::-1], axis=-1)


def effective_support_size(shares: Shares) -> Shares:
    """exp(entropy), (...): how many positions carry the pressure."""
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    entropy = -np.where(np.isnan(shares), np.nan, shares * logs).sum(-1)
    return np.exp(entropy)
