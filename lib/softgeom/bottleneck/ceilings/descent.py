"""Points at which the softmax comes close to given targets: many convex programs at once.

For a target distribution p over the C classes the loss of a point z of the region is

    F(z) = KL(p || softmax(W z + b)) = LSE(W z + b) - p.(W z + b) - H(p),

convex in z, with gradient ``W^T (q - p)``, ``q = softmax(W z + b)``. A point is good enough when
its duality gap ``s_X(v) - v.z``, ``v = W^T (p - q)``, is small: F(z) less that gap is a lower bound
of F over the region (bound.py makes it rigorous; s_X is the region's support function).

The method is L-BFGS (Nocedal and Wright 2006, Algorithm 7.4), projected: coordinates at a bound
that the gradient pushes outwards stay there, and on a sphere the step is tangential. All targets of
a block share their two matrix products with W. What is found proves nothing by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from softgeom.arrays import Floats, Ints, Singles
from softgeom.layer import FeatureSet, SoftmaxLayer, Unbounded

MEMORY = 10  # pairs of steps and changes of the gradient that stand for the Hessian
SUFFICIENT_DECREASE = 1e-4  # Armijo's constant
BACKTRACKS = 12  # quarterings of a step before a target is left where it is
TILE_BYTES = 2**23  # logits held at once: they and their exponentials stay in the cache
# what the float32 loss may be off by, relative to the logits: less decrease is not seen
LOSS_ROUNDING = 1e-6
INNER = 1 - 1e-6  # of the radius: room for rounding, so that projected points lie inside
ON_SPHERE = 1 - 2e-6  # a point beyond this share of the radius lies on the sphere


@dataclass(frozen=True, eq=False)
class Region:
    """Where z may lie: a box, whose bounds may be infinite, or the ball of a radius."""

    low: Singles
    high: Singles
    radius: float = np.inf

    def project(self, Z: Singles) -> Singles:
        """The nearest points of the region to Z (n, d)."""
        if np.isinf(self.radius):
            return np.minimum(np.maximum(Z, self.low), self.high)
        size = np.linalg.norm(Z, axis=1, keepdims=True)
        return Z * np.minimum(1, INNER * self.radius / np.maximum(size, 1e-30)).astype(np.float32)

    def free(self, Z: Singles, G: Singles, D: Singles) -> Singles:
        """Directions D (n, d) less what leads out of the region where G (n, d) pushes outwards."""
        if np.isinf(self.radius):
            held = ((self.low >= Z) & (G > 0)) | ((self.high <= Z) & (G < 0))
            return np.where(held, np.float32(0), D)
        inwards = np.einsum("nd,nd->n", Z, G) >= 0
        on_sphere = np.linalg.norm(Z, axis=1) >= ON_SPHERE * self.radius
        along = np.einsum("nd,nd->n", Z, D) / np.maximum(np.einsum("nd,nd->n", Z, Z), 1e-30)
        held = on_sphere & ~inwards
        return D - np.where(held, along, 0).astype(np.float32)[:, None] * Z

    def gap(self, Z: Singles, G: Singles) -> Floats:
        """``s_X(v) - v.z`` for ``v = -G`` (n, d) at Z (n, d), without rounding bounds."""
        V, Z = -G.astype(np.float64), Z.astype(np.float64)
        if np.isinf(self.radius):
            with np.errstate(invalid="ignore"):
                reach = np.where(V > 0, (self.high - Z) * V, (self.low - Z) * V)
            return np.where(V == 0, 0.0, reach).sum(axis=1)
        return self.radius * np.linalg.norm(V, axis=1) - np.einsum("nd,nd->n", V, Z)


@dataclass(frozen=True, eq=False)
class Program:
    """A layer over a feature set in the coordinates of evidence, in float32: ``W z + b``, z in X.

    ``trust`` stands for the region's reach where it has none: for unbounded features a gap is
    judged as if they were at most so large.
    """

    W: Singles  # (C, d), effective rows
    b: Singles  # (C,)
    region: Region
    judged: Region

    def losses(self, Z: Singles, means: Singles, shifts: Floats) -> tuple[Floats, Singles]:
        """``LSE(W z + b) - p.(W z + b)`` (n,) and its gradients (n, d).

        ``means`` (n, d) and ``shifts`` (n,) are the targets' ``W^T p`` and ``b.p``.
        """
        loss, gradient = np.empty(len(Z)), np.empty_like(Z)
        size = max(1, TILE_BYTES // (4 * len(self.W)))
        for start in range(0, len(Z), size):
            tile = slice(start, start + size)
            Y = Z[tile] @ self.W.T
            Y += self.b
            top = Y.max(axis=1)
            Y -= top[:, None]
            np.exp(Y, out=Y)
            total = Y.sum(axis=1)
            own = np.einsum("nd,nd->n", means[tile].astype(np.float64), Z[tile]) + shifts[tile]
            loss[tile] = top + np.log(total) - own
            gradient[tile] = (Y @ self.W) / total[:, None] - means[tile]
        return loss, gradient


def make_program(layer: SoftmaxLayer, features: FeatureSet, trust: float = 1e3) -> Program:
    """The layer in the coordinates in which its evidence names points (x, or u of a norm)."""
    features.check(layer.dimension)
    d = layer.dimension
    endless = np.full(d, np.inf, np.float32)
    W = features.effective_rows(layer.W, np.float32)
    b = features.effective_bias(layer.W, layer.bias.astype(np.float64)).astype(np.float32)
    if isinstance(features, Unbounded):
        reach = np.full(d, trust, np.float32)
        return Program(W, b, Region(-endless, endless), Region(-reach, reach))
    shape = features.region(d, has_bias=False)
    if shape.radius is not None:
        region = Region(-endless, endless, shape.radius)
    else:
        assert shape.low is not None
        assert shape.high is not None
        low, high = shape.low.astype(np.float32), shape.high.astype(np.float32)
        # rounded inwards, so that no point at a bound lies outside
        low = np.where(low < shape.low, np.nextafter(low, np.float32(np.inf)), low)
        high = np.where(high > shape.high, np.nextafter(high, np.float32(-np.inf)), high)
        region = Region(low, high)
    return Program(W, b, region, replace(region))


@dataclass(frozen=True, eq=False)
class Descent:
    """Where n targets ended: points, losses without ``H(p)``, duality gaps, looks taken."""

    Z: Singles  # (n, d)
    loss: Floats  # (n,)
    gap: Floats  # (n,)
    looks: Ints  # (n,)


def descend(
    program: Program,
    means: Singles,
    shifts: Floats,
    start: Singles,
    *,
    gap: float = 0.02,
    least: float | Floats = 0.0,
    steps: int = 200,
) -> Descent:
    """Lower the losses of n targets from ``start`` (n, d), which is projected. ``means`` (n, d) are
    ``W^T p``, ``shifts`` (n,) ``b.p`` of each target; one is done when its duality gap is at most
    ``gap`` nats, or its loss at most ``least``, a number or (n,).
    """
    run = _Run(program, means, shifts, program.region.project(start.astype(np.float32)))
    least = np.broadcast_to(least, len(means))
    for step in range(steps):
        run.close(gap, least)
        if not len(run.open):
            break
        run.step(step)
    judged = program.judged.gap(run.Z, run.G)
    return Descent(run.Z, run.loss, judged, run.looks)


class _Run:
    """The state of n descents; ``open`` (m,) are those that go on."""

    def __init__(self, program: Program, means: Singles, shifts: Floats, Z: Singles) -> None:
        self.program, self.means, self.shifts, self.Z = program, means, shifts, Z
        n, d = Z.shape
        self.loss, self.G = program.losses(Z, means, shifts)
        self.looks = np.ones(n, np.intp)
        self.open = np.arange(n)
        self.steps = np.zeros((MEMORY, n, d), np.float32)
        self.changes = np.zeros((MEMORY, n, d), np.float32)
        self.inverse = np.zeros((MEMORY, n))  # 1 / (step . change); 0 where it is not positive
        self.scale = np.full(n, np.nan)

    def close(self, gap: float, least: Floats) -> None:
        rows = self.open
        left = self.program.judged.gap(self.Z[rows], self.G[rows])
        self.open = rows[(left > gap) & (self.loss[rows] > least[rows])]

    def step(self, count: int) -> None:
        rows = self.open
        Z, G, loss = self.Z[rows], self.G[rows], self.loss[rows]
        free = self.program.region.free(Z, G, G)
        D = self.program.region.free(Z, G, -self._times_inverse_hessian(rows, free, count))
        uphill = np.einsum("nd,nd->n", D, G) >= 0
        D[uphill] = -free[uphill] / _length(free[uphill])[:, None].astype(np.float32)
        new_Z, new_loss, new_G = Z.copy(), loss.copy(), G.copy()
        left, length = np.arange(len(rows)), np.ones(len(rows), np.float32)
        for _ in range(BACKTRACKS):
            there = self.program.region.project(Z[left] + length[left, None] * D[left])
            of = self.means[rows[left]], self.shifts[rows[left]]
            value, slope = self.program.losses(there, *of)
            self.looks[rows[left]] += 1
            fall = np.einsum("nd,nd->n", G[left], there - Z[left])
            slack = LOSS_ROUNDING * np.abs(loss[left])
            enough = value <= loss[left] + SUFFICIENT_DECREASE * fall + slack
            moved = left[enough]
            new_Z[moved], new_loss[moved] = there[enough], value[enough]
            new_G[moved] = slope[enough]
            left = left[~enough]
            if not len(left):
                break
            length[left] *= 0.25
        self._remember(rows, new_Z - Z, new_G - G, count)
        self.Z[rows], self.loss[rows], self.G[rows] = new_Z, new_loss, new_G
        self.open = np.delete(rows, left)  # what no step lowers is as low as float32 can tell

    def _times_inverse_hessian(self, rows: Ints, G: Singles, count: int) -> Singles:
        """The two loops of L-BFGS for G (m, d)."""
        D, alphas = G.copy(), []
        kept = [n % MEMORY for n in range(count - 1, max(-1, count - 1 - MEMORY), -1)]
        for k in kept:
            alpha = self.inverse[k, rows] * np.einsum("nd,nd->n", self.steps[k, rows], D)
            alphas.append(alpha)
            D -= alpha[:, None].astype(np.float32) * self.changes[k, rows]
        first = np.where(np.isnan(self.scale[rows]), 1 / _length(G), self.scale[rows])
        D *= first[:, None].astype(np.float32)
        for k, alpha in zip(reversed(kept), reversed(alphas), strict=True):
            beta = self.inverse[k, rows] * np.einsum("nd,nd->n", self.changes[k, rows], D)
            D += (alpha - beta)[:, None].astype(np.float32) * self.steps[k, rows]
        return D

    def _remember(self, rows: Ints, s: Singles, y: Singles, count: int) -> None:
        k = count % MEMORY
        sy, yy = (np.einsum("nd,nd->n", a, y, dtype=np.float64) for a in (s, y))
        convex = sy > 1e-10 * np.sqrt(yy) * _length(s)
        self.steps[k, rows], self.changes[k, rows] = s, y
        self.inverse[k, rows] = np.divide(1, sy, out=np.zeros(len(rows)), where=convex)
        scale = np.divide(sy, yy, out=np.ones(len(rows)), where=convex)
        self.scale[rows] = np.where(convex, scale, self.scale[rows])


def _length(V: Singles) -> Floats:
    return np.maximum(np.linalg.norm(V.astype(np.float64), axis=1), 1e-30)
