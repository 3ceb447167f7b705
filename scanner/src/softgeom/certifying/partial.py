"""Wins certified below the price of all logits: a part of each product, and Cauchy and Schwarz for
the remainder.

With k orthonormal directions Q, coordinates ``a_i = Q^T (w_i - m)`` about some row m and ``y = Q^T
x``, for every class i

    (w_i - m).x <= a_i.y + |w_i - m - Q a_i| |x - Q y| + small,

and the right side is a product of k + 2 columns: ``[a_i, r_i, b_i].[y, rho, 1]``. Where a class is
ahead of its rivals' bounds it wins; with k at a quarter of the features that costs a quarter of a
look. Only the open ones need one. Whether it pays hangs on how far ahead the winners are, so a
sample of them decides on k, or that nothing is gained. Any Q certifies: which one is a guess.

Neither Q nor a has to be exact: for any numbers Q, a, y and ``rest = w - m - Q a``

    (w - m).x = a.y + a.(Q^T x - y) + rest.(x - Q y) + (Q^T rest).y,

and the second and the last term are as small as Q is orthonormal and a and y are rounded; both are
measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softgeom.arrays import Array, Floats, Ints, Singles
from softgeom.certifying.checker import Checker
from softgeom.layer import SoftmaxLayer
from softgeom.rounding import INFLATE, gamma, norm_up, underflow

FEWEST = 4096  # classes below which a full look takes milliseconds
MOST_FEATURES = 1024  # beyond, finding the directions takes as long as looks
SAMPLE = 128  # points that decide
ASKED = 8 * SAMPLE  # classes below which preparing takes longer than looking
SHARES = (1 / 8, 1 / 4, 3 / 8, 1 / 2)  # of the features, tried as k
WORTH = 0.65  # of a look: what is dearer does not pay for preparation and row maxima
# of a bound, claimed: another machine's directions, turned a little, mostly show that much, too
CLAIMED = 0.875
ROWS, TILE = 4096, 512  # rows prepared at once, points bounded at once
TILE_BYTES = 2**21  # bounds held at once


class PartialLook:
    """Upper bounds on the logits of a layer that float32 holds exactly, from k of its principal,
    nearly orthonormal ``directions`` (d, k).
    """

    @np.errstate(over="ignore", invalid="ignore")  # what overflows certifies nothing
    def __init__(self, layer: SoftmaxLayer, directions: Floats) -> None:
        self.layer, self.Q = layer, directions
        k, C = directions.shape[1], layer.classes
        self.stretch = 1 + float(np.linalg.norm(directions))  # above the norm of Q
        self.mean = layer.W.mean(axis=0, dtype=np.float64)
        self.columns = np.empty((C, k + 2), np.float32)
        self.columns[:, -1] = layer.bias
        # the largest |w_i - m|, |a_i| or |rest_i|, |Q^T rest_i|
        self.size = self.reach = self.turned = 0.0
        for start in range(0, C, ROWS):
            rows = layer.W[start : start + ROWS].astype(np.float64) - self.mean
            a = (rows @ directions).astype(np.float32)
            rest = rows - a.astype(np.float64) @ directions.T
            size = norm_up(rows)
            slack = self._rounding() * size
            self.columns[start : start + ROWS, :k] = a
            self.columns[start : start + ROWS, k] = remainder = _up32(norm_up(rest) + slack)
            self.size = max(self.size, float(size.max()))
            widest = norm_up(a.astype(np.float64)).max()
            self.reach = max(self.reach, float(widest), float(remainder.max()))
            self.turned = max(self.turned, float((norm_up(rest @ directions) + slack).max()))
        self.bias = float(np.abs(layer.bias).max())

    def _rounding(self) -> float:
        """What float64 may be off by in three products with Q, in units of the vector's length."""
        return 8 * self.stretch**3 * gamma(sum(self.Q.shape) + 8)

    def margins(self, points: Singles, classes: Ints) -> Floats:
        """Lower bounds (n,) on the margins of ``classes`` (n,) at x (n, d)."""
        parts = (slice(n, n + TILE) for n in range(0, len(points), TILE))
        found = [self._margins(points[p].astype(np.float64), classes[p]) for p in parts]
        return np.concatenate([np.zeros(0), *found])

    @np.errstate(over="ignore", invalid="ignore")
    def _margins(self, x: Floats, classes: Ints) -> Floats:
        d, k = self.Q.shape
        exact = x @ self.Q
        y = exact.astype(np.float32).astype(np.float64)
        size, y_size = norm_up(x), norm_up(y)
        slack = self._rounding() * size
        left = np.empty((len(x), k + 2), np.float32)
        left[:, :k], left[:, k + 1] = y, 1.0
        left[:, k] = _up32(norm_up(x - y @ self.Q.T) + slack)
        best = np.full(len(x), -np.inf, np.float32)
        width = max(256, TILE_BYTES // (4 * len(x)))
        for start in range(0, self.layer.classes, width):
            Y = left @ self.columns[start : start + width].T
            here = np.flatnonzero((classes >= start) & (classes < start + Y.shape[1]))
            Y[here, classes[here] - start] = -np.inf
            np.maximum(best, Y.max(axis=1), out=best)
        row = self.layer.W[classes].astype(np.float64) - self.mean
        own = np.einsum("nd,nd->n", row, x) + self.layer.bias[classes]
        off = norm_up(exact - y) + slack  # |Q^T x - y|
        error = self.reach * off + self.turned * y_size
        error += gamma(d + 8) * (self.size * size + self.bias)
        products = self.reach * (y_size + left[:, k].astype(np.float64)) + self.bias
        error += gamma(k + 4, np.float32) * products * INFLATE + underflow(k + 4, np.float32)
        margin = own - best.astype(np.float64) - 2 * error * INFLATE
        # a sum that overflows on its way may end at -inf
        known = (products < np.finfo(np.float32).max / 2) & ~np.isnan(margin)
        return np.where(known, margin, -np.inf)


def certify_by(checker: Checker, look: PartialLook, points: Singles, classes: Ints) -> Floats:
    """Certified lower bounds (n,) on margins at points (n, d), -inf outside the set."""
    return np.where(checker.contains(points), look.margins(points, classes), -np.inf)


@np.errstate(over="ignore", invalid="ignore")  # of a guess
def partial_look(
    checker: Checker, points: Sequence[Array], classes: Ints, claimed: Floats | None = None
) -> PartialLook | None:
    """The cheapest partial look at such points (d,), by a sample; None where a full one is.

    What counts is how many classes (n,) it shows to be ahead by what is ``claimed`` (n,), or at
    all.
    """
    layer = checker.layer
    C, d = layer.W.shape
    if not FEWEST <= C or d > MOST_FEATURES or len(points) < ASKED:
        return None
    if not all(checker.is_narrow(point) for point in points):
        return None
    sample = np.linspace(0, len(points) - 1, SAMPLE).astype(np.intp)
    x, t = np.stack([points[int(n)] for n in sample]), classes[sample]
    if (Q := _principal_directions(layer)) is None:
        return None
    Q32, mean = Q.astype(np.float32), layer.W.mean(axis=0, dtype=np.float64).astype(np.float32)
    y = x @ Q32
    least = np.zeros(len(t)) if claimed is None else claimed[sample]
    least = np.einsum("nd,nd->n", layer.W[t] - mean, x) + layer.bias[t] - least
    widths = sorted({max(1, int(share * d)) for share in SHARES})
    open_ = dict.fromkeys(widths, np.zeros(len(t), bool))
    for start in range(0, C, ROWS):  # a guess decides, no proof
        rows = layer.W[start : start + ROWS] - mean
        a = rows @ Q32
        here = np.flatnonzero((t >= start) & (t < start + len(rows)))
        for k in widths:
            bound = y[:, :k] @ a[:, :k].T + np.outer(_length(y[:, k:]), _length(a[:, k:]))
            bound += layer.bias[start : start + ROWS]
            bound[here, t[here] - start] = -np.inf
            open_[k] = open_[k] | (bound.max(axis=1) >= least)
    costs = {k: (k + 2) / d + float(open_[k].mean()) for k in widths}
    k = min(costs, key=costs.__getitem__)
    return PartialLook(layer, Q[:, :k]) if costs[k] < WORTH else None


def _principal_directions(layer: SoftmaxLayer) -> Floats | None:
    """Orthonormal directions (d, d), those along which the rows differ most first; None where
    float32 does not hold their products.
    """
    moments = np.zeros((layer.dimension, layer.dimension))
    mean = layer.W.mean(axis=0, dtype=np.float64)
    for start in range(0, layer.classes, ROWS):
        rows = (layer.W[start : start + ROWS] - mean).astype(np.float32)
        moments += rows.T @ rows
    if not np.isfinite(moments).all():
        return None
    return np.ascontiguousarray(np.linalg.eigh(moments)[1][:, ::-1])


def _length(V: Singles) -> Singles:
    return np.sqrt(np.einsum("nd,nd->n", V, V))


def _up32(values: Floats) -> Singles:
    """float32 not below the values."""
    return np.nextafter(values.astype(np.float32), np.float32(np.inf))
