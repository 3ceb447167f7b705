"""Certificates of unargmaxability: do these weights prove that a class can never win?

For weights l >= 0 on rivals and every x of the feature set X,

    s m_t(x) <= max_{x in X} v.x + c,
    v = sum_i l_i (w_t - w_i),  c = sum_i l_i (b_t - b_i),  s = sum_i l_i,

because the margin m_t(x) is the smallest of the terms averaged on the right. A right side <= 0 is a
proof. The form is homogeneous on purpose: normalising rounded weights can prove a falsehood.
Nothing in it needs the same class above every rival: weights on any comparisons (a, b), with ``v =
sum l_ab (w_a - w_b)``, prove that not every a is ahead of its b at once. Three routes, each for
what the one before left open:

1. *slack*: the right side in float64 with its rounding bounds (box, ball, ellipsoid; needs slack);
2. *simplex*: v vanishes exactly in the coordinates K where it is tiny, for some weights near the
   given ones (after a normalisation: ``gain * v`` does, or is constant). With ``A = [(w_t - w_i)_K
   ; 1]`` and an approximate right inverse R, ``||I - A R|| < 1`` proves that A has full row rank
   and that weights ``l + delta`` solve the system with ``|delta| <= |R| ||r|| / (1 - ||I - A
   R||)``. If no weight turns negative, the combination exists. No bias and unbounded features need
   this: there the bound is 0, without slack;
3. *exact*: the right side in fractions, for weights that are fractions, or floats in small systems.

Everything is computed in units (powers of two, hence exact) in which rows and features are of order
one, so that products neither overflow nor vanish; what scaling itself loses below the normal range
is in the bounds. Each bound on an error has one factor ``INFLATE`` in it, in ``gamma`` or by
itself, which covers the rounding of the bound and of sums over it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import scipy.linalg

from softgeom.arrays import Array, Floats, Ints
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.rounding import INFLATE, exponent, gamma, shrink, underflow
from softgeom.threads import one_thread

# v_k counts as zero below this fraction of sum_i l_i |w_t - w_i|_k: the LP's tolerance and float32
# reach it
TINY = 1e-6
# float weights are taken as fractions only when the right side is this small beside its terms
NEAR_TIE = 1e-6
EXACT_ENTRIES = 2**15  # and when there are at most so many products: 30 ms


class Care(NamedTuple):
    """How many times each rounding bound is counted, and what a bound <= 0 gives away for its own
    rounding.
    """

    errors: float
    bound: float


# Evidence claims less than it proves here, so that every machine confirms it: elsewhere residuals,
# inverses and sums are rounded otherwise, by less than the bounds on them.
CLAIM, CHECK = Care(8.0, 1e-9), Care(1.0, 1e-10)
# sizes between 2^-40 and 2^40 are left as they are: no product of theirs leaves float64's range
COMFORT = 40


def certify_unargmaxable(
    layer: SoftmaxLayer, features: FeatureSet, t: int, rivals: Ints, weights: Array
) -> float:
    """``certify_comparisons`` of class t against rivals (k,): a bound <= 0 proves that t never wins
    strictly.
    """
    return certify_comparisons(layer, features, np.full(np.shape(rivals), t), rivals, weights)


def certify_comparisons(
    layer: SoftmaxLayer, features: FeatureSet, above: Ints, below: Ints, weights: Array
) -> float:
    """An upper bound on ``max_x min_n y_above[n] - y_below[n]`` that the weights prove; inf when
    they prove nothing. A bound <= 0 proves that at no x all comparisons hold strictly.

    Class ``above[n]`` is to be ahead of class ``below[n]``, (k,) each; weights (k,) are floats or
    Fractions >= 0, not all zero, and need not sum to one.
    """
    above, below, weights = np.asarray(above), np.asarray(below), np.asarray(weights)
    if not are_weights(layer, above, below, weights):
        return np.inf
    if weights.dtype == object:
        proven = exact_comparisons(layer, features, above, below, weights.tolist())
        return 0.0 if proven else np.inf
    # what overflows proves nothing
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        system = _System.of(layer, features, above, below, weights)
        bound = system.slack_bound()
        if not bound <= 0:
            bound = min(bound, system.simplex_bound())
    bound = in_given_units(bound, system.power)
    if not bound <= 0 and system.D.size <= EXACT_ENTRIES and system.is_near_tie():
        exact = [Fraction(weight) for weight in weights.tolist()]
        bound = 0.0 if exact_comparisons(layer, features, above, below, exact) else bound
    return bound


def prove_comparisons(
    layer: SoftmaxLayer,
    features: FeatureSet,
    above: Ints,
    below: Ints,
    weights: Array,
    margin: float,
) -> bool:
    """Whether the weights (k,) prove ``max_x min_n y_above[n] - y_below[n] <= margin <= 0``.

    What another machine has certified is proven here too: float64 that rounds otherwise is followed
    by fractions, which do not round.
    """
    above, below, weights = np.asarray(above), np.asarray(below), np.asarray(weights)
    if not -np.inf < margin <= 0 or not are_weights(layer, above, below, weights):
        return False
    if weights.dtype != object:
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            system = _System.of(layer, features, above, below, weights)
            # in the units of the system: the margin may be where float64 ends
            claimed = Fraction(margin) / Fraction(2) ** system.power
            if system.slack_bound(CHECK) <= claimed or system.simplex_bound(CHECK) <= claimed:
                return True
    exact = [Fraction(weight) for weight in weights.tolist()]
    return exact_comparisons(layer, features, above, below, exact, Fraction(margin))


def are_weights(layer: SoftmaxLayer, above: Array, below: Array, weights: Array) -> bool:
    """Whether these are comparisons (k,) of different classes of the layer, k > 0, and finite
    weights >= 0 on them, not all zero.
    """
    if below.ndim != 1 or not above.shape == below.shape == weights.shape or not len(below):
        return False
    if above.dtype.kind not in "iu" or below.dtype.kind not in "iu" or np.any(above == below):
        return False
    if min(above.min(), below.min()) < 0 or max(above.max(), below.max()) >= layer.classes:
        return False
    if weights.dtype == object:
        return all(isinstance(w, Fraction) and w >= 0 for w in weights) and any(weights)
    return bool(np.all(np.isfinite(weights)) and weights.min() >= 0 and weights.max() > 0)


def has_slack(
    layer: SoftmaxLayer, features: FeatureSet, t: int, rivals: Ints, weights: Floats
) -> bool:
    """Whether valid float weights prove t unargmaxable as they are, by the first route."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        system = _System.of(layer, features, np.full(len(rivals), t), rivals, weights)
        return system.slack_bound() <= 0


def exact_comparisons(
    layer: SoftmaxLayer,
    features: FeatureSet,
    above: Ints,
    below: Ints,
    weights: list[Fraction],
    margin: Fraction = Fraction(0),
) -> bool:
    """Whether the right side is at most ``s margin`` in exact arithmetic."""
    share: dict[int, Fraction] = {}  # of each row in v: rows that occur often are added up first
    for a, b, weight in zip(above.tolist(), below.tolist(), weights, strict=True):
        share[a] = share.get(a, Fraction(0)) + weight
        share[b] = share.get(b, Fraction(0)) - weight
    v, c = [Fraction(0)] * layer.dimension, -margin * sum(weights)
    for i, part in share.items():
        if part:
            row, bias = exact_row(layer, i)
            v = [value + part * w if w else value for value, w in zip(v, row, strict=True)]
            c += part * bias
    return features.support_nonpositive(*features.reduce_exactly(v, c))


def exact_row(layer: SoftmaxLayer, i: int) -> tuple[list[Fraction], Fraction]:
    """Row (d,) and bias of class i as fractions."""
    bias = Fraction(0) if layer.b is None else Fraction(float(layer.b[i]))
    return [Fraction(value) for value in layer.W[i].astype(np.float64).tolist()], bias


def are_twins(layer: SoftmaxLayer, features: FeatureSet, t: int, i: int) -> bool:
    """Whether two different classes have equal logits at every x of the set, so that neither can
    beat the other.

    Over a box, a ball or all of R^d they do iff row and bias are equal. After a normalisation as
    soon as the effective rows ``gain * w`` (centred, for LayerNorm) and biases ``b + w.bias`` are:
    where a gain is 0, or along the ones, rows may differ.
    """
    if t == i or not (0 <= t < layer.classes and 0 <= i < layer.classes):
        return False
    if np.array_equal(layer.W[t], layer.W[i]):
        return bool(layer.bias[t] == layer.bias[i])
    return features.own_coordinates and effective(layer, features, t) == effective(
        layer, features, i
    )


def effective(layer: SoftmaxLayer, features: FeatureSet, i: int) -> tuple[list[Fraction], Fraction]:
    """Row (d,) and bias of class i in the set's own coordinates."""
    return features.reduce_exactly(*exact_row(layer, i))


class _System:
    """The differences ``D = w_a - w_b`` (k, d), ``c = b_a - b_b`` (k,) and v, scaled, with their
    rounding bounds.
    """

    @classmethod
    def of(
        cls, layer: SoftmaxLayer, features: FeatureSet, above: Ints, below: Ints, weights: Array
    ) -> _System:
        """Of any finite weights >= 0 that are not all zero, at most one after scaling."""
        weights = weights.astype(np.float64)
        weights, kept = np.ldexp(weights, -exponent(float(weights.max()))), weights > 0
        return cls(layer, features, above[kept], below[kept], weights[kept])

    def __init__(
        self, layer: SoftmaxLayer, features: FeatureSet, above: Ints, below: Ints, weights: Floats
    ) -> None:
        self.weights = weights
        k, self.d = len(below), layer.dimension
        # One row where the same class stands above all: whether it is unargmaxable.
        above = above[:1] if np.all(above == above[0]) else above
        own, rows = layer.W[above].astype(np.float64), layer.W[below].astype(np.float64)
        self.moves = (own != rows).any(axis=0)  # (d,) coordinates that the rows do not share
        own_bias, bias = (layer.bias[index].astype(np.float64) for index in (above, below))
        self.level = bool(np.all(own_bias <= bias))
        power = _power(float(max(np.abs(own).max(), np.abs(rows).max())))
        if power:
            own, rows = np.ldexp(own, -power), np.ldexp(rows, -power)
        self.features, reach = _scaled(features)
        if features.extent == 0:  # unbounded: the biases set the scale of x
            # by exponents: their ratio to the rows may leave the range of float64
            largest = float(max(np.abs(bias).max(), np.abs(own_bias).max()))
            reach = exponent(largest) - power if largest else 0
            reach = reach if abs(reach) > COMFORT else 0
        self.power = power + reach  # of margins
        self.D = own - rows
        # Scaled before they are subtracted: a difference may overflow where its scaled value would
        # not.
        c = np.ldexp(own_bias, -self.power) - np.ldexp(bias, -self.power)
        # an upper bound, even where it overflows
        self.c = np.where(np.isnan(c), np.inf, np.maximum(c, -(2.0**900)))
        self.v = weights @ self.D
        self.size = weights @ np.abs(self.D)  # (d,) what |v| would be if nothing cancelled
        slip = gamma(k + 3)
        self.v_error = slip * self.size + np.where(self.moves, underflow(k + 3), 0.0)
        self.total = float(weights.sum())
        self.constant = float(weights @ self.c)
        lost = underflow(k + 3) if np.any(own_bias != bias) else 0.0
        self.constant_error = slip * float(weights @ np.abs(self.c)) + lost

    def slack_bound(self, care: Care = CLAIM) -> float:
        """The right side divided by s, rounded up."""
        right = self._right_side(care.errors)
        if right > 0 and self._right_side(CHECK.errors) <= 0:
            return 0.0  # fractions confirm that much anywhere
        return divide_up(right, self.total, care.bound)

    def _right_side(self, times: float) -> float:
        """The right side with each error so many times."""
        reach, size = self.features.support_bound(self.v, times * self.v_error)
        size += abs(self.constant) + self.constant_error
        return reach + self.constant + times * (self.constant_error + gamma(self.d + 8) * size)

    def is_near_tie(self) -> bool:
        """Whether the right side is so close to 0 that rounding, not geometry, keeps the other
        routes from deciding.
        """
        if self._needs_all():
            return bool(np.all(np.abs(self.v) <= TINY * self.size))
        # Not the support of `size`: after a normalisation that may cancel where v does.
        whole = self.features.extent * float(self.size.sum()) + float(self.weights @ np.abs(self.c))
        right = self.features.support_bound(self.v, np.zeros(self.d))[0] + self.constant
        return bool(right <= NEAR_TIE * whole + 2.0**20 * underflow(self.d))

    @one_thread()
    def simplex_bound(self, care: Care = CLAIM) -> float:
        """The same with v = 0 exactly where it is tiny, for weights that must then exist."""
        E, E_error, c, c_error = self.features.equalities(self.D, self.c)
        v, size = self.weights @ E, self.weights @ np.abs(E)
        error = gamma(len(self.weights) + 3) * size + self.weights @ np.broadcast_to(
            E_error, E.shape
        )
        moves = E.any(axis=0) | E_error.any(axis=0)
        if E is self.D:
            moves, error = self.moves, self.v_error
        elif not np.array_equal(self.D.any(axis=0), self.moves):  # scaling lost a column
            return np.inf
        tiny = np.abs(v) <= TINY * size
        if not tiny.all() and (E is not self.D or self._needs_all()):
            return np.inf
        K = np.flatnonzero(tiny & moves)  # a coordinate shared by all rows vanishes by itself
        error = care.errors * error
        delta = self._correction(
            E[:, K], np.broadcast_to(E_error, E.shape)[:, K], np.abs(v[K]) + error[K]
        )
        if delta is None or not np.all(care.errors * delta <= self.weights):
            return np.inf
        delta = care.errors * delta
        constant = self._shifted_constant(c, c_error, delta)
        rest = ~tiny
        moved = error + delta @ np.abs(E)
        if not rest.any():
            reach = size_of_rest = 0.0
        else:
            reach, size_of_rest = self.features.support_bound(
                np.where(rest, v, 0.0), np.where(rest, moved, 0.0)
            )
        slack = gamma(self.d + 8) * (size_of_rest + abs(constant)) if size_of_rest else 0.0
        right = reach + constant + care.errors * slack
        return divide_up(right, self.total * 2, care.bound) if right <= 0 else np.inf

    def _needs_all(self) -> bool:
        """Whether a v that does not vanish has infinite support."""
        return not np.isfinite(self.features.support_bound(np.ones(self.d), np.zeros(self.d))[0])

    def _shifted_constant(self, c: Floats, c_error: Floats, delta: Floats) -> float:
        """Upper bound on ``sum (l + delta)_i c_i``; never above 0 when no c_i is (then rounding
        cannot matter).
        """
        if c is self.c:
            bound = self.constant + self.constant_error + float(delta @ np.abs(c))
            return min(bound, 0.0) if self.level else bound
        weights = self.weights + delta
        bound = float(self.weights @ c) + float(
            delta @ np.abs(c) + weights @ np.broadcast_to(c_error, c.shape)
        )
        bound += gamma(len(c) + 4) * float(weights @ np.abs(c)) + self.constant_error
        return min(bound, 0.0) if self.level and not c_error.any() else bound

    def _correction(self, D: Floats, D_error: Floats, miss: Floats) -> Floats | None:
        """Bounds (k,) on |delta| that makes ``D^T l`` (m,), at most ``miss`` now, vanish and keeps
        the sum; None if not proven.
        """
        k = len(self.weights)
        if D.shape[1] + 1 > k:
            return None
        scale = np.abs(D).max(axis=0)
        if not np.all(scale > 2.0**-900):  # what the scaling lost would not be small beside it
            return None
        A = np.vstack([D.T / scale[:, None], np.ones(k)])  # (m + 1, k), rows of order one
        A_error = np.vstack([D_error.T / scale[:, None], np.zeros(k)])
        right = np.append(miss / scale, 0.0)
        R = _right_inverse(A, self.weights)
        loss = np.inf if R is None else identity_error(A, A_error, R)
        return correction_bounds(R, right, loss) if R is not None and loss < 0.5 else None


def divide_up(right: float, total: float, rounding: float = CLAIM.bound) -> float:
    """``right / s`` rounded up, when s is within rounding of ``total``; of what is not finite,
    inf.
    """
    if not right <= 0:
        # never 0: that would be a proof
        return max(right / total * INFLATE, 5e-324) if np.isfinite(right) else np.inf
    bound = right / total * (1 - rounding)
    return max(bound, -np.finfo(float).max) if bound < -underflow(1) else 0.0


def in_given_units(bound: float, power: int) -> float:
    """``2^power bound`` rounded up."""
    if not power or not bound or bound == np.inf:
        return bound
    if bound > 0:
        with np.errstate(over="ignore", under="ignore"):
            return max(float(np.ldexp(bound, power)), 5e-324)
    return max(float(shrink(bound, power)), -np.finfo(float).max)


def _right_inverse(A: Floats, weights: Floats) -> Floats | None:
    """An approximate right inverse (k, m) of A (m, k), weighted: what it adds to a weight is small
    where the weight is small.
    """
    Q, triangle = scipy.linalg.qr((A * weights).T, mode="economic")
    if not np.all(np.abs(np.diag(triangle)) > 1e-14 * np.abs(triangle).max()):
        return None
    return np.asarray(weights[:, None] * scipy.linalg.solve_triangular(triangle, Q.T).T)


def identity_error(A: Floats, A_error: Floats, R: Floats) -> float:
    """Upper bound on ``||I - B R||``, the largest row sum, for every B within ``gamma(8) |A| +
    A_error`` of A (m, k), where it is below 1.
    """
    k = A.shape[1]
    # What vanishes is nothing beside this: |A| |R| is at least 1 less the bound in each row.
    error = ((gamma(k + 2) + gamma(8)) * np.abs(A) + A_error) @ np.abs(R)
    return float((np.abs(np.eye(len(A)) - A @ R) + error).sum(axis=1).max() * INFLATE)


def correction_bounds(R: Floats, right: Floats, loss: float) -> Floats:
    """Upper bounds (k,) on some delta with ``B delta`` within ``right`` (m,), where ``||I - B R||
    <= loss < 1``: so large that sums over them, and over weights that they change, need no rounding
    bound of their own.
    """
    return np.asarray(np.abs(R).sum(axis=1) * (right.max() / (1 - loss)) * INFLATE + underflow(2))


def _power(size: float) -> int:
    """The power of two that brings a size to order one; 0 where it is so already."""
    power = exponent(size)
    return power if abs(power) > COMFORT else 0


def _scaled(features: FeatureSet) -> tuple[FeatureSet, int]:
    """The feature set in units of order one, and their power of two."""
    power = _power(features.extent)
    try:
        return (features.scaled(power), power) if power else (features, 0)
    except ValueError:  # bounds too far apart for that
        return features, 0
