"""One look at every rival: the margins of many candidate features against all classes at once; and
the steps between two looks, against a few rivals each.

For candidates ``Z`` (n, D), one per class t, the look gives ``margin = y_t - max_{i != t} y_i``
with ``y = W' z + b'`` and the strongest rivals of those that lose. It is a matrix product with row
maxima, the one step of a scan whose cost grows with C per class, and therefore its floor: ``W @
W.T`` looks once at everything. Logits exist a tile at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from softgeom.arrays import Array, Bools, Floats, Ints, Singles
from softgeom.certifying.checker import TILE_BYTES
from softgeom.problem import Problem

TEMPERATURE = 0.05  # of the smoothed margin, relative to the spread of the rivals' logits
STRONGEST = 64  # rivals, or comparisons, that join a programme after a look


@dataclass(frozen=True, eq=False)
class Look:
    """What a look found for n candidates."""

    margin: Floats  # (n,) y_t minus the best rival's logit; inf with one class
    # (losers, k) the k strongest rivals, for those whose margin is not above `enough`
    strongest: Ints
    losers: Ints  # (losers,) positions of those among the n


def look(
    problem: Problem, Z: Array, classes: Ints, *, strongest: int = 0, enough: float = 0.0
) -> Look:
    """Look at all rivals of ``classes`` (n,) at one candidate point each, ``Z`` (n, D), in float32;
    ``strongest`` rivals are listed for each candidate whose margin is not above ``enough``.
    """
    Z = np.ascontiguousarray(Z, dtype=np.float32)
    bias = problem.b.astype(np.float32)
    own = np.einsum("nd,nd->n", Z, problem.rows(classes)) + bias[classes]
    best = np.full(len(Z), -np.inf, np.float32)
    k = min(strongest, problem.classes - 1)
    pool_logit = np.full((len(Z), 0), -np.inf, np.float32)
    pool_index = np.zeros((len(Z), 0), np.intp)
    for tile, Y in _tiles(problem, Z, bias):
        inside = np.flatnonzero((classes >= tile.start) & (classes < tile.stop))
        Y[inside, classes[inside] - tile.start] = -np.inf
        np.maximum(best, Y.max(axis=1), out=best)
        if k:
            behind = own - best <= enough
            pool_logit, pool_index = _merge(pool_logit, pool_index, Y, tile.start, k, behind)
    margin = own.astype(np.float64) - best
    losers = np.flatnonzero(~(margin > enough))
    return Look(margin, pool_index[losers] if k else np.zeros((len(losers), 0), np.intp), losers)


def _tiles(problem: Problem, Z: Array, bias: Array) -> Iterator[tuple[slice, Array]]:
    """Yield (slice of classes, logits (n, width)), which may be overwritten, over all classes."""
    width = max(256, TILE_BYTES // (4 * max(1, len(Z))))
    for block in problem.row_blocks():
        rows = problem.rows(block)
        for start in range(0, len(rows), width):
            part = rows[start : start + width]
            tile = slice(block.start + start, block.start + start + len(part))
            Y = Z @ part.T
            Y += bias[tile]
            yield tile, Y


def _merge(
    logit: Array, index: Ints, Y: Array, start: int, k: int, behind: Bools
) -> tuple[Array, Ints]:
    """Keep the k largest logits so far of the candidates that are behind, in their pools."""
    width = min(k, Y.shape[1])
    fresh_logit = np.full((len(Y), width), -np.inf, Y.dtype)
    fresh_index = np.zeros((len(Y), width), np.intp)
    rows = np.flatnonzero(behind)
    if len(rows):
        theirs = Y if len(rows) == len(Y) else Y[rows]
        picked = _largest(theirs, width)
        fresh_index[rows] = picked + start
        fresh_logit[rows] = np.take_along_axis(theirs, picked, axis=1)
    logit = np.concatenate([logit, fresh_logit], axis=1)
    index = np.concatenate([index, fresh_index], axis=1)
    if logit.shape[1] > k:
        keep = np.argpartition(logit, logit.shape[1] - k, axis=1)[:, -k:]
        logit = np.take_along_axis(logit, keep, axis=1)
        index = np.take_along_axis(index, keep, axis=1)
    return logit, index


def _largest(Y: Array, k: int) -> Ints:
    """Where the k largest entries of each row of Y (n, w) are (n, k), in any order.

    Groups of g columns are compared by their maxima first: the k largest entries lie in the k
    groups with the largest maxima, so that w / g + k g entries are left, fewest where g^2 = w / k.
    """
    n, width = Y.shape
    size = math.isqrt(width // k)
    if size == 1:
        return np.argpartition(Y, width - k, axis=1)[:, -k:]
    groups = width // size
    whole = groups * size
    top = Y[:, :whole].reshape(n, size, groups).max(axis=1)
    best = np.argpartition(top, groups - k, axis=1)[:, -k:]
    columns = (best[:, None] + groups * np.arange(size)[:, None]).reshape(n, -1)
    rest = np.broadcast_to(np.arange(whole, width), (n, width - whole))
    columns = np.concatenate([columns, rest], axis=1)
    among = _largest(np.take_along_axis(Y, columns, axis=1), k)
    return np.take_along_axis(columns, among, axis=1)


def polyak_ascent(
    A: Singles, c: Singles, Z: Singles, project: Callable[[Singles], Singles], steps: int
) -> tuple[Singles, Singles]:
    """Polyak steps of g classes at once on the smoothed margin, from Z (g, D): the best point of
    each, projected to the region, and the lead of its best rival there, negative where the class
    wins. A (g, k, D) and c (g, k) are the rows and biases of each class's rivals minus its own.

    p = softmax(rival logits / temperature),   g = w'_t - sum_i p_i w'_i,
    z <- project(z + (target - m) g / ||g||^2).
    """
    best, best_lead = Z.copy(), np.full_like(Z[:, 0], np.inf)
    for _ in range(steps):
        lead = np.matmul(A, Z[..., None])[..., 0] + c  # (g, k): rival minus own logit
        worst = np.amax(lead, 1)
        better = worst < best_lead
        best_lead[better], best[better] = worst[better], Z[better]
        target = (worst - lead.sum(1) / lead.shape[1]).clip(1e-12) * TEMPERATURE
        p = np.exp((lead - worst[:, None]) / target[:, None])
        p /= p.sum(1)[:, None]
        g = np.matmul(p[:, None], A)[:, 0]  # (g, D): gradient of the smoothed lead
        step = (worst.clip(0) + target) / np.einsum("gd,gd->g", g, g).clip(1e-30)
        Z = project(Z - step[:, None] * g)
    return best, best_lead
