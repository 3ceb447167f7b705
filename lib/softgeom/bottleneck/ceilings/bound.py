"""Certified floors of the loss, and with them ceilings of probability: what a point proves.

For a target distribution p and any distribution q over the C classes, every x of the feature set X
has (weak duality of ``LSE(y) = max_q q.y + H(q)``)

    KL(p || softmax(W x + b)) >= H(q) - H(p) + b.(q - p) - s_X(v),    v = W^T (p - q),

with s_X the support function of X. A stored point z gives q: its unnormalised softmax u, floats
that need not be exact, for any numbers ``u >= 0`` not all zero make a q. For ``p = e_t`` the right
side L is a floor under ``-log p_t``: whatever the input, class t has probability at most
``exp(-L)``.

Two routes to the last term:

1. *support*: s_X(v) of the rounded v with its error;
2. *exact mean*: v made to vanish, which unbounded features need. With ``D_i = w_i - w_t`` and
   ``M = sum u_i D_i D_i^T`` the weights ``u_i (1 + D_i.mu)``, ``M mu = -sum u_i D_i``, have exactly
   the mean row w_t. They exist and are positive when ``eps = max |D_i| |r| / lambda_min(M) < 1``,
   and H and b.q change by little more than eps times their size.

That the same point also attains a loss (``Certificate.attained``) is an upper bound of the floor.

Rounding: sums and products as in ``softgeom.rounding``. ``exp`` and ``log`` are taken to be within
``LIBRARY`` of the truth, relatively: libraries promise four units in the last place (2^-51); a
test compares them with exact arithmetic. Entries of u below exp(-700) are set to zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.rounding import gamma, norm_up, underflow

LIBRARY = 2.0**-48  # relative error of exp and log: 16 units in the last place
LEAST_EXPONENT = -700.0  # below, u would come near the end of float64's normal range
TILE_BYTES = 2**24  # logits held at once
# eps of the second route that a spread borrowed from another point may leave: its cost in nats
SMALL_ENOUGH = 1e-6
REMEMBERED = 8  # points whose spread of rows others may borrow

Array64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds in nats, (n,) each: floor <= inf_x KL(p || softmax) <= attained."""

    floor: Array64
    attained: Array64

    @property
    def ceiling(self) -> Array64:
        """Upper bounds on ``exp(-floor)``: the most probable that a single class can become."""
        with np.errstate(over="ignore"):
            return np.minimum(1.0, np.exp(-self.floor) * (1 + LIBRARY))

    @property
    def reached(self) -> Array64:
        """Lower bounds on the probability of a single class at its point."""
        return np.maximum(0.0, np.exp(-self.attained) * (1 - LIBRARY))


@dataclass(frozen=True, eq=False)
class Target:
    """A distribution: weights (k,) > 0 on classes (k,), in units of their sum."""

    classes: NDArray[np.intp]
    weights: Array64

    @property
    def entropy(self) -> tuple[float, float]:
        """``H(p)`` and a bound on its error."""
        if len(self.weights) == 1:
            return 0.0, 0.0
        total = float(self.weights.sum())
        shares = self.weights / total
        H = float(-(shares @ np.log(shares)))
        k = len(shares)
        return H, (gamma(2 * k + 8) + LIBRARY) * (H + 2)


def one_class(t: int) -> Target:
    """All of the probability on class t."""
    return Target(np.array([t], dtype=np.intp), np.ones(1))


class Certifier:
    """Certifies floors of one layer over one feature set."""

    def __init__(self, layer: SoftmaxLayer, features: FeatureSet) -> None:
        features.check(layer.dimension)
        self.layer, self.features = layer, features
        self.W = layer.W.astype(np.float64, copy=False)
        self.b = layer.bias.astype(np.float64)
        self.columns = np.abs(self.W).max(axis=0)  # (d,)
        self.norm = float(norm_up(self.W).max())
        self.most_bias = float(np.abs(self.b).max())
        # unnormalised softmaxes and the least spread of the rows under each
        self._spreads: list[tuple[Array64, float]] = []

    def certify(
        self, Z: NDArray[np.floating], targets: Sequence[Target], at: NDArray[np.intp]
    ) -> Certificate:
        """What points prove about targets.

        Parameters
        ----------
        Z : (m, d) array
            Points in the coordinates of evidence (x, or u of a norm).
        targets : sequence of n targets
            Distributions over the classes.
        at : (n,) integers
            Which point belongs to each target: a point is evaluated once for all of its targets.
        """
        floor, attained = np.full(len(targets), -np.inf), np.full(len(targets), np.inf)
        order = np.argsort(at, kind="stable")
        used, first = np.unique(at[order], return_index=True)
        groups = np.split(order, first[1:])
        size = max(1, TILE_BYTES // (8 * self.layer.classes))
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for start in range(0, len(used), size):
                looks = self._look(Z[used[start : start + size]].astype(np.float64))
                for look, group in zip(looks, groups[start : start + size], strict=True):
                    for n in group.tolist():
                        floor[n] = self._floor(look, targets[n])
                        attained[n] = self._attained(look, targets[n])
        return Certificate(np.where(np.isnan(floor), -np.inf, floor), attained)

    def _look(self, Z: Array64) -> list[_Look]:
        x, moved = self.features.features_at(Z)
        inside = self.features.contains(Z)
        Y = x @ self.W.T + self.b
        top = Y.max(axis=1, keepdims=True)
        A = Y - top  # exact arguments of exp: their own rounding makes another q, not an error
        U = np.where(A < LEAST_EXPONENT, 0.0, np.exp(A))
        size = norm_up(x)
        error = gamma(self.layer.dimension + 6) * (self.norm * size + self.most_bias)
        error += self.norm * moved + underflow(self.layer.dimension + 6)
        means, entropies = U @ self.W, np.einsum("nc,nc->n", U, -A)
        return [
            _Look(*each)
            for each in zip(
                x, Y, U, top[:, 0], U.sum(axis=1), means, entropies, U @ self.b, error, inside,
                strict=True,
            )
        ]  # fmt: skip

    def _floor(self, look: _Look, target: Target) -> float:
        """``H(q) - H(p) + b.(q - p) - s_X(v)``, rounded down; see the module's text."""
        k, C = len(target.classes), self.layer.classes
        shares = target.weights / target.weights.sum()
        rows = self.W[target.classes]
        v = shares @ rows - look.mean / look.total
        error = (gamma(2 * C + 16) + gamma(2 * k + 8)) * self.columns + underflow(C)
        reach, size = self.features.support_bound(v, error)
        reach += gamma(len(v) + 8) * size
        if np.isinf(reach) and k == 1:
            return self._floor_of_exact_mean(look, int(target.classes[0]))
        H, H_error = target.entropy
        own = float(shares @ self.b[target.classes])
        value = (look.entropy + look.bias) / look.total + math.log(look.total) - H - own - reach
        terms = look.entropy / look.total + 2 * self.most_bias + abs(math.log(look.total)) + H
        slack = (gamma(2 * C + 2 * k + 16) + 4 * LIBRARY) * (terms + 1) + H_error
        return value - slack - gamma(8) * (terms + abs(reach))

    def _floor_of_exact_mean(self, look: _Look, t: int) -> float:
        """The floor over unbounded features, for weights near u with exactly the mean row w_t."""
        C = self.layer.classes
        # sum u_i (w_i - w_t) and its rounding: products with w_i are summed, then the difference
        r = look.mean - look.total * self.W[t]
        r_error = gamma(C + 8) * 2 * self.columns * look.total + underflow(C)
        r_norm = float(norm_up(np.abs(r) + r_error))
        least = self._least_spread(look, r_norm)
        if not least > 0:
            return -math.inf
        eps = 2 * self.norm * r_norm / least * (1 + 1e-9)
        if not eps < 0.5:
            return -math.inf
        # sum u' T and its change, T = -log u + b_i - b_t
        sum_T = look.entropy + look.bias - look.total * float(self.b[t])
        size_T = look.entropy + 2 * self.most_bias * look.total
        slack = (gamma(2 * C + 16) + 4 * LIBRARY) * (size_T + look.total)
        numerator = sum_T - slack - eps * size_T * (1 + 1e-9) - 1.5 * eps * look.total
        share = numerator / (look.total * (1 + eps if numerator > 0 else 1 - eps))
        value = share + math.log(look.total) + math.log1p(-eps)
        terms = abs(share) + abs(math.log(look.total)) + 1
        return value - (gamma(2 * C + 16) + 4 * LIBRARY) * terms

    def _least_spread(self, look: _Look, r_norm: float) -> float:
        """A lower bound on ``lambda_min(sum u_i (w_i - c)(w_i - c)^T)``, whatever c is.

        It is least about the mean. Where u is at least k times the u of an earlier point, so is the
        matrix: most classes need no eigenvalue of their own.
        """
        for u, least in reversed(self._spreads):
            there = u > 0
            share = float((look.u[there] / u[there]).min()) * (1 - gamma(2))
            if share * least * SMALL_ENOUGH >= 2 * self.norm * r_norm:
                return share * least
        least = self._spread(look)
        self._spreads = [*self._spreads[-REMEMBERED:], (look.u, least)]
        return least

    def _spread(self, look: _Look) -> float:
        d, C = self.layer.dimension, self.layer.classes
        centre = look.mean / look.total
        M = np.zeros((d, d))
        step = max(1, TILE_BYTES // (8 * d))
        for start in range(0, C, step):
            D = self.W[start : start + step] - centre
            M += D.T @ (look.u[start : start + step, None] * D)
        # each entry is a sum of C products of a few roundings, of at most u |D_i| |D_j|
        trace = float(np.trace(M)) * (1 + gamma(C + 8))
        off = gamma(C + 8) * (trace + 4 * look.total * self.norm**2)
        # about the true mean the matrix is smaller, by total times the squared error of the centre
        off += look.total * (gamma(C + 8) * 2 * float(norm_up(self.columns))) ** 2
        return _least_eigenvalue(M, trace) - off

    def _attained(self, look: _Look, target: Target) -> float:
        """KL(p || softmax) at the point, rounded up; infinite outside the set."""
        if not look.inside:
            return math.inf
        C, k = self.layer.classes, len(target.classes)
        shares = target.weights / target.weights.sum()
        own = float(shares @ look.y[target.classes])
        H, H_error = target.entropy
        value = float(look.top) + math.log(look.total) - own - H
        size = abs(float(look.top)) + abs(own) + abs(H) + abs(math.log(look.total)) + 1
        rounding = (gamma(C + 8) + gamma(2 * k + 8) + 4 * LIBRARY) * size + H_error
        # what was dropped below exp(LEAST_EXPONENT) is C exp(-700) at most
        return value + 2 * float(look.error) + rounding


@dataclass(frozen=True, eq=False)
class _Look:
    """One point: its features, logits, unnormalised softmax, and the sums that bounds need."""

    x: Array64
    y: Array64
    u: Array64
    top: float
    total: float
    mean: Array64  # sum u_i w_i
    entropy: float  # sum u_i (-log u_i)
    bias: float  # sum u_i b_i
    error: float  # of each logit
    inside: bool


def _least_eigenvalue(M: Array64, trace: float) -> float:
    """A lower bound on the least eigenvalue of a symmetric M; -inf where none above zero is found.

    When Cholesky's factorisation of ``M - a I`` runs to its end in floating point,
    ``lambda_min(M) >= a - gamma(d + 2) trace`` (Rump 2006, "Verification of positive
    definiteness"), and as much again for the rounding of the diagonal.
    """
    d = len(M)
    M = (M + M.T) / 2
    guess = float(np.linalg.eigvalsh(M)[0]) / 2
    if not guess > 0:
        return -math.inf
    try:
        np.linalg.cholesky(M - guess * np.eye(d))
    except np.linalg.LinAlgError:
        return -math.inf
    return guess - 4 * gamma(2 * d + 4) * trace
