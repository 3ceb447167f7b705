"""The softmax bottleneck itself: low-rank tables of log-probabilities, and the cross-entropy that
they cost (001, Section 2.1).

N contexts with features X (N, d) pass through one layer W (C, d), b (C,). Their log-probabilities
fill a table

    A = X W^T + 1 b^T - s 1^T,   s_n = log sum_i exp(w_i.x_n + b_i)     (N, C)

of rank at most d + 1 without a bias and d + 2 with one, since the normalisation s and the bias add
one rank each. A target table P (N, C), whose rows are the true distributions, is matched only if
log P has such a form; otherwise the least cross-entropy

    H_d = min over X, W, b of  - 1/N sum_n P_n . A_n

exceeds the entropy of P, by the divergence D_d. Raising d can only lower it (Ganea et al. 2019,
Theorem 2). D_d vanishes once d is the rank of the log P whose rows (and with a bias, columns) are
centred; with a bias, D_0 is the mutual information of context and class.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, xlogy

from softgeom.arrays import Floats

Matrix = Floats

ROW_SUM_TOLERANCE = 1e-9  # rounding of a row of probabilities, with room to spare
# where a target probability is zero a layer's scale grows without end: the search would not stop
SMALLEST_PROBABILITY = 1e-12


@dataclass(frozen=True)
class LowRankFit:
    """A softmax layer and features fitted to a target table: X (N, d), W (C, d), b (C,), which is
    zeros for a layer without; ``cross_entropy`` and ``divergence``, means over contexts in nats of
    - P . log Q and P . log(P / Q); and the largest entry of the cross-entropy's gradient there.
    """

    X: Matrix
    W: Matrix
    b: Matrix
    cross_entropy: float
    divergence: float
    gradient: float


def log_probabilities(X: Matrix, W: Matrix, b: Matrix | None = None) -> Matrix:
    """Log-probabilities A (N, C) of features X (N, d) under W (C, d), b (C,)."""
    logits = X @ W.T
    return log_softmax(logits if b is None else logits + b, axis=1)


def sufficient_dimension(P: Matrix, bias: bool, rtol: float = 1e-9) -> int:
    """The least d for which some layer reproduces the table P (N, C) exactly: the rank of log P
    with centred rows and, with a bias, centred columns. Singular values below `rtol` times the
    largest entry count as zeros.
    """
    centred = _centred_logarithms(P, bias)
    values = np.linalg.svd(centred, compute_uv=False)
    return int(np.sum(values > rtol * max(1.0, float(np.abs(np.log(P)).max()))))


def fit_low_rank(
    P: Any, dimension: int, bias: bool, *, rng: np.random.Generator, starts: int = 8
) -> LowRankFit:
    """The best low-rank softmax fit to a table of positive distributions P (N, C) that is found
    from several starts, by a truncated Newton method.

    The first start is the truncated singular value decomposition of log P: the answer from
    `sufficient_dimension` on, and enough at d = 0, where the problem is convex. Between, it is not,
    and the other ``starts`` are random.
    """
    table = _check_table(P)
    if dimension < 0 or starts < 1:
        given = f"dimension={dimension} and starts={starts}"
        raise ValueError(f"need dimension >= 0 and starts >= 1, not {given}.")
    solved = dimension == 0 or dimension >= sufficient_dimension(table, bias)
    fits = []
    for start in range(1 if solved else starts):
        initial = _random_start(table, dimension, rng)
        if start == 0:
            initial = _spectral_start(table, dimension, bias)
        packed = np.concatenate([part.ravel() for part in initial])
        found = minimize(
            _objective,
            packed,
            args=(table, dimension, bias),
            jac=True,
            # its vector operations start no threads, which would cost more than these small tables
            method="TNC",
            options={"maxfun": 20000, "ftol": 1e-15, "gtol": 1e-9, "xtol": 0.0},
        )
        fits.append(_as_fit(found.x, table, dimension, bias))
    return min(fits, key=lambda fit: fit.cross_entropy)


def descend_by_bounds(P: Any, start: LowRankFit, bias: bool, steps: int) -> LowRankFit:
    """The fit after alternating descent from `start`, a second route without line search: the
    curvature of log sum exp never exceeds (I - 1 1^T / C) / 2 (Boehning 1992). So for fixed W the
    cross-entropy lies under a parabola in X that touches it at the current point, and likewise for
    fixed X; jumping to the bottom of each parabola in turn never ascends.
    """
    table = _check_table(P)
    X, W, b = start.X.copy(), start.W.copy(), start.b.copy()
    for _ in range(steps):
        centred = W - W.mean(axis=0)
        X += 2 * (table - np.exp(log_probabilities(X, W, b))) @ np.linalg.pinv(centred).T
        features = np.column_stack([X, np.ones(len(X))]) if bias else X
        change = 2 * np.linalg.pinv(features) @ (table - np.exp(log_probabilities(X, W, b)))
        W += change[: X.shape[1]].T
        if bias:
            b += change[-1]
    return _as_fit(np.concatenate([X.ravel(), W.ravel(), b]), table, X.shape[1], bias)


def _check_table(P: Any) -> Matrix:
    table = np.asarray(P, dtype=float)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"P must be a table of contexts x classes, not of shape {table.shape}.")
    if not np.all(table >= SMALLEST_PROBABILITY):
        why = "a zero is matched only by weights that grow without end"
        raise ValueError(f"P must hold positive probabilities: {why}.")
    if np.abs(table.sum(axis=1) - 1).max() > ROW_SUM_TOLERANCE:
        raise ValueError("each row of P must sum to one.")
    return table


def _objective(packed: Matrix, P: Matrix, dimension: int, bias: bool) -> tuple[float, Matrix]:
    """Cross-entropy and its gradient in the packed X, W, b."""
    X, W, b = _unpack(packed, P.shape, dimension)
    A = log_probabilities(X, W, b)
    residual = (np.exp(A) - P) / len(P)  # (N, C): the gradient in the logits
    gradient_b = residual.sum(axis=0) * bias
    gradient = np.concatenate([(residual @ W).ravel(), (residual.T @ X).ravel(), gradient_b])
    return -float(np.sum(P * A)) / len(P), gradient


def _unpack(
    packed: Matrix, shape: tuple[int, ...], dimension: int
) -> tuple[Matrix, Matrix, Matrix]:
    N, C = shape
    X, W, b = np.split(packed, [N * dimension, (N + C) * dimension])
    return X.reshape(N, dimension), W.reshape(C, dimension), b


def _as_fit(packed: Matrix, P: Matrix, dimension: int, bias: bool) -> LowRankFit:
    value, gradient = _objective(packed, P, dimension, bias)
    entropy = -float(xlogy(P, P).sum()) / len(P)
    largest, fitted = float(np.abs(gradient).max(initial=0)), _unpack(packed, P.shape, dimension)
    return LowRankFit(*fitted, value, value - entropy, largest)


def _centred_logarithms(P: Matrix, bias: bool) -> Matrix:
    L = np.log(P)
    L = L - L.mean(axis=1, keepdims=True)
    return L - L.mean(axis=0) if bias else L


def _spectral_start(P: Matrix, dimension: int, bias: bool) -> tuple[Matrix, Matrix, Matrix]:
    """The d leading singular triplets of the centred log P: exact when d is sufficient."""
    L = _centred_logarithms(P, bias)
    U, values, Vt = np.linalg.svd(L, full_matrices=False)
    kept = min(dimension, len(values))
    X, W = np.zeros((len(P), dimension)), np.zeros((P.shape[1], dimension))
    root = np.sqrt(values[:kept])
    X[:, :kept], W[:, :kept] = U[:, :kept] * root, Vt[:kept].T * root
    column_means = _centred_logarithms(P, False).mean(axis=0)
    return X, W, column_means if bias else np.zeros(P.shape[1])


def _random_start(
    P: Matrix, dimension: int, rng: np.random.Generator
) -> tuple[Matrix, Matrix, Matrix]:
    N, C = P.shape
    return rng.normal(size=(N, dimension)), rng.normal(size=(C, dimension)), np.zeros(C)
