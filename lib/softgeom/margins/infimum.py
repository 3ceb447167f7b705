"""What the barrier penalty alone wants of its coupling: limits and bounds for fixed embeddings, with proofs (no source states them).

For embeddings x_1..x_T let beta_i(M) = -log |det(I - S_i(M) M)|, S_i the covariance of the x_j, j < i, under the weights
softmax_j(x_j^T M x_i), and let R be the largest |x_j|.  The margin-only objective of 003 (Section 7.1) is lambda times the mean of beta_i, and
nothing else in the objective depends on M.

Saturation.  If, for position i, one past token alone has the largest x_j^T M_0 x_i, by delta > 0 over the others (copies of a token count as
one), then beta_i(c M_0) -> 0 as c -> infinity.
    Proof.  The others weigh at most (i - 1) exp(-c delta) together, so the norm of S_i is at most that times D^2, D the diameter of the past, and
    epsilon = c |M_0| D^2 (i - 1) exp(-c delta) bounds |S_i c M_0|.  Where epsilon < 1, |beta_i| <= -d log(1 - epsilon) -> 0.
The condition fails for M_0 in finitely many hyperplanes (x_j - x_k)^T M x_i = 0 only (x_i != 0).  So along almost every ray exp(-lambda sum beta)
tends to one, and its integral over all M, in polar coordinates, diverges (Fatou): the penalty is the negative logarithm of no prior.

No minimum.  Let v be orthogonal to x_i and not constant on the past of i.  For M = -c v v^T every logit of position i is zero, its weights are
uniform for every c, and by Sylvester's identity beta_i = -log(1 + c v^T S_i v) -> -infinity.  All other beta_k are -log(1 + c v^T S_k v) <= 0.
So the mean of beta has no lower bound as soon as two past tokens of some position differ by a vector that is not parallel to x_i; M has rank one.
For positive coupling, M = c v v^T, beta_i = -log |1 - c v^T S_i v| has none either, once c has jumped over the boundary at 1 / (v^T S_i v).

Repair.  |S_i| <= R^2, hence beta_i >= -d log(1 + |M| R^2).  With a bound on |M| the infimum is finite and, beta being lower semicontinuous, attained;
with gamma/2 |M|^2 added the objective grows without bound and has a minimum, and its exponential is at most a polynomial times a Gaussian: a prior.

Shapes: X (T, d), M (d, d), v (d,); positions from 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from softgeom.margins.jacobian import attention_jacobian_blocks

Array = NDArray[np.float64]


def barrier_scores(X: Array, M: Array) -> Array:
    """beta_i of every position for a full coupling matrix, (T,); +inf on the boundary."""
    return np.asarray(-np.linalg.slogdet(attention_jacobian_blocks(X, M, np.eye(X.shape[1])))[1])


def saturation_bound(X: Array, M: Array, c: float) -> Array:
    """Bound on |beta_i(c M)| from the gap between the two largest logits: (T,), inf where it says nothing."""
    T, d = X.shape
    bound = np.full(T, np.inf)
    bound[: min(T, 2)] = 0.0  # a past of one token has no covariance
    for i in range(2, T):
        past = np.unique(X[:i], axis=0)
        logits = np.sort(past @ M @ X[i])
        diameter = np.linalg.norm(past[:, None] - past[None], axis=-1).max()
        gap = logits[-1] - logits[-2] if len(past) > 1 else np.inf
        epsilon = c * np.linalg.norm(M, 2) * diameter**2 * (i - 1) * np.exp(-c * gap)
        if epsilon < 1:
            bound[i] = -d * np.log1p(-epsilon)
    return bound


def unseen_direction(X: Array, i: int) -> tuple[Array, float]:
    """Unit v orthogonal to x_i along which the past of position i varies most, and that variance under uniform weights, v^T S_i v.

    Raises
    ------
    ValueError
        When the past does not vary off the line of x_i: the penalty is bounded along every such ray.
    """
    x = X[i]
    length = np.linalg.norm(x)
    P = np.eye(X.shape[1]) - (np.outer(x, x) / length**2 if length > 0 else 0.0)
    past = (X[:i] - X[:i].mean(axis=0)) @ P if i else np.zeros((1, X.shape[1]))
    variances, directions = np.linalg.eigh(past.T @ past / len(past))
    if variances[-1] <= np.finfo(float).eps * max(1.0, float(np.square(X).max())):
        raise ValueError(f"the past of position {i} does not vary off the line of its token: take a later position.")
    return directions[:, -1], float(variances[-1])


def lower_bound(X: Array, norm: float) -> float:
    """-d log(1 + |M| R^2): no beta_i is below it for couplings of spectral norm at most ``norm``."""
    return float(-X.shape[1] * np.log1p(norm * np.square(X).sum(axis=1).max()))


def repaired(X: Array, M: Array, gamma: float) -> float:
    """The mean of beta_i with gamma/2 |M|^2 added (Frobenius norm): bounded below, with a minimum."""
    return float(barrier_scores(X, M).mean() + 0.5 * gamma * np.square(M).sum())


def descend_repaired(X: Array, M: Array, gamma: float) -> OptimizeResult:
    """A local minimum of the repaired penalty from the start M, by BFGS with difference quotients; its ``x`` is M as a vector (d * d,)."""
    return minimize(lambda flat: repaired(X, flat.reshape(M.shape), gamma), M.ravel(), method="BFGS")
