"""Certified bounds on probabilities: what a point, or blocking classes, prove about every input.

*Classes.* For any weights ``l >= 0``, sum 1, on the rivals of class t, and every x of the set X,

    1 / p_t(x) - 1 = sum_{i != t} exp(y_i - y_t) >= exp(sum l_i (y_i - y_t) + H(l))

by Jensen's inequality (the arithmetic mean of ``exp(y_i - y_t) / l_i`` under l is at least the
geometric one), and with ``r = w_t - sum l_i w_i`` the exponent is at least

    A(l) = H(l) + sum l_i b_i - b_t - s_X(r),

s_X the support function of X. So ``p_t <= 1 / (1 + exp A)`` at every x, whatever the sign of A: the
*ceiling*. The weights may be a proof's blocking classes (valid, often loose: k blocking classes
without slack give 1 / (k + 1) at best), or the softmax of the rivals at any point z: at the best
point of a compact X that is the least such bound, by convex duality (F(x) = -log p_t(x) is convex).

*Distributions.* For a target p and any distribution q, likewise, every x has

    KL(p || softmax(W x + b)) >= H(q) - H(p) + b.(q - p) - s_X(W^T (p - q)):

the *floor* that q, the softmax at a point, proves.

*What stands behind the layer* (``softgeom.readout``). With logits ``s z``, s > 0, of scores
``z = W x + b`` the exponent is s times as much: ``A = H(l) + s (sum l_i b_i - b_t - s_X(r))``.
A soft cap ``y = c tanh(s z / c)`` has slopes between 0 and s. So a rival that leads in z leads in
y, ``exp(y_i - y_t) >= 1``, and one that trails does so by at most ``s (z_t - z_i)``. Hence

    1 / p_t = 1 + sum exp(y_i - y_t) >= 1 + sum min(1, exp(s (z_i - z_t))) >= min(2, 1 / p'_t)

with p' the softmax of ``s z``: the cap leaves every ceiling of one half and more as it is, and
makes none larger than one half. Of a sigmoid, ``p_t = 1 / (1 + exp(-y_t))`` grows with z_t, whose
supremum is ``s_X(w_t) + b_t``.

Unbounded features need ``r = 0``. With ``D_i = w_i - w_t`` and ``M = sum u_i D_i D_i^T`` the
weights ``u_i (1 + D_i.mu)``, ``M mu = -sum u_i D_i``, have exactly the mean row w_t: they exist and
are positive when ``eps = max |D_i| |sum u_i D_i| / lambda_min(M) < 1``, and A changes by little
more than eps times the size of its terms.

Weights u are floats that need be no exact softmax: any ``u >= 0``, not all zero, make an l or a q.
Rounding: sums and products as in ``softgeom.rounding``. ``exp`` and ``log`` are taken to be within
``LIBRARY`` of the truth, relatively; libraries promise a few units in the last place (2^-52), and a
test holds them to it. What lies below exp(-700) of the highest logit is left out of u.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softgeom.arrays import Array, Floats, Ints
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.readout import PLAIN, Readout
from softgeom.rounding import demand_standard_model, exponent, gamma, norm_up, underflow

LIBRARY = 2.0**-48  # relative error of exp and log: sixteen units in the last place
LEAST_EXPONENT = -700.0  # below, u would come near the end of float64's normal range
# rows below 2^-900 or above 2^900 have no exact mean: what underflow takes would count beside them
LARGEST_POWER = 900
TILE_BYTES = 2**24  # logits held at once
# eps that the spread of another point may leave: its cost, in nats, is a few times as much
SMALL_ENOUGH = 1e-6
REMEMBERED = 8  # points whose spread of rows others may borrow


@dataclass(frozen=True, eq=False)
class Target:
    """A distribution: weights (k,) > 0 on classes (k,), in units of their sum."""

    classes: Ints
    weights: Floats

    @property
    def entropy(self) -> tuple[float, float]:
        """``H(p)`` in nats, and a bound on its error."""
        shares = self.weights / float(self.weights.sum())
        H = float(-(shares @ np.log(shares)))
        return H, (gamma(3 * len(shares) + 8) + LIBRARY) * (H + 2)


class Certifier:
    """Certifies bounds for one layer over one feature set, and what stands behind the layer; holds
    what all of them need. Its `caveats` are the caller's to say.
    """

    def __init__(self, layer: SoftmaxLayer, features: FeatureSet, readout: Readout = PLAIN) -> None:
        demand_standard_model()
        if readout.probability not in ("softmax", "sigmoid"):
            what = {"none": "gives no probabilities"}
            gives = what.get(readout.probability, f"gives {readout.probability}")
            raise ValueError(f"this model {gives}: bounds are known for a softmax or sigmoids.")
        features.check(layer.dimension)
        self.layer, self.features = layer, features
        self.W = layer.W.astype(np.float64, copy=False)
        self.readout, self.scale = readout, float(readout.scale)
        self.unscaled = layer.bias.astype(np.float64)
        self.b = self.scale * self.unscaled  # what it is rounded by is in every slack
        self.columns = np.abs(self.W).max(axis=0)  # (d,)
        self.norm = float(norm_up(self.W).max())
        self.power = exponent(self.norm)
        self.most_bias = float(np.abs(self.b).max())
        # unnormalised softmaxes, and the least spread of the rows under each
        self._spreads: list[tuple[Floats, float]] = []

    def ceilings(self, Z: Array, classes: Ints, at: Ints) -> tuple[Floats, Floats]:
        """Upper bounds on the probabilities of ``classes`` (n,) at every x, and lower ones at their
        points: ``ceiling >= sup_x p_t(x) >= p_t(point) >= reached``, 1 and 0 where nothing is
        proven. Points Z (m, d) are in the coordinates of evidence (x, or u of a norm), ``at`` (n,)
        says whose is which: a point is evaluated once for all of its classes.
        """
        demand_standard_model()  # also now: it may be long ago that it was made
        ceiling, reached = np.ones(len(classes)), np.zeros(len(classes))
        for look, group in self._looks(Z, at):
            seen = self._seen(look)
            for n in group.tolist():
                t = int(classes[n])
                ceiling[n] = self._ceiling(look, t)
                reached[n] = self._reached(seen, t)
        return ceiling, np.minimum(reached, ceiling)

    def floors(self, Z: Array, targets: Sequence[Target], at: Ints) -> tuple[Floats, Floats]:
        """Lower bounds on the divergences of targets from every softmax, and upper ones at points:
        ``floor <= inf_x KL(p || softmax) <= KL at the point <= attained``, nats; floor >= 0.
        """
        demand_standard_model()
        floor, attained = np.zeros(len(targets)), np.full(len(targets), np.inf)
        for look, group in self._looks(Z, at):
            for n in group.tolist():
                proven = self._floor(look, targets[n])
                floor[n] = max(0.0, proven) if math.isfinite(proven) else 0.0
                attained[n] = self._attained(look, targets[n])
        return floor, attained

    @np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore")
    def blocking_ceiling(self, t: int, rivals: ArrayLike, weights: ArrayLike) -> float:
        """The ceiling that weights (k,) on rivals (k,) of class t prove; 1 where they prove none.
        ValueError if they are not as a proof's blocking classes.
        """
        demand_standard_model()
        index, weights = np.asarray(rivals, np.intp), np.asarray(weights, np.float64)
        fits = index.ndim == 1 and index.shape == weights.shape and len(index)
        if not fits or (index == t).any() or not 0 <= index.min() <= index.max() < len(self.b):
            raise ValueError(f"class {t}: blocking classes are other classes, each with a weight")
        if not np.isfinite(weights).all() or not (weights > 0).all():
            raise ValueError(f"class {t}: weights of blocking classes are positive numbers")
        u = np.zeros(self.layer.classes)
        np.add.at(u, index, weights / weights.max())
        there = np.flatnonzero(u)
        few = u[there]
        own = np.log(few)
        sums: Any = {
            "total": float(few.sum()),
            "mean": few @ self.W[there],
            "entropy": float(-(few @ own)),
            "bias": float(few @ self.b[there]),
            "size": float(few @ np.abs(own)),
        }
        look = _Look(y=np.zeros(0), u=u, top=0.0, error=0.0, inside=False, **sums)
        return self._ceiling(look, t)

    def _ceiling(self, look: _Look, t: int) -> float:
        """What the weights of a look prove of the largest probability of class t."""
        if self.readout.probability == "sigmoid":
            return odds_to_ceiling(-self._highest(t))
        ceiling = odds_to_ceiling(self._odds(look, t))
        return ceiling if self.readout.soft_cap is None else max(0.5, ceiling)

    def _reached(self, seen: _Look, t: int) -> float:
        """What class t has at a point, rounded down."""
        down = 1 - 2 * LIBRARY  # twice: the product is rounded, too
        if self.readout.probability == "softmax":
            log_p = -self._attained(seen, Target(np.array([t]), np.ones(1)))
            return math.exp(log_p) * down if log_p > LEAST_EXPONENT else 0.0
        low = float(seen.y[t]) - float(seen.error) if seen.inside else -math.inf
        odds = math.exp(min(-low, 700.0)) * (1 + LIBRARY)
        return 1 / (1 + odds) * down if low > LEAST_EXPONENT else 0.0

    def _highest(self, t: int) -> float:
        """The largest logit of class t over the set, rounded up."""
        w = self.W[t]
        reach, size = self.features.support_bound(w, np.zeros(len(w)))
        reach = self.scale * (reach + gamma(len(w) + 8) * size)
        y = reach + float(self.b[t]) + gamma(8) * (abs(reach) + abs(float(self.b[t])))
        cap = self.readout.soft_cap
        return y if cap is None else cap * math.tanh(y / cap) + cap * (gamma(4) + LIBRARY)

    def _seen(self, look: _Look) -> _Look:
        """The look with the logits that the model's softmax sees: capped, where it caps them."""
        cap = self.readout.soft_cap
        if cap is None:
            return look
        y = cap * np.tanh(look.y / cap)
        top = float(y.max())
        total = float(np.exp(y - top).sum())
        # a cap moves no logit by more than it is off, but is rounded itself
        error = float(look.error) + cap * (gamma(4) + LIBRARY)
        return replace(look, y=y, top=top, total=total, error=error)

    def _looks(self, Z: Array, at: Ints) -> Any:
        """Each point that is used, with the positions of those that use it."""
        order = np.argsort(at, kind="stable")
        used, first = np.unique(at[order], return_index=True)
        groups = np.split(order, first[1:])
        size = max(1, TILE_BYTES // (8 * self.layer.classes))
        with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
            for start in range(0, len(used), size):
                part = slice(start, start + size)
                looks = self._look(np.asarray(Z[used[part]], float))
                yield from zip(looks, groups[part], strict=True)

    def _look(self, Z: Floats) -> list[_Look]:
        d = self.layer.dimension
        x, moved = self.features.features_at(Z)
        Y = self.scale * (x @ self.W.T + self.unscaled)
        top = Y.max(axis=1, keepdims=True)
        A = Y - top  # the arguments of exp as they are: rounded, they make other weights
        U = np.where(A < LEAST_EXPONENT, 0.0, np.exp(A))
        rounded = gamma(d + 6 + (self.scale != 1))
        error = self.scale * self.norm * (rounded * norm_up(x) + moved) + rounded * self.most_bias
        entropy = np.einsum("nc,nc->n", U, -A)
        columns = (Y, U, top[:, 0], U.sum(axis=1), U @ self.W, entropy, U @ self.b, entropy)
        inside = self.features.contains(Z) & np.isfinite(Y).all(axis=1)
        rest = (error + max(1.0, self.scale) * underflow(d + 6), inside)
        return [_Look(*each) for each in zip(*columns, *rest, strict=True)]

    def _odds(self, look: _Look, t: int) -> float:
        """A(l), rounded down, for the weights of a look without class t; -inf proves nothing."""
        own = float(look.u[t])
        total = look.total - own
        if not total > 0:
            return -math.inf
        n = gamma(2 * self.layer.classes + 24)
        # what was summed with class t and taken off again is off by its share of the whole
        whole = look.total / total
        r = (look.total * self.W[t] - look.mean) / total
        r_error = n * 4 * whole * self.columns + whole * underflow(self.layer.classes)
        reach, size = self.features.support_bound(r, r_error)
        reach = self.scale * (reach + gamma(len(r) + 8) * size)
        if math.isinf(reach):
            return self._odds_of_exact_mean(look, t)
        entropy = look.entropy - own * -math.log(own) if own else look.entropy
        terms = (look.size + own * 700) / total + 2 * whole * self.most_bias + abs(math.log(total))
        slack = (n + 4 * LIBRARY) * 2 * (terms + whole) + gamma(8) * abs(reach)
        value = (entropy + look.bias - own * float(self.b[t])) / total + math.log(total)
        return value - float(self.b[t]) - reach - slack

    def _odds_of_exact_mean(self, look: _Look, t: int) -> float:
        """A(l), rounded down, of weights near the look's with exactly the mean row w_t; rows in
        units of their largest norm, whose squares neither overflow nor vanish.
        """
        if abs(self.power) > LARGEST_POWER:
            return -math.inf
        C, n = self.layer.classes, gamma(2 * self.layer.classes + 24)
        own = float(look.u[t])
        total = look.total - own
        # sum u_i D_i, to which class t adds nothing, and its rounding
        r = np.abs(look.mean - look.total * self.W[t])
        r += n * 2 * self.columns * look.total + underflow(C)
        r_norm = float(norm_up(np.ldexp(r, -self.power)))
        least = self._least_spread(look, r_norm)
        # |D_i| is at most twice the largest norm, and that is below 1 in these units
        eps = 2 * r_norm / least * (1 + 1e-9) if least > 0 else math.inf
        if not eps < 0.25:
            return -math.inf
        # sum over rivals of u' T, T = -log u' + b_i - b_t, with u' = u (1 + at most eps)
        entropy = look.entropy - own * -math.log(own) if own else look.entropy
        sum_T = entropy + look.bias - look.total * float(self.b[t])
        size_T = look.size + own * 700 + 2 * self.most_bias * look.total
        slack = (n + 4 * LIBRARY) * 2 * (size_T + look.total)
        low = sum_T - slack - eps * (1 + 1e-9) * (size_T + 2 * look.total)
        share = low / (total * (1 + eps if low > 0 else 1 - eps))
        value = share + math.log(total) + math.log1p(-eps)
        terms = abs(share) + abs(math.log(total)) + 1
        return value - (n * look.total / total + 4 * LIBRARY) * terms

    def _least_spread(self, look: _Look, r_norm: float) -> float:
        """A lower bound on ``lambda_min(sum u_i (w_i - c)(w_i - c)^T)``, whatever c is.

        It is least about the mean. Where u is at least k times the u of an earlier point, so is the
        matrix: most classes need no eigenvalue of their own.
        """
        for u, least in reversed(self._spreads):
            there = u > 0
            share = float((look.u[there] / u[there]).min()) * (1 - gamma(2))
            if least > 0 and share * least * SMALL_ENOUGH >= 2 * r_norm:
                return share * least
        least = self._spread(look)
        self._spreads = [*self._spreads[1 - REMEMBERED :], (look.u, least)]
        return least

    def _spread(self, look: _Look) -> float:
        d, C = self.layer.dimension, self.layer.classes
        centre = look.mean / look.total
        M = np.zeros((d, d))
        there = np.flatnonzero(look.u)
        step = max(1, TILE_BYTES // (8 * d))
        for start in range(0, len(there), step):
            part = there[start : start + step]
            D = np.ldexp(self.W[part] - centre, -self.power)
            M += D.T @ (look.u[part, None] * D)
        # each entry is a sum of C products of a few roundings, of at most u |D_i| |D_j|
        trace = float(np.trace(M)) * (1 + gamma(C + 8))
        off = gamma(C + 8) * (trace + 4 * look.total)
        # about the true mean the matrix is smaller, by total times the squared error of the centre
        columns = float(norm_up(np.ldexp(self.columns, -self.power)))
        off += look.total * (gamma(2 * C + 8) * 2 * columns) ** 2
        return least_eigenvalue(M, trace) - off

    def _floor(self, look: _Look, target: Target) -> float:
        """``H(q) - H(p) + b.(q - p) - s_X(W^T (p - q))``, rounded down."""
        k, n = len(target.classes), gamma(2 * self.layer.classes + 24)
        shares = target.weights / target.weights.sum()
        v = shares @ self.W[target.classes] - look.mean / look.total
        error = (n + gamma(2 * k + 8)) * 2 * self.columns + underflow(self.layer.classes)
        reach, size = self.features.support_bound(v, error)
        reach = self.scale * (reach + gamma(len(v) + 8) * size)
        H, H_error = target.entropy
        own = float(shares @ self.b[target.classes])
        value = (look.entropy + look.bias) / look.total + math.log(look.total) - H - own - reach
        terms = look.size / look.total + 2 * self.most_bias + abs(math.log(look.total)) + H
        slack = (n + gamma(2 * k + 8) + 4 * LIBRARY) * 2 * (terms + 1) + H_error
        return value - slack - gamma(8) * abs(reach)

    def _attained(self, look: _Look, target: Target) -> float:
        """KL(p || softmax) at the point, rounded up; infinite outside the set."""
        if not look.inside:
            return math.inf
        k = len(target.classes)
        shares = target.weights / target.weights.sum()
        own = float(shares @ look.y[target.classes])
        H, H_error = target.entropy if k > 1 else (0.0, 0.0)
        value = float(look.top) + math.log(look.total) - own - H
        size = abs(float(look.top)) + float(shares @ np.abs(look.y[target.classes])) + abs(H) + 1
        size += abs(math.log(look.total))
        n = gamma(self.layer.classes + 2 * k + 16)
        # the rivals left out of u have less than exp(-690) together
        return value + 2 * float(look.error) + (n + 4 * LIBRARY) * size + H_error


@dataclass(frozen=True, eq=False)
class _Look:
    """Unnormalised weights of all classes, and the sums over them that bounds need."""

    y: Floats  # (C,) logits of the point
    u: Floats  # (C,)
    top: float
    total: float
    mean: Floats  # sum u_i w_i
    entropy: float  # sum u_i (-log u_i)
    bias: float  # sum u_i b_i
    size: float  # sum u_i |log u_i|
    error: float  # of each logit
    inside: bool


def odds_to_ceiling(A: float) -> float:
    """``1 / (1 + exp A)``, rounded up; 1 for a bound that is none, as of sums that overflow."""
    if not math.isfinite(A) or A < LEAST_EXPONENT:
        return 1.0
    return min(1.0, 1 / (1 + math.exp(min(A, 700.0)) * (1 - LIBRARY)) * (1 + LIBRARY))


def least_eigenvalue(M: Floats, trace: float) -> float:
    """A lower bound on the least eigenvalue of a symmetric M; -inf where none above zero is found.

    When Cholesky's factorisation of ``M - a I`` runs to its end in floating point,
    ``lambda_min(M) >= a - gamma(d + 2) trace`` (Rump 2006, "Verification of positive
    definiteness"), and the diagonal was rounded by as much again.
    """
    if not np.isfinite(M).all():
        return -math.inf
    M = (M + M.T) / 2
    guess = float(np.linalg.eigvalsh(M)[0]) / 2
    if not guess > 0:
        return -math.inf
    try:
        np.linalg.cholesky(M - guess * np.eye(len(M)))
    except np.linalg.LinAlgError:
        return -math.inf
    return guess - 4 * gamma(2 * len(M) + 4) * trace
