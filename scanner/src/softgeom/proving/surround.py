"""Convex weights for many unargmaxable classes at once, by maximum entropy.

A class deep inside the hull of the others needs no vertex of a linear programme: among the weights
p >= 0 that sum to one, those of largest entropy relative to ``exp(b / T)`` with ``sum_i p_i w_i =
w_t`` are ``p_i ~ exp((w_i.z + b_i) / T)``, and z minimises the smooth convex function

    F(z) = T log sum_i exp(((w_i - w_t).z + b_i - b_t) / T),
    -grad F(z) = v = w_t - sum_i p_i w_i.

All classes share the rivals and hence each step is two matrix products, preconditioned by the
rivals' covariance. F has a minimum only where the class is inside the hull; elsewhere z runs away
and the weights prove nothing, which the checker (hull.py) finds out. What it proves is cheap: a few
looks at a sample of the rivals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softgeom.arrays import Bools, Floats, Ints, Singles
from softgeom.certifying.verdict import BlockingClasses
from softgeom.problem import Problem, Proofs, proofs_of
from softgeom.proving.lp import CORRECTIONS, TOLERANCE

SAMPLE = 6  # rivals per dimension: near a cloud's centre a point lies in the hull of 3 d or so
STEPS = 24  # of descent, and of conjugate gradients in a correction
# part of a class's room that its residual may take up: another pass would hardly tighten the bound
RESIDUAL = 0.1


def surround(problem: Problem, classes: Ints, seed: int = 0) -> Proofs:
    """Class -> blocking classes, and the bound <= 0 that they certify, of ``classes`` (n,) deep
    inside the hull of the others; ``seed`` draws the sample of rivals.
    """
    rng = np.random.default_rng(seed)
    d = problem.layer.dimension
    others = np.setdiff1d(np.arange(problem.classes), classes)
    size = min(len(others), SAMPLE * (d + 1))
    rivals = np.sort(rng.choice(others, size, replace=False))
    if len(rivals) < d + 1:
        return {}
    W = problem.rows(rivals)[:, :d]
    bias = problem.layer.bias.astype(np.float64) if problem.homogeneous else problem.b
    b = (bias[rivals] - bias[rivals].mean()).astype(np.float32)
    precision, own = inverse_covariance(W), problem.rows(classes)[:, :d]
    p = largest_entropy(W, own, b / (b.std() or np.float32(1.0)), precision)  # T is its spread

    def has_room(which: Ints, weights: Floats, v: Floats, part: float = RESIDUAL) -> Bools:
        if problem.homogeneous:
            return np.zeros(len(which), dtype=bool)
        room = weights @ problem.b[rivals] - weights.sum(axis=1) * problem.b[classes[which]]
        return problem.support(v) < part * room

    weights = _polish_together(W, own, p, precision, has_room)
    worth = np.flatnonzero((weights > 0).any(axis=1) & np.isfinite(weights).all(axis=1))
    if not problem.homogeneous:  # without room they prove nothing, at the price of fractions
        v = weights[worth].sum(axis=1)[:, None] * own[worth] - weights[worth] @ W.astype(np.float64)
        worth = worth[has_room(worth, weights[worth], v, 1.0)]
    kept = weights > 0
    blocking = [BlockingClasses(rivals[kept[n]], weights[n, kept[n]]) for n in worth]
    return proofs_of(problem, dict(zip(classes[worth].tolist(), blocking, strict=True)))


# on an edge of the hull steps run away: they prove nothing
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _polish_together(
    W: Singles,
    own: Singles,
    p: Singles,
    precision: Singles,
    has_room: Callable[[Ints, Floats, Floats], Bools],
) -> Floats:
    """Newton's step for all classes at once: weights (n, k) ``p (1 + A mu)``, ``A = w_i - w_t``,
    with mu by conjugate gradients.

    The residual ``v = sum_i p_i A_i`` is taken in float64, the step in float32: each pass gains
    several digits, until ``has_room`` of which classes, their weights and residuals says that those
    are enough. What has a weight left below zero or a residual is not proven by it; the checker
    finds out.
    """
    wide = W.astype(np.float64)
    p = np.where(p > TOLERANCE * p.max(axis=1, keepdims=True), p, np.float32(0.0))
    weights = p.astype(np.float64)
    left = np.arange(len(p))
    for _ in range(CORRECTIONS):
        v = weights[left].sum(axis=1)[:, None] * own[left].astype(np.float64) - weights[left] @ wide
        open_ = ~has_room(left, weights[left], v)
        left, v = left[open_], v[open_]
        if not len(left):
            break
        size = np.maximum(np.abs(v).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        change = _corrections(W, own[left], p[left], precision, (v / size).astype(np.float32))
        weights[left] = np.maximum(weights[left] + size * change, 0.0)
    return weights


def _corrections(W: Singles, own: Singles, p: Singles, precision: Singles, r: Singles) -> Singles:
    """Changes ``p A mu`` (n, k) that take residuals r (n, d) away, by conjugate gradients."""

    def lengths(X: Singles) -> Singles:
        """p (A x) of each class (n, k)."""
        U = X @ W.T
        U -= np.einsum("nd,nd->n", X, own)[:, None]
        U *= p
        return U

    x, y = np.zeros_like(r), r @ precision
    s, ry = y, np.einsum("nd,nd->n", r, y)
    for _ in range(STEPS):
        U = lengths(s)
        Hs = U @ W - U.sum(axis=1)[:, None] * own
        step = (ry / np.maximum(np.einsum("nd,nd->n", s, Hs), np.finfo(np.float32).tiny))[:, None]
        x, r = x + step * s, r - step * Hs
        y = r @ precision
        before, ry = ry, np.einsum("nd,nd->n", r, y)
        s = y + (ry / np.maximum(before, np.finfo(np.float32).tiny))[:, None] * s
    return lengths(x)


def inverse_covariance(W: Singles) -> Singles:
    """Inverse covariance of the rivals (d, d), with a ridge for dependent columns."""
    centred = W - W.mean(axis=0)
    covariance = (centred.T @ centred).astype(np.float64) / len(W)
    # equal rows have no covariance at all
    ridge = 1e-6 * np.trace(covariance) / len(covariance) or 1.0
    return np.linalg.inv(covariance + ridge * np.eye(len(covariance))).astype(np.float32)


def largest_entropy(W: Singles, own: Singles, b: Singles, precision: Singles) -> Singles:
    """Weights (n, k) after descent on F at T = 1 (z over T)."""

    def state(z: Singles) -> tuple[Singles, ...]:
        lead = z @ W.T + b
        top = lead.max(axis=1, keepdims=True)
        p = np.exp(lead - top)
        total = p.sum(axis=1, keepdims=True)
        value = (top + np.log(total))[:, 0] - np.einsum("nd,nd->n", z, own)
        p /= total
        return value, p, own - p @ W

    z = np.zeros_like(own)
    step = np.full(len(own), 0.5, np.float32)
    value, p, v = state(z)
    for _ in range(STEPS):
        trial = z + step[:, None] * (v @ precision)
        trial_value, trial_p, trial_v = state(trial)
        good = trial_value <= value + 1e-6 * np.abs(value)
        step = np.where(good, step * np.float32(1.3), step * np.float32(0.4))
        z[good], value[good] = trial[good], trial_value[good]
        p[good], v[good] = trial_p[good], trial_v[good]
    return p
