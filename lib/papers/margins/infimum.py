"""What the barrier penalty alone wants of its coupling: limits and bounds for fixed embeddings,
with proofs (no source states them).

Let beta_i(M) = -log |det(I - S_i(M) M)|, S_i the covariance of the x_j, j < i, under the weights
softmax_j(x_j^T M x_i), and R the largest |x_j|.  The objective of 003, Section 7.1, depends on M
through the mean of beta_i alone.  |det(I - S_i M)| is continuous in M, so beta_i is lower
semicontinuous, +inf where it jumps.

Saturation.  If, for position i, one past token alone has the largest x_j^T M_0 x_i, by delta > 0
over the others (copies of a token count as one), then beta_i(c M_0) -> 0 as c -> infinity.
    Proof.  Let the others weigh w together: w <= (i - 1) exp(-c delta).  A covariance is at most
    the second moment about any point; about the leading token that is a sum over the others alone,
    so |S_i| <= w D^2, D the diameter of the past, and epsilon = c |M_0| D^2 (i - 1) exp(-c delta)
    bounds |S_i c M_0| and with it every eigenvalue.  Where epsilon < 1, d log(1 - epsilon) <= log
    |det| <= d log(1 + epsilon), hence
    |beta_i| <= -d log(1 - epsilon) -> 0.
If no token is zero, the condition fails at some position only on finitely many hyperplanes (x_j -
x_k)^T M x_i = 0, x_j != x_k.  So f = exp(-lambda sum beta) tends to one along almost every ray,
where the integral of f(c M_0) c^(n - 1) dc, n = d^2, is therefore infinite; by Tonelli, in polar
coordinates, f >= 0 has no finite integral over all M: the penalty is the negative logarithm of no
prior.  For factors M = W_K^T W_Q of any rank, W_K = W_Q included, the same: (x_j - x_k)^T W_K^T W_Q
x_i is a homogeneous polynomial in them that is not zero identically.  (A token that is zero has
uniform weights for every M, and no score that saturates.)

No minimum.  Let v be orthogonal to x_i and not constant on the past of i.  For M = -c v v^T every
logit of position i is zero, its weights are uniform for every c, and by Sylvester's identity beta_i
= -log(1 + c v^T S_i v) -> -infinity.  All other beta_k are -log(1 + c v^T S_k v) <= 0. So the mean
of beta has no lower bound as soon as two past tokens of some position differ by a vector that is no
multiple of x_i (never for d = 1); M has rank one, so no bound on the rank helps, and cross-entropy,
which does not know M, does not either, whether embeddings move or not.
    Positive coupling, M = c v v^T, has none either, beyond the boundary that descent does not
    cross: beta_i = -log |1 - c v^T S_i v| -> -infinity; at every other position either v^T x_k = 0,
    and the same holds with a variance that may be zero, or the weights of the numbers v^T x_j
    saturate on the largest or the least, c v^T S_k v -> 0 however many tokens share it, and beta_k
    -> 0.

Repair.  u^T S_i u <= E (u^T x)^2 <= R^2 for unit u, so |S_i| <= R^2, |det(I - S_i M)| is at most (1
+ |M| R^2)^d, and beta_i >= -d log(1 + |M| R^2) (d the rank of M where that is less).
    A bound on |M|: the infimum is finite and, by lower semicontinuity on a compact set, attained.
    gamma/2 |M|^2 added: the objective grows without bound, because a logarithm loses to a square,
    so it has a minimum; its exponential is at most a power of 1 + |M| R^2 times a Gaussian, and
    positive near M = 0: a prior.  With a square of the embeddings added too, the same for both
    together, since log(1 + |M| R^2) <= log(1 + |M|) + 2 log(1 + R). The positive part, the mean of
    max(beta_i, 0): has minima, at M = 0 among others, but saturation makes it no prior either.

Shapes: X (T, d), M (d, d), v (d,); positions from 0.
"""

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from papers.margins.jacobian import attention_jacobian_blocks
from softgeom.arrays import Floats


def barrier_scores(X: Floats, M: Floats) -> Floats:
    """beta_i of every position for a full coupling matrix, (T,); +inf on the boundary."""
    return np.asarray(-np.linalg.slogdet(attention_jacobian_blocks(X, M, np.eye(X.shape[1])))[1])


def saturation_bound(X: Floats, M: Floats, c: float) -> Floats:
    """Bound (T,) on |beta_i(c M)| from the gap of the two largest logits; inf without one."""
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


def unseen_direction(X: Floats, i: int) -> tuple[Floats, float]:
    """Unit v orthogonal to x_i along which the past of position i varies most, and that variance
    under uniform weights, v^T S_i v. ValueError if the past does not vary off the line of x_i: the
    penalty is bounded along every such ray.
    """
    x = X[i]
    length = np.linalg.norm(x)
    P = np.eye(X.shape[1]) - (np.outer(x, x) / length**2 if length > 0 else 0.0)
    past = (X[:i] - X[:i].mean(axis=0)) @ P if i else np.zeros((1, X.shape[1]))
    variances, directions = np.linalg.eigh(past.T @ past / len(past))
    if variances[-1] <= np.finfo(float).eps * max(1.0, float(np.square(X).max())):
        raise ValueError(
            f"the past of position {i} does not vary off the line of its token: take a later "
            "position."
        )
    return directions[:, -1], float(variances[-1])


def lower_bound(X: Floats, norm: float) -> float:
    """-d log(1 + |M| R^2): below every beta_i of couplings of spectral norm up to ``norm``."""
    return float(-X.shape[1] * np.log1p(norm * np.square(X).sum(axis=1).max()))


def repaired(X: Floats, M: Floats, gamma: float) -> float:
    """The mean of beta_i plus gamma/2 |M|^2 (Frobenius): bounded below, with a minimum."""
    return float(barrier_scores(X, M).mean() + 0.5 * gamma * np.square(M).sum())


def descend_repaired(X: Floats, M: Floats, gamma: float) -> OptimizeResult:
    """A local minimum of the repaired penalty from M, by BFGS; its ``x`` is M, (d * d,)."""
    return minimize(
        lambda flat: repaired(X, flat.reshape(M.shape), gamma), M.ravel(), method="BFGS"
    )
