"""Points at which the softmax comes close to given targets: many convex programs at once.

For a target distribution p over the C classes the loss of a point z of the region is

    F(z) = KL(p || softmax(W z + b)) = LSE(W z + b) - p.(W z + b) - H(p),

convex in z, with gradient ``W^T (q - p)``, ``q = softmax(W z + b)``. A point is good enough when
its duality gap ``s_X(v) - v.z``, ``v = W^T (p - q)``, is small: F(z) less that gap is a lower bound
of F over the region (bound.py makes it rigorous; s_X is the region's support function).

The method is L-BFGS (Nocedal and Wright 2006, Algorithm 7.4), projected: coordinates at a bound
that the gradient pushes outwards stay there, and on a sphere the step is tangential. All targets
share their two matrix products with W. In a box, where few rivals share the probability, L-BFGS
slows down near the end; what it leaves open takes Newton's steps, of which it needs few there. What
is found proves nothing by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softgeom.arrays import Array, Floats, Ints, Singles
from softgeom.layer import FeatureSet, SoftmaxLayer, Unbounded
from softgeom.problem import round_inwards

MEMORY = 10  # pairs of steps and changes of the gradient that stand for the Hessian
SUFFICIENT_DECREASE = 1e-4  # Armijo's constant
LEAST_STEP = 0.25**12  # what no longer step lowers is as low as float32 can tell
TILE_BYTES = 2**23  # logits held at once: they and their exponentials stay in the cache
# what the float32 loss may be off by, relative to the logits: less decrease is not seen
LOSS_ROUNDING = 1e-6
DAMPING = 1e-4  # of Newton's first step, in units of the mean eigenvalue of the Hessian
LEAST_DAMPING = 1e-10  # of later steps: less would be lost in rounding, and nothing damped
DAMPINGS = 10  # each ten times the last, before a target is left where it is
NEWTON_STEPS = 30
LEAST_SCALE = 1e-30  # of a Hessian that one row alone makes, which is zero
LEAST_TURN = 16  # looks that every target is given before Newton's steps
LEAST_EXPONENT = -60.0  # all rivals below weigh nothing, even together
LIGHT = 1e-7  # rows with less than this share of the greatest probability count for no Hessian
HORIZON = 1e3  # of a box that stands for unbounded features where a gap is judged
INNER = 1 - 1e-6  # of the radius: room for rounding, so that projected points lie inside
ON_SPHERE = 1 - 2e-6  # a point beyond this share of the radius lies on the sphere


@dataclass(frozen=True, eq=False)
class Domain:
    """Where z may lie: a box, whose bounds may be infinite, or the ball of a radius."""

    low: Singles
    high: Singles
    radius: float = np.inf

    @property
    def round(self) -> bool:
        """Whether it is a ball."""
        return bool(np.isfinite(self.radius))

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

    Gaps are ``judged`` over the region, or, where it has no end, over a box up to ``HORIZON``.
    """

    W: Singles  # (C, d), effective rows
    b: Singles  # (C,)
    region: Domain
    judged: Domain

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
            # denormal exponentials, of which a far point has many, slow the product down tenfold
            np.exp(np.maximum(Y, LEAST_EXPONENT, out=Y), out=Y)
            total = Y.sum(axis=1)
            own = np.einsum("nd,nd->n", means[tile].astype(np.float64), Z[tile]) + shifts[tile]
            loss[tile] = top + np.log(total) - own
            gradient[tile] = (Y @ self.W) / total[:, None] - means[tile]
        return loss, gradient

    def curvature(self, z: Singles) -> Singles:
        """``W^T (diag(q) - q q^T) W`` (d, d) at z (d,): the Hessian of every loss, without rows of
        next to no weight.
        """
        y = self.W @ z + self.b
        q = np.exp(y - y.max())
        heavy = q > LIGHT
        rows, q = self.W[heavy], q[heavy] / q[heavy].sum()
        spread = (rows - q @ rows) * np.sqrt(q)[:, None]
        return spread.T @ spread


def make_program(layer: SoftmaxLayer, features: FeatureSet) -> Program:
    """The layer in the coordinates in which its evidence names points (x, or u of a norm)."""
    features.check(layer.dimension)
    d = layer.dimension
    endless = np.full(d, np.inf, np.float32)
    W = features.effective_rows(layer.W, np.float32)
    b = features.effective_bias(layer.W, layer.bias.astype(np.float64)).astype(np.float32)
    if isinstance(features, Unbounded):
        reach = np.full(d, HORIZON, np.float32)
        return Program(W, b, Domain(-endless, endless), Domain(-reach, reach))
    shape = features.region(d, has_bias=False)
    if shape.radius is not None:
        region = Domain(-endless, endless, shape.radius)
    else:
        assert shape.low is not None
        assert shape.high is not None
        region = Domain(*round_inwards(shape.low, shape.high, np.float32))
    return Program(W, b, region, region)


def _state(d: int) -> np.dtype[np.void]:
    """A target on its way, as a row of an array."""
    row, pairs = (np.float32, (d,)), (np.float32, (MEMORY, d))
    return np.dtype(
        [
            # the target as it was given, and how often it was looked at
            *(("name", np.intp), ("mean", *row), ("shift", float), ("least", float)),
            ("looks", np.intp),
            # where it is, what it loses there, and the step that is tried next
            *(("z", *row), ("loss", float), ("gradient", *row)),
            *(("direction", *row), ("length", np.float32)),
            # its last moves, with the changes of the gradient and 1 / (move . change), or 0
            *(("moves", np.intp), ("move", *pairs), ("change", *pairs)),
            *(("inverse", float, (MEMORY,)), ("scale", float)),
        ]
    )


class Descents:
    """Targets that descend together: each step looks at every one of them once, in one product.

    One ends when its duality gap is at most ``gap`` nats, its loss at most its ``least``, or no
    step lowers the loss; in a ball, after ``most`` looks.
    """

    def __init__(self, program: Program, gap: float, most: int = 500) -> None:
        self.program, self.gap = program, gap
        # a Hessian costs as much as d / 2 looks: before that many there is nothing to save
        self.turn = most if program.region.round else max(program.W.shape[1] // 2, LEAST_TURN)
        self.state = np.zeros(0, _state(program.W.shape[1]))

    def __len__(self) -> int:
        return len(self.state)

    def admit(
        self, names: Ints, means: Singles, shifts: Floats, start: Singles, least: float | Floats
    ) -> None:
        """Take up n targets: ``means`` (n, d) are ``W^T p``, ``shifts`` (n,) ``b.p`` of each."""
        new = np.zeros(len(names), self.state.dtype)
        new["name"], new["mean"], new["shift"], new["least"] = names, means, shifts, least
        # the first step goes nowhere, from a point of which nothing is known
        new["z"], new["loss"], new["scale"] = self.program.region.project(start), np.inf, np.nan
        self.state = np.concatenate([self.state, new])

    def drop(self, which: Array) -> None:
        """Forget some of them, by a mask."""
        self.state = self.state[~which]

    def step(self) -> Array:
        """Look once at each; those that ended, with name, z, loss, gradient, mean, shift, looks."""
        s = self.state
        there = self.program.region.project(s["z"] + s["length"][:, None] * s["direction"])
        enough, value, slope = self._look(s, there)
        s["length"] *= 0.25
        moved = s[enough]
        _remember(moved, there[enough] - moved["z"], slope[enough] - moved["gradient"])
        moved["z"], moved["loss"], moved["gradient"] = there[enough], value[enough], slope[enough]
        moved["direction"], moved["length"] = self._directions(moved), 1
        s[enough] = moved
        tired = (s["length"] < LEAST_STEP) | (s["looks"] >= self.turn)
        ended = ~self._open(s) | tired
        self.state, s = s[~ended], s[ended]
        if not self.program.region.round:
            for n in np.flatnonzero(self._open(s)):
                self._newton(s[n : n + 1])
        return s

    def _open(self, s: Array) -> Array:
        gap = self.program.judged.gap(s["z"], s["gradient"])
        return (gap > self.gap) & (s["loss"] > s["least"])

    def _look(self, s: Array, there: Singles) -> tuple[Array, Floats, Singles]:
        """Which losses fall enough at new points (n, d), the losses, and their gradients."""
        value, slope = self.program.losses(there, s["mean"], s["shift"])
        s["looks"] += 1
        fall = np.einsum("nd,nd->n", s["gradient"], there - s["z"])
        slack = LOSS_ROUNDING * np.abs(s["loss"])
        return value <= s["loss"] + SUFFICIENT_DECREASE * fall + slack, value, slope

    def _newton(self, s: Array) -> None:
        """Newton's steps of one target (1,) on its free coordinates, damped until they lower its
        loss (Levenberg 1944).
        """
        damping = DAMPING
        for _ in range(NEWTON_STEPS):
            if not self._open(s)[0]:
                return
            z, G = s["z"].copy(), s["gradient"].copy()
            free = self.program.region.free(z, G, np.ones_like(G))[0] > 0
            M = self.program.curvature(z[0])
            unit = max(np.trace(M) / len(M), LEAST_SCALE) * np.eye(len(M), dtype=np.float32)
            for tried in damping * 10.0 ** np.arange(DAMPINGS):
                D = np.zeros_like(G)
                damped = (M + tried * unit)[np.ix_(free, free)]
                D[0, free] = -np.linalg.solve(damped, G[0, free])
                there = self.program.region.project(z + D)
                enough, value, slope = self._look(s, there)
                if enough[0]:
                    break
            else:
                return
            s["z"], s["loss"], s["gradient"] = there, value, slope
            damping = max(tried / 5, LEAST_DAMPING)

    def _directions(self, s: Array) -> Singles:
        Z, G = s["z"], s["gradient"]
        free = self.program.region.free(Z, G, G)
        D = self.program.region.free(Z, G, -_times_inverse_hessian(s, free))
        uphill = np.einsum("nd,nd->n", D, G) >= 0
        D[uphill] = -free[uphill] / _length(free[uphill])[:, None].astype(np.float32)
        return D


def _times_inverse_hessian(s: Array, G: Singles) -> Singles:
    """The two loops of L-BFGS for G (n, d)."""
    D, alphas, rows = G.copy(), [], np.arange(len(s))
    # what was never stored has the inverse 0
    kept = [(s["moves"] - age) % MEMORY for age in range(1, MEMORY + 1)]
    for k in kept:
        alpha = s["inverse"][rows, k] * np.einsum("nd,nd->n", s["move"][rows, k], D)
        alphas.append(alpha)
        D -= alpha[:, None].astype(np.float32) * s["change"][rows, k]
    first = np.where(np.isnan(s["scale"]), 1 / _length(G), s["scale"])
    D *= first[:, None].astype(np.float32)
    for k, alpha in zip(reversed(kept), reversed(alphas), strict=True):
        beta = s["inverse"][rows, k] * np.einsum("nd,nd->n", s["change"][rows, k], D)
        D += (alpha - beta)[:, None].astype(np.float32) * s["move"][rows, k]
    return D


def _remember(s: Array, move: Singles, change: Singles) -> None:
    rows, k = np.arange(len(s)), s["moves"] % MEMORY
    sy, yy = (np.einsum("nd,nd->n", a, change, dtype=np.float64) for a in (move, change))
    convex = sy > 1e-10 * np.sqrt(yy) * _length(move)
    s["move"][rows, k], s["change"][rows, k] = move, change
    s["inverse"][rows, k] = np.divide(1, sy, out=np.zeros(len(s)), where=convex)
    s["scale"] = np.where(convex, np.divide(sy, yy, out=np.ones(len(s)), where=convex), s["scale"])
    s["moves"] += 1


def _length(V: Singles) -> Floats:
    return np.maximum(np.linalg.norm(V.astype(np.float64), axis=1), 1e-30)
