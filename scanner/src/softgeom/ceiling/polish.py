"""Points brought to the best of a class in float64, so that what is reached and what is proven meet
in more digits than a search in float32 finds.

Over all of R^d a floor needs a distribution with exactly the mean row ``w_t`` (bound.py, second
route). Newton's steps in float64, ``M step = w_t - sum q_i w_i`` with M the covariance of the rows
under q, square the distance in each step. Classes whose softmaxes are alike share a factorisation:
a step with another point's M still gains a digit or two.

In a box the same steps are taken in the coordinates that no bound holds (Bertsekas 1982): at the
best point ``w_t - sum q_i w_i`` vanishes there and points outwards elsewhere.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from softgeom.arrays import Floats, Ints, Singles
from softgeom.layer import SoftmaxLayer

STEPS = 12  # at most, of each class
NEAR = 1e-13  # |w_t - sum q_i w_i| relative to the rows: rounding
SLOW = 0.3  # a step with a borrowed matrix that leaves more than this share is taken again
LEAST_LOSS = 0.05  # classes below have a ceiling that needs no proof
HALVINGS = 10
BOX_STEPS = 60  # at most, in a box: bounds take and leave coordinates on the way
LIGHT = 1e-14  # weights up to this share of the largest leave a covariance as it is
FLAT = 1e-14  # of a loss: rounding
DAMPING = 1e-12  # of a box's steps, relative: few rows that matter leave directions without a slope


def polish(layer: SoftmaxLayer, classes: Ints, points: Singles, at: Ints) -> tuple[Floats, Ints]:
    """Points in float64, one for each class that has none whose softmax has its row as the mean."""
    W, b = layer.W.astype(np.float64, copy=False), layer.bias.astype(np.float64)
    size = float(np.abs(W).max())
    new, where = [points.astype(np.float64)], at.copy()
    count = len(points)
    factor = None
    for n, t in enumerate(classes.tolist()):
        x = points[at[n]].astype(np.float64)
        loss, r, q = _state(W, b, t, x)
        if loss < LEAST_LOSS:
            continue
        for _ in range(STEPS):
            if np.abs(r).max() <= NEAR * size:
                break
            moved = None
            if factor is not None:
                moved = _moved(W, b, t, x, scipy.linalg.cho_solve(factor, r))
            if moved is None or np.abs(moved[2]).max() > SLOW * np.abs(r).max():
                factor = _factor(W, q)
                if factor is None:
                    break
                moved = _moved(W, b, t, x, scipy.linalg.cho_solve(factor, r), loss)
                if moved is None:
                    break
            x, loss, r, q = moved
        new.append(x[None])
        where[n] = count
        count += 1
    stacked = np.concatenate(new)
    used, again = np.unique(where, return_inverse=True)
    return stacked[used], again.astype(np.intp)


def best_in_box(layer: SoftmaxLayer, t: int, x: Floats, low: Floats, high: Floats) -> Floats:
    """The point of a box, low and high (d,), at which class t is most probable; from x (d,) on."""
    W, b = layer.W.astype(np.float64, copy=False), layer.bias.astype(np.float64)
    size = float(np.abs(W).max())
    x = np.clip(x, low, high)
    loss, r, q = _state(W, b, t, x)
    for _ in range(BOX_STEPS):
        free = ~((x <= low) & (r < 0) | (x >= high) & (r > 0))
        if not free.any() or np.abs(r[free]).max() <= NEAR * size:
            break
        heavy = q > LIGHT * q.max()
        A = (W[np.ix_(heavy, free)] - q @ W[:, free]) * np.sqrt(q[heavy])[:, None]
        M = A.T @ A
        M[np.diag_indices_from(M)] += DAMPING * max(np.trace(M) / len(M), np.finfo(float).tiny)
        step = np.zeros_like(x)
        step[free] = np.linalg.solve(M, r[free])
        length = 1.0
        for _ in range(HALVINGS):
            there = np.clip(x + length * step, low, high)
            state = _state(W, b, t, there)
            if abs(state[0] - loss) <= FLAT * abs(loss):
                # flat to rounding: go on only while the slope still falls
                if np.abs(state[1][free]).max() >= np.abs(r[free]).max():
                    return x
                break
            if state[0] < loss:
                break
            length /= 4
        else:
            break
        x, (loss, r, q) = there, state
    return x


def _state(W: Floats, b: Floats, t: int, x: Floats) -> tuple[float, Floats, Floats]:
    y = W @ x + b
    top = y.max()
    u = np.exp(y - top)
    total = u.sum()
    q = u / total
    return float(top + np.log(total) - y[t]), W[t] - q @ W, q


def _moved(
    W: Floats, b: Floats, t: int, x: Floats, step: Floats, loss: float | None = None
) -> tuple[Floats, float, Floats, Floats] | None:
    """The point after a step, halved until the loss does not rise; None where it always does."""
    length = 1.0
    for _ in range(1 if loss is None else HALVINGS):
        there = x + length * step
        if not np.isfinite(there).all():
            return None
        state = _state(W, b, t, there)
        if loss is None or state[0] <= loss + 1e-12 * abs(loss):
            return there, *state
        length /= 4
    return None


def _factor(W: Floats, q: Floats) -> tuple[Floats, bool] | None:
    """Cholesky's factor of the covariance of the rows under q; None where it is singular."""
    heavy = q > LIGHT * q.max()
    A = (W[heavy] - q @ W) * np.sqrt(q[heavy])[:, None]
    try:
        return scipy.linalg.cho_factor(A.T @ A)
    except np.linalg.LinAlgError:
        return None
