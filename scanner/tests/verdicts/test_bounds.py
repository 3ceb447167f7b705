"""Each rounding bound against the one that theory demands: layers of small integers make no errors,
so that a bound's distance to the exact value is all rounding bound. It has to cover the roundings
behind it (Higham 2002, Section 3.1), and may cover little more.
"""

from fractions import Fraction

import numpy as np
import pytest
from definition import dot, exact, exact_logits, gamma
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom import rounding
from softgeom.certifying import checker as checking
from softgeom.certifying import hull
from softgeom.certifying.checker import Checker, wins
from softgeom.certifying.hull import certify_comparisons, certify_unargmaxable, prove_comparisons
from softgeom.features import Ball, Box, Ellipsoid, Unbounded
from softgeom.layer import SoftmaxLayer
from softgeom.scanner import scan

NOISE = 1 + Fraction(1, 10**8)  # what INFLATE may add
TINY = Fraction(float(np.finfo(float).tiny))  # the least that keeps all its bits
LARGEST = float(np.finfo(float).max)
U = 2.0**-53
BOTH = np.array([1, 2])
SEEDS = pytest.mark.parametrize("seed", range(3))
by_kind = {"ids": lambda features: features.kind}


def covers(bound: float, least: Fraction | int, most: Fraction | int) -> bool:
    """Whether a bound covers what theory demands, and little more."""
    return least <= Fraction(float(bound)) <= most * NOISE


def system(layer, features, weights, rivals=None) -> hull._System:
    """Class 0 against others, by default those that follow it."""
    weights = np.asarray(weights, dtype=float)
    rivals = np.arange(1, len(weights) + 1) if rivals is None else np.asarray(rivals)
    return hull._System(layer, features, np.zeros(len(weights), int), rivals, weights)


def integer_system(seed: int, k: int = 5, d: int = 4) -> hull._System:
    """Class 0 below k others, weighted by eighths: nothing in it is rounded."""
    rng = np.random.default_rng(seed)
    W, b = rng.integers(-9, 10, (k + 1, d)).astype(float), rng.integers(-9, 10, k + 1).astype(float)
    return system(SoftmaxLayer(W, b), Box(2.0), rng.integers(1, 9, k) / 8)


def simplex_layer(offset: float = 0.0, bias=None) -> tuple[SoftmaxLayer, np.ndarray]:
    """A class in a simplex, and its weights; with an offset, beside where they put it."""
    corners = np.array([[4.0, 0, 0], [0, 4, 0], [0, 0, 8], [-8, -4, -4]])
    weights = np.array([3.0, 2.0, 1.0, 2.0]) / 8
    return SoftmaxLayer(np.vstack([weights @ corners + [0, 0, offset], corners]), bias), weights


def spied(monkeypatch, owner, name: str) -> list[tuple]:
    """What a function is called with from now on."""
    calls, function = [], getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *given: calls.append(given) or function(*given))
    return calls


# ---- rounding.py


@pytest.mark.parametrize("n", [1, 3, 2**20, 2**45])
def test_gamma_and_underflow_are_those_of_the_text(n):
    assert covers(rounding.gamma(n), gamma(n), gamma(n))
    assert rounding.underflow(n) == 4 * n * np.finfo(float).tiny
    assert rounding.gamma(2**53) == np.inf


@given(st.lists(st.integers(0, 2**53), min_size=1, max_size=9), st.sampled_from([-1074, 0, 900]))
def test_a_norm_is_never_rounded_down(numbers, power):
    """Down to the smallest float, two of which have a norm that float64 would round to one."""
    V = np.ldexp(np.array([numbers, [1] * len(numbers)], float), power)
    for row, bound in zip(exact(V), rounding.norm_up(V), strict=True):
        size = sum(v * v for v in row)
        assert size <= Fraction(float(bound)) ** 2
        most = Fraction(float(bound)) - 5 * TINY
        assert most <= 0 or most**2 <= size * NOISE**2


# ---- hull.py: sums over blocking classes, and the first route


@SEEDS
def test_sums_over_blocking_classes_cover_their_roundings(seed):
    """A difference of rows, a product, and k - 1 additions: k + 1 roundings."""
    found = integer_system(seed)
    weights, D, c = exact(found.weights), exact(found.D), exact(found.c)
    sizes = [dot(weights, (abs(row[k]) for row in D)) for k in range(4)]
    sizes.append(dot(weights, map(abs, c)))
    for error, size in zip([*found.v_error, found.constant_error], sizes, strict=True):
        assert gamma(6) * size < Fraction(error) < gamma(8) * size * NOISE


@pytest.mark.parametrize(
    ("rivals", "weights", "terms"),
    [([2], [2.0**-500], 3), ([1, 2], [1.0, 1.0], 3), ([2, 3], [2.0**-500] * 2, 4)],
)
def test_what_vanishes_below_the_normal_range_is_covered(rivals, weights, terms):
    """Products of 2^-700 and 2^-500 are zero in float64, and no proof that v vanishes. The second
    column is shared by all rows: it vanishes by itself.
    """
    W = np.array([[0.0, 2.0], [1.0, 2.0], [-(2.0**-700), 2.0], [0.0, 2.0]])
    found = system(SoftmaxLayer(W, [2.0**-700, 2.0**-700, 0.0, 0.0]), Box(1.0), weights, rivals)
    assert found.moves.tolist() == [True, False]
    assert found.v_error[1] == 0
    assert found.constant_error >= terms * TINY
    if max(weights) < 1:
        assert found.v[0] == 0
        assert covers(found.v_error[0], terms * TINY, 4 * (terms + 1) * TINY)
        assert covers(found.constant_error, terms * TINY, 4 * (terms + 1) * TINY)


@SEEDS
@pytest.mark.parametrize("room", [0, -1, 3])
@pytest.mark.parametrize("errors", [0.0, 0.125])
def test_a_bound_covers_its_own_sum(seed, room, errors):
    """d products in the reach (each of a v that was widened), the constant, its error: d + 3
    roundings. Here all is exact but for that.
    """
    found = integer_system(seed)
    found.v_error, found.constant_error = np.full(4, errors), errors
    reach = 2 * sum(abs(value) + Fraction(errors) for value in exact(found.v))
    found.constant = float(room - reach - Fraction(errors))
    size = reach + abs(Fraction(found.constant)) + Fraction(errors)
    bound = Fraction(found.slack_bound(hull.Care(1.0, 1e-9))) * Fraction(found.total)
    if room < 0:  # divided by a little more: rounded towards 0
        assert room * (1 - Fraction(1, 10**9)) <= bound < room * (1 - Fraction(1, 10**8))
    else:
        assert room + gamma(7) * size <= bound <= (room + gamma(12) * size) * NOISE


def test_a_set_that_no_unit_holds_is_taken_as_it_is():
    """A reach of 2^60 times 2^-60 in each of two comparisons, and a bias of -5."""
    features = Ellipsoid([2.0**60, 1.0], [0.0, 5e-324], radius=1.0)
    layer = SoftmaxLayer([[0.0, 0.0], [-(2.0**-60), 1.0], [-(2.0**-60), -1.0]], [-5.0, 0.0, 0.0])
    assert -4 <= certify_unargmaxable(layer, features, 0, BOTH, np.full(2, 0.5)) < -4 * (1 - 1e-8)


def test_a_bound_that_is_lost_below_the_normal_range_is_zero_or_no_proof():
    tiny = np.finfo(float).tiny
    for right, total, quotient in (
        (-4 * tiny, 1.0, 0.0), (-1e308, 1e-308, -LARGEST), (5e-324, 8.0, 5e-324),
        (np.nan, 1.0, np.inf), (np.inf, 1.0, np.inf),
    ):  # fmt: skip
        assert hull.divide_up(right, total) == quotient
    assert hull.divide_up(-5 * tiny, 1.0) < 0
    for bound, power, moved in ((-1.0, 2000, -LARGEST), (1.0, -2000, 5e-324), (-1.0, -2000, 0)):
        assert hull.in_given_units(bound, power) == moved
    assert 5 * hull.CHECK.bound <= hull.CLAIM.bound  # what one machine claims, another proves


# ---- hull.py: the second route


def unimodular(rng: np.random.Generator, m: int) -> tuple[np.ndarray, np.ndarray]:
    """An integer matrix with an integer inverse."""
    A, R = np.eye(m), np.eye(m)
    for _ in range(4 * m):
        i, j = rng.choice(m, 2, replace=False)
        A[i] += A[j]
        R[:, j] -= R[:, i]
    return A, R


@SEEDS
def test_the_error_of_an_inverse_covers_its_roundings(seed):
    """Each entry of A has three behind it, a product and its sum k, the identity one; and of a
    coarse inverse the error is not rounded down.
    """
    rng = np.random.default_rng(seed)
    A, R = unimodular(rng, 4)
    A_error = rng.integers(0, 9, (4, 4)) * 2.0**-50
    sizes, blurred = (exact((B @ np.abs(R)).sum(axis=1)) for B in (np.abs(A), A_error))
    least, most = (
        max(n * size + error for size, error in zip(sizes, blurred, strict=True))
        for n in (gamma(8) + gamma(5), gamma(14))
    )
    assert least < Fraction(hull.identity_error(A, A_error, R)) < most * NOISE
    for size in (1e-7, 1e-2):
        A, R = rng.random((16, 16)), rng.normal(size=(16, 16)) * size
        rows, columns = enumerate(exact(A)), exact(R.T)
        largest = max(
            sum(abs((i == j) - dot(row, column)) for j, column in enumerate(columns))
            for i, row in rows
        )
        assert covers(hull.identity_error(A, np.zeros((16, 16)), R), largest, largest)


@SEEDS
def test_a_correction_is_bounded_with_room_for_sums_over_it(seed):
    rng = np.random.default_rng(seed)
    R, right, loss = rng.normal(size=(7, 5)), rng.random(5), float(rng.random() / 2)
    least = [sum(map(abs, row)) * Fraction(right.max()) / (1 - Fraction(loss)) for row in exact(R)]
    for bound, needed in zip(hull.correction_bounds(R, right, loss), least, strict=True):
        assert needed * (1 + Fraction(5, 10**10)) < Fraction(float(bound)) < needed * NOISE
    vanishing = hull.correction_bounds(R * 1e-300, right * 1e-300, loss)
    assert (vanishing > np.finfo(float).tiny).all()


@pytest.mark.parametrize(
    "features", [Unbounded(), Ellipsoid([1.0, 2.0, 4.0]), Ellipsoid([1.0, 2.0, 4.0], centred=True)]
)
def test_what_a_simplex_must_absorb_covers_its_roundings(features, monkeypatch):
    """v and, after a normalisation, the rounding of the equations that it has to solve."""
    layer, weights = simplex_layer()
    calls = spied(monkeypatch, hull._System, "_correction")
    assert system(layer, features, weights).simplex_bound(hull.CHECK) <= 0
    _, E, E_error, miss = calls[0]
    assert E.shape == (4, 2 if features.own_coordinates and features.centred else 3)
    for column in range(E.shape[1]):
        size = dot(exact(weights), exact(np.abs(E[:, column])))
        blurred = dot(exact(weights), exact(E_error[:, column]))
        assert (blurred > 0) == features.own_coordinates
        least, most = gamma(6) * size + blurred, gamma(7) * size + blurred
        assert least < Fraction(float(miss[column])) < most * NOISE


@pytest.mark.parametrize("power", [-60, -20, 0])
def test_a_correction_is_as_large_as_the_residual_makes_it(power, monkeypatch):
    """Beside an exact inverse."""
    layer, weights = simplex_layer()
    found = system(layer, Unbounded(), weights)
    miss = np.array([0.25, 1.0, 0.5]) * 2.0**power
    delta = found._correction(found.D, np.zeros((4, 3)), miss)
    scale = np.abs(found.D).max(axis=0)
    A = np.vstack([-found.D.T / scale[:, None], np.ones(4)])
    needed = np.abs(np.linalg.inv(A)).sum(axis=1) * (miss / scale).max()
    np.testing.assert_allclose(delta, needed, rtol=1e-8)
    assert (delta >= needed * (1 - 1e-12)).all()
    calls = spied(monkeypatch, hull, "identity_error")
    assert found._correction(found.D, np.full((4, 3), 2.0**-30), miss) is not None
    blurred = 2.0**-30 / np.append(scale, np.inf)[:, None]  # the last row is of ones
    np.testing.assert_array_equal(calls[0][1], np.broadcast_to(blurred, (4, 4)))


def test_too_few_blocking_classes_or_dependent_ones_make_no_simplex():
    layer, weights = simplex_layer()
    few, all_ = (system(layer, Unbounded(), some) for some in (weights[:3], weights))
    rows = [[0.0, 0.0], [1.0, 1.0], [-1.0, -1.0], [2.0, 2.0]]
    flat = system(SoftmaxLayer(rows), Unbounded(), [0.25, 0.5, 0.25])
    lost = np.where(np.eye(3), 2.0**-1000, 1.0)  # a column that scaling has nearly lost
    for found, E, error in (
        (few, few.D, 0.0),
        *((all_, all_.D * column, 0.0) for column in lost),
        (flat, flat.D, 0.0),
        (flat, flat.D[:, :1] * 2.0**-1000, 0.0),
        (flat, flat.D[:, :1], 0.5),  # could be anything
    ):
        assert found._correction(E, np.full(E.shape, error), np.zeros(E.shape[1])) is None


def test_weights_may_be_used_up_by_their_correction_and_no_more(monkeypatch):
    layer, weights = simplex_layer()
    found = system(layer, Unbounded(), weights)
    for factor, proven in ((1.0, True), (1.001, False)):
        for least in range(4):
            delta = weights * 0.1
            delta[least] = weights[least] * factor
            monkeypatch.setattr(hull._System, "_correction", lambda *_, delta=delta: delta)
            assert (found.simplex_bound(hull.CHECK) <= 0) is proven


def test_constants_move_with_the_weights():
    """What correcting weights can add to the biases' sum, exactly; nothing if none is better."""
    layer, weights = simplex_layer(bias=[1.0, 0.0, 3.0, 1.0, -1.0])
    held = system(layer, Unbounded(), weights)
    delta, none = np.array([1.0, 2.0, 4.0, 8.0]) / 64, np.zeros(1)
    moved = held.constant + delta @ np.abs(held.c)
    assert held._shifted_constant(held.c, none, delta) == moved + held.constant_error
    other, error = held.c * 2 + 1, np.full(1, 2.0**-50)
    found = Fraction(held._shifted_constant(other, error, delta))
    plain = sum(exact(weights * other)) + sum(exact(delta * np.abs(other)))
    size = sum(exact((weights + delta) * np.abs(other)))
    blurred = sum(exact(weights + delta)) * Fraction(2.0**-50) + Fraction(held.constant_error)
    assert gamma(7) * size < found - plain - blurred < gamma(9) * size
    held.level = True
    for constants, errors, low, high in (
        (held.c, none, 0, 0), (other, none, 0, 0), (held.c - 50, none, -np.inf, -38),
        (other, error, 5e-324, np.inf), (other, error * [0, 1, 0, 0], 5e-324, np.inf),
    ):  # fmt: skip
        assert low <= held._shifted_constant(constants, errors, delta) <= high


def test_over_a_box_what_does_not_vanish_is_widened_by_the_correction(monkeypatch):
    layer, weights = simplex_layer(offset=0.5, bias=[-8.0, 0, 0, 0, 0])
    calls = spied(monkeypatch, Box, "support_bound")
    held = system(layer, Box(2.0), weights)
    delta = np.array([1.0, 2.0, 4.0, 8.0]) / 64
    monkeypatch.setattr(hull._System, "_correction", lambda *_: delta)
    bound = held.simplex_bound(hull.CHECK)
    _, v, error = calls[-1]
    assert v.tolist() == [0, 0, 0.5]
    assert error.tolist() == [0, 0, held.v_error[2] + delta @ np.abs(held.D[:, 2])]
    moved = Fraction(float(delta @ np.abs(held.c)))
    right = 2 * (Fraction(0.5) + Fraction(float(error[2]))) - 8 + moved
    assert right / 2 <= Fraction(bound) < right / 2 * (1 - Fraction(1, 10**8))
    # a right side that is 0 but for the roundings of its sum is no proof
    monkeypatch.setattr(hull._System, "_correction", lambda *_: np.zeros(4))
    held.level, held.v_error, held.constant_error = False, np.zeros(3), 0.0
    for slack, proven in ((gamma(7), False), (gamma(12), True)):
        held.constant = float(-1 - 2 * slack)
        assert (held.simplex_bound(hull.CHECK) <= 0) is proven


@pytest.mark.parametrize(("tiny", "proven"), [(5e-324, False), (0.0, True)])
def test_a_column_that_underflows_after_a_normalisation_does_not_vanish(tiny, proven):
    """The gain of 5e-324 leaves nothing of it in float64; in truth it is where the class wins."""
    for row, features in (
        ([0.25], Ellipsoid([1.0, tiny])),
        ([0.25, -0.25], Ellipsoid([1.0, tiny, tiny], centred=True)),
    ):
        layer = SoftmaxLayer([[0.0] * (len(row) + 1), [1.0, *row], [-1.0, *row]])
        bound = certify_unargmaxable(layer, features, 0, BOTH, np.array([0.5, 0.5]))
        assert (bound <= 0) is proven


# ---- hull.py: what is evidence, and the third route


@pytest.mark.parametrize("rows", [1.0, 2.0**34])
@pytest.mark.parametrize("features", [Unbounded(), Box(2.0**-34)], **by_kind)
def test_a_claim_about_weights_is_proven_or_not(features, rows):
    """Weights in any unit, which only nearly solve the system, one of them zero; a column that all
    rows share.
    """
    layer, weights = simplex_layer()
    layer = SoftmaxLayer(np.column_stack([layer.W, np.full(5, 7.0)]) * rows)
    own, rivals, weights = np.zeros(5, int), np.array([1, 2, 3, 4, 1]), np.append(weights, 0.0)
    for unit in (2.0**-900 / 3, 1 / 3, 2.0**900 / 3):
        given = (layer, features, own, rivals, weights * unit)
        assert certify_comparisons(*given) == 0
        assert prove_comparisons(*given, 0.0)
        for margin in (-np.inf, -1.0, 1.0, np.inf, np.nan):
            assert not prove_comparisons(*given, margin)
    assert not prove_comparisons(layer, features, own, rivals, -weights, 0.0)
    assert certify_unargmaxable(layer, features, 0, rivals[:3], weights[:3]) > 0
    assert certify_unargmaxable(layer, features, 5, rivals, weights) == np.inf


def test_weights_are_finite_and_some_comparisons_have_one():
    layer, own, rivals = SoftmaxLayer(np.eye(4)), np.array([0, 3]), np.array([3, 0])
    plain, unsigned = np.array([0.0, 1.0]), own.astype("u4")
    halves, none = np.array([Fraction(0), Fraction(1, 2)]), np.array([Fraction(0)] * 2)
    for good in ((own, rivals, plain), (unsigned, rivals, plain), (own, rivals, halves)):
        assert hull.are_weights(layer, *good)
    for wrong in (
        *((own[None], rivals[None], plain[None]), (own[:1], rivals, plain)),
        *((own, rivals[:1], plain), (own, rivals, plain[:1]), (own[:0], rivals[:0], plain[:0])),
        *((own * 1.0, rivals, plain), (own, rivals * 1.0, plain), (own, own[[1, 1]], plain)),
        *((own - 1, rivals, plain), (own, rivals - 1, plain)),
        *((own + own // 3, rivals, plain), (own, rivals + rivals // 3, plain)),
        *((own, rivals, np.where(plain, np.nan, 0)), (own, rivals, np.where(plain, np.inf, 0))),
        *((own, rivals, plain - [1, 0]), (own, rivals, plain * 0), (own, rivals, none)),
        *((own, rivals, halves - Fraction(1, 4)), (own, rivals, plain.astype(object))),
    ):
        assert not hull.are_weights(layer, *wrong), wrong
        assert certify_comparisons(layer, Unbounded(), *wrong) == np.inf


@SEEDS
def test_a_bound_in_fractions_is_that_of_the_best_corner(seed):
    """A margin that is less by 2^-200 is not proven."""
    rng = np.random.default_rng(seed)
    W, b = rng.integers(-9, 10, (5, 2)).astype(float), rng.integers(-9, 10, 5).astype(float)
    layer, box = SoftmaxLayer(W, b), Box(2.0, low=-1.0)
    above, below = np.array([0, 0, 1, 2, 0]), np.array([1, 2, 3, 4, 1])
    weights = [Fraction(int(n), 7) for n in rng.integers(1, 9, 5)]
    logits = [exact_logits(layer, [x, y]) for x in (-1.0, 2.0) for y in (-1.0, 2.0)]
    leads = [dot(weights, (y[p] - y[q] for p, q in zip(above, below, strict=True))) for y in logits]
    best = max(leads) / sum(weights)
    given = (layer, box, above, below, weights)
    assert hull.exact_comparisons(*given, best)
    assert not hull.exact_comparisons(*given, best - Fraction(1, 2**200))
    assert hull.exact_comparisons(*given) == (best <= 0)


def test_a_near_tie_is_one_beside_the_sizes_that_cancel():
    """Biases of a million whose mean is below the class's by an ulp: fractions prove it."""
    rng = np.random.default_rng(0)
    tried = 0
    for _ in range(150):
        weights, b = rng.random(6), rng.normal(size=7) * 1e6
        mean = dot(exact(weights), exact(b[1:])) / sum(exact(weights))
        b[0] = np.nextafter(float(mean), -np.inf)
        layer = SoftmaxLayer(np.zeros((7, 2)), b)
        tried += system(layer, Box(1.0), weights).constant > 0
        assert certify_unargmaxable(layer, Box(1.0), 0, np.arange(1, 7), weights) <= 0
    assert tried > 5, "no sum came out on the wrong side: nothing was tested"


@pytest.mark.parametrize("features", [Box(1.0), Ball(1.0), Ellipsoid([1.0, 1.0])], **by_kind)
def test_a_tie_of_sizes_below_the_roundings_is_one(features):
    """Rows that differ by what a bound on underflow exceeds: fractions prove it."""
    layer = SoftmaxLayer([[1.0, 1e-300], [1.0, 0.0], [1.0, 2e-300]])
    assert certify_unargmaxable(layer, features, 0, BOTH, np.ones(2)) == 0


HALVES = [0.5, 0.5]


@pytest.mark.parametrize(
    ("W", "b", "features", "weights"),
    [
        # a bias of 5e-324 times a weight below one, beside rivals of equal bias
        ([[0], [-1], [1]], [5e-324, 0, 5e-324], Box(1.0), HALVES),
        # v vanishes in the first feature alone: the other has reach
        ([[0, 0], [-1, -1], [1, -1]], [-0.005, 0, 0], Ellipsoid([0.01, 0.01], radius=1.0), HALVES),
        # the shift alone decides, by less than the error of v
        ([[0, 0], [-1 - 4 * U, 1], [1, -1]], None,
         Ellipsoid([0.0, 0.0], [1.0, 1 + 2 * U], radius=1.0), HALVES),
        ([[0, 0], [-1e-200, -1], [-1e-200, 1]], None, Ellipsoid([0, 1], [1e-200, 0], radius=1.0),
         HALVES),
        # gain times radius is below the range of floats, and outweighs the bias
        ([[0], [-1e160], [-1e160]], [0, 1e-200, 1e-200], Ellipsoid([2.0**-500], radius=1e-200),
         HALVES),
        ([[0, 0], [-1, 0], [-1, 0]], None, Ellipsoid([5e-324, 1.0], radius=0.1), HALVES),
        # less the mean, the last feature or one of the others alone tells
        ([[0, 0, 0], [-1, 0, -1e-200], [1, 0, -1e-200]], None,
         Ellipsoid([1.0, 1.0, 1e-200], radius=1.0, centred=True), HALVES),
        ([[0, 0, 0], [-1, -1e-200, 0], [1, -1e-200, 0]], None,
         Ellipsoid([1.0, 1e-200, 1.0], radius=1.0, centred=True), HALVES),
        # the shift is added
        ([[0, 0], [-1, -1], [-1, 1]], None, Ellipsoid([0.0, 1.0], [1.0, 0.0], radius=1.0), HALVES),
        # by 1e-330: a product with the bound, the radius or the shift vanishes
        ([[1, 1e-300], [1, 0], [1, 0]], None, Box((1.0, 1e-30)), HALVES),
        ([[1, 1e-300], [1, 0], [1, 0]], None, Ellipsoid([1e30, 1.0], radius=1e-30), HALVES),
        ([[1, 1e-300], [1, 0], [1, 0]], None, Ellipsoid([1.0, 0.0], [0.0, 1e-30], radius=1.0),
         HALVES),
        # in their unit the rows are equal; at the right corner the class leads by 2^-997
        ([[2.0**60, 2.0**-1015], [2.0**60, 0.0], [2.0**60, 0.0]], [-0.75 * 2.0**-995, 0, 0],
         Box(2.0**20), [1.0, 2.0**-100]),
        # a gain that no unit of the large shift holds
        ([[0, 0], [-(2.0**-1026), 2.0**41], [2.0**-1023, -(2.0**50)]], None,
         Ellipsoid([0.0, 2.0**-60 * (1 + 2 * U)], [2.0**1000, 0.0], radius=1.0), [1.0, 2.0**-9]),
    ],
)  # fmt: skip
def test_a_class_that_wins_by_a_hair_is_not_unargmaxable(W, b, features, weights):
    layer, weights = SoftmaxLayer(np.array(W, float), b), np.array(weights)
    assert scan(layer, [0], features=features).evidence(0).verdict == "argmaxable"
    assert certify_unargmaxable(layer, features, 0, BOTH, weights) > 0
    assert not prove_comparisons(layer, features, np.zeros(2, int), BOTH, weights, 0.0)


# ---- checker.py


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bias", [False, True])
def test_a_logits_error_covers_its_roundings(dtype, bias):
    """Norms 5 and 13, bias 7: d products, the bias, two for what becomes of a margin."""
    W = np.array([[3.0, 4, 0], [1, 0, 0], [0, 0, 2]], dtype)
    checker = Checker(SoftmaxLayer(W, np.array([1, -7, 2], dtype) if bias else None), Box(100.0))
    points, size = np.array([[0.0, 5, 12]], dtype), Fraction(5 * 13 + 7 * bias)
    error = Fraction(float(checker._error(points, np.zeros(1), dtype)[0]))
    assert gamma(6, dtype) * size <= error <= gamma(7, dtype) * size * NOISE
    moved = Fraction(float(checker._error(points, np.array([0.5]), dtype)[0]))
    assert moved >= error + 5 * Fraction(1, 2)
    vanishing = checker._error(points * 0, np.zeros(1), dtype)[0]
    assert bias or vanishing >= 4 * (3 + 4) * np.finfo(dtype).tiny
    doubt = Fraction(float(checker._doubt(points)[0]))
    wide = Fraction(float(checker._error(points, np.zeros(1), np.float64)[0]))
    assert 4 * wide <= doubt <= 16 * wide
    assert (checker.ahead(1, points[0]), checker.ahead(1, points[0] * 100)) == (2, 2)
    look = checker.look_error(points)
    assert (look is None) == (dtype == np.float64)
    assert look is None or look[0] == pytest.approx(2.125 * float(error), rel=1e-15)
    # half the largest float is the first that may be too large for a sum
    for share, bounded in ((0.0, True), (0.45, True), (0.5, False), (0.75, False)):
        largest = np.array([share * np.finfo(dtype).max, 0], dtype)
        checker = Checker(SoftmaxLayer(np.zeros((2, 1), dtype), largest), Box(1.0))
        usual = rounding.gamma(5, dtype) * float(largest[0]) + rounding.underflow(5, dtype)
        error = checker._error(np.zeros((1, 1)), np.zeros(1), dtype)[0]
        assert error == (usual if bounded else np.inf)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_margins_of_integers_are_exact_but_for_their_bound(dtype):
    """A claim leaves an eighth of what each of two logits may be off by for other machines."""
    rng = np.random.default_rng(0)
    W, b = rng.integers(-9, 10, (30, 5)).astype(dtype), rng.integers(-9, 10, 30).astype(dtype)
    layer, points = SoftmaxLayer(W, b), rng.integers(-9, 10, (30, 5)).astype(dtype)
    checker = Checker(layer, Box(100.0))
    Y = points @ W.T + b
    own = Y.diagonal().copy()
    np.fill_diagonal(Y, -np.inf)
    lead = (own - Y.max(axis=1)).astype(float)
    error = checker._error(points, np.zeros(30), dtype)
    for claims, factor in ((False, 2), (True, 2.125)):
        margins = checker._margins(points, np.arange(30), dtype, claims)
        np.testing.assert_allclose(margins, lead - factor * error, rtol=1e-15)
    x, checker = np.array([1.0]), Checker(SoftmaxLayer([[3 / 16], [1 / 16]]), Unbounded())
    error = 2 * checker._error(x[None], np.zeros(1), np.float64)[0]  # the point may be rounded, too
    for claimed, factor in ((5e-324, 2.125), (0.1, 2.0)):
        margin = Fraction(checker.margin(wins(0), x, claimed))
        assert abs(Fraction(1, 8) - Fraction(factor * float(error)) - margin) < error / 32


NARROW, WIDE = np.float32([[1.0], [0.0]]), np.array([[1.0], [0.0]])


@pytest.mark.parametrize(
    ("W", "b", "point", "narrow"),
    [
        (NARROW, None, NARROW[:1], True), (NARROW, np.float32([0, 1]), NARROW[:1], True),
        (NARROW, np.array([0.0, 1.0]), NARROW[:1], False), (WIDE, None, NARROW[:1], False),
        (NARROW, None, WIDE[:1], False),
    ],
)  # fmt: skip
def test_float32_is_taken_where_it_holds_every_number(W, b, point, narrow):
    assert Checker(SoftmaxLayer(W, b), Box(1.0)).is_narrow(point) is narrow


def test_margins_are_in_the_units_of_the_layer():
    W, x = np.array([[3.0, 4], [0, 1]]), np.array([[0.5, 0.25]])
    plain = Checker(SoftmaxLayer(W), Ball(1.0))
    for rows, points in ((2.0**300, 1.0), (2.0**-300, 2.0**100), (1.0, 2.0**-200)):
        scaled = Checker(SoftmaxLayer(W * rows), Ball(points))
        found, ours = scaled.certify(x * points, np.array([0])), plain.certify(x, np.array([0]))
        np.testing.assert_allclose(found, ours * rows * points, rtol=1e-6)
        exactly = scaled.margin(wins(0), x[0] * points, np.inf)
        assert exactly == 2.25 * rows * points
        assert scaled.exact_margin(wins(0), x[0] * points) == Fraction(exactly)
        radius = scaled.radius(np.array([0]), np.array([2.25 * rows * points]))
        np.testing.assert_allclose(radius, 2.25 * points / 10, rtol=1e-6)


def test_logits_by_tiles_are_those_of_one_product(monkeypatch):
    monkeypatch.setattr(checking, "TILE_BYTES", 1)
    rng = np.random.default_rng(3)
    W, b = rng.integers(-99, 100, (700, 2)).astype(float), rng.integers(-99, 100, 700).astype(float)
    classes = np.array([0, 255, 256, 257, 511, 512, 699])
    points = rng.integers(-99, 100, (7, 2)).astype(float)
    Y = points @ W.T + b
    rest = Y.copy()
    rest[np.arange(7), classes] = -np.inf
    checker = Checker(SoftmaxLayer(W, b), Unbounded())
    own, best = checker._own_and_best(points, classes, np.float64)
    assert own.tolist() == Y[np.arange(7), classes].tolist()
    assert best.tolist() == rest.max(axis=1).tolist()
    assert checking._float_logits(checker.layer, points[0]).tolist() == Y[0].tolist()
    assert checker._norms[0] == pytest.approx(np.linalg.norm(W, axis=1).max(), rel=1e-8)


def test_many_rivals_far_behind_are_no_close_ones():
    """One is an ulp behind, a thousand by one and more: those need no fractions."""
    W = np.vstack([[0.1, 0.2], np.nextafter([0.1, 0.2], -1), np.full((1000, 2), -1.0)])
    margin = Checker(SoftmaxLayer(W), Box(1.0)).certify(np.ones((1, 2)), np.array([0]))[0]
    assert 0 < margin < 1e-15
    close = SoftmaxLayer(np.vstack([W[:1], np.tile(W[1], (1000, 1))]))
    assert not Checker(close, Box(1.0)).certify(np.ones((1, 2)), np.array([0]))[0] > 0


HUGE = Fraction(10) ** 400
PLANE = [[1.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("W", "features", "point", "margin", "positive"),
    [
        ([[1 + 2 * U, 0.0], [1.0, 0.0]], Box(1.0), [0.5, 0.0], U, True),
        # no more than a sign, and the largest float, where no other holds them
        (PLANE, Box(1.0), [Fraction(1, 2**1200), Fraction(0)], 5e-324, True),
        ([[0.5], [1.0]], Unbounded(), [-HUGE], LARGEST, True),
        (PLANE, Box(1.0), [0.0, 0.5], 0, False),
        *((PLANE, Box(1.0), z, -np.inf, False) for z in ([0.5], [np.nan, 0.0], [0.5, np.inf])),
        (PLANE, Box(1.0), [2.0, 0], -np.inf, False),
    ],
)
def test_exact_margins_are_floats_and_claim_no_more_than_a_sign_below(
    W, features, point, margin, positive
):
    checker, point = Checker(SoftmaxLayer(W), features), np.array(point)
    assert checker.margin(wins(0), point) == margin
    assert (checker.exact_margin(wins(0), point) is not None) is positive


@pytest.mark.parametrize("margin", [1.0, 3e-300, 7e-310, 5e-324])
def test_a_radius_is_never_rounded_up(margin):
    rng = np.random.default_rng(0)
    for row in rng.normal(size=(20, 3)):
        checker = Checker(SoftmaxLayer(np.array([row, 0 * row])), Unbounded())
        radius = Fraction(float(checker.radius(np.array([0]), np.array([margin]))[0]))
        share = radius**2 * 4 * dot(exact(row), exact(row)) / Fraction(margin) ** 2
        assert share <= 1
        assert margin < 1e-300 or share >= 1 - Fraction(1, 10**7)


@pytest.mark.parametrize(
    ("W", "b", "features", "margin", "radius"),
    [
        ([[0.25], [0.0]], None, Unbounded(), 1.0, 2.0),
        # nothing is near, and nobody is there to beat
        ([[0.0], [0.0]], None, Unbounded(), 1.0, np.inf),
        ([[1.0]], None, Unbounded(), np.inf, np.inf),
        # 1e600, in a layer whose rows and biases no unit suits
        ([[1e-300], [0.0]], [1e300, 0.0], Box(1.0), 1e300, LARGEST),
    ],
)
def test_a_radius_is_a_quotient_by_the_norms(W, b, features, margin, radius):
    checker = Checker(SoftmaxLayer(W, b), features)
    found = checker.radius(np.array([0]), np.array([margin]))[0]
    assert found <= radius
    assert found == pytest.approx(radius, rel=1e-8)


NORMS = SoftmaxLayer([[3.0, 4.0], [-3.0, 4.0]])
FLAT = SoftmaxLayer([[0.0], [0.0]], [1.0, 0.0])
NO_UNIT = SoftmaxLayer([[1e308] * 4, [5e-324, 0.0, 0.0, 0.0]])  # norms that no float holds
LARGE_BIAS = SoftmaxLayer([[1e-300], [0.0]], [1e300, 0.0])


@pytest.mark.parametrize(
    ("layer", "t", "margin", "proven", "refused"),
    [
        # norms are rounded up by 1e-9 of them, and 2^-31 is for other machines
        (NORMS, 0, 1, (0.0, 0.1 * (1 - 7e-10)), (0.1 * (1 - 3e-10), 0.1, np.inf)),
        (FLAT, 0, 1, (0.0, 1.0, np.inf), ()),
        *((NO_UNIT, t, 1, (0.0,), (5e-324, 1.0, np.inf)) for t in (0, 1)),
        (LARGE_BIAS, 0, Fraction(1e300), (), (np.inf,)),
    ],
)
def test_a_margin_proves_a_radius_below_its_quotient(layer, t, margin, proven, refused):
    checker = Checker(layer, Box(1.0) if layer is LARGE_BIAS else Unbounded())
    for radius in proven:
        assert checker.proves_radius(t, radius, Fraction(margin))
    for radius in (*refused, -5e-324, -1.0):
        assert not checker.proves_radius(t, radius, Fraction(margin))


# ---- features


def drawn_set(rng: np.random.Generator, kind: str, power: int, d: int):
    """A set whose numbers are of size 2^power, and nearly cancel in some coordinates."""
    gain = np.ldexp(rng.normal(size=d) * rng.choice([1, 1e-9, 0], d), power)
    bias = np.ldexp(rng.normal(size=d) * rng.choice([1, 1e-9, 0], d), power)
    if kind == "box":
        return Box(tuple(np.abs(gain) + np.abs(bias) + 2.0**-1000), low=tuple(-np.abs(bias)))
    if kind == "ball":
        return Ball(float(np.ldexp(1.5, power)))
    return Ellipsoid(gain, bias, radius=1.5, centred=kind == "centred")


KINDS = st.sampled_from(["box", "ball", "norm", "centred"])


@given(st.integers(0, 2**32 - 1), KINDS, st.sampled_from([0, -60, -540, -960, 400]))
@settings(max_examples=100)
def test_what_a_set_says_in_floats_covers_what_it_is_in_fractions(seed, kind, power):
    """The support of v, the features at a point, and the equations that v has to solve, down to
    where their products vanish.
    """
    rng, d = np.random.default_rng(seed), 5
    features = drawn_set(rng, kind, power, d)
    own, rows = np.ldexp(rng.normal(size=(2, d)), rng.integers(-70, 1, d))
    D, differences = own - rows, [a - b for a, b in zip(exact(own), exact(rows), strict=True)]
    slip = np.abs(D) * 2 * U
    reach, size = features.support_bound(D, slip)
    room = Fraction(reach) + gamma(d + 8) * Fraction(size)
    assert features.support_nonpositive(*features.reduce_exactly(differences, -room))
    low = Fraction(reach) - Fraction(size) * Fraction(1, 10**6) - Fraction(2) ** -1000
    assert not features.support_nonpositive(*features.reduce_exactly(differences, -low))
    Z = rng.normal(size=(3, d))
    X, moved = features.features_at(Z)
    for z, x, most in zip(Z.tolist(), X.tolist(), moved.tolist(), strict=True):
        truth = features.features_exactly(exact(z))
        off = sum((Fraction(a) - b) ** 2 for a, b in zip(x, truth, strict=True))
        assert off <= Fraction(most) ** 2
    c = -(D @ getattr(features, "bias", np.zeros(d)))
    E, error, shifted, off = features.equalities(D[None], c[None])
    left = features.reduce_exactly(differences, Fraction(c))[1]
    assert abs(Fraction(shifted[0]) - left) <= Fraction(off[0])
    few = np.broadcast_to(error, E.shape)[0] + rounding.gamma(8) * np.abs(E[0])
    gain = exact(getattr(features, "gain", np.ones(d)))
    columns = [g * value for g, value in zip(gain, differences, strict=True)]
    if getattr(features, "centred", False):
        columns = [value - columns[-1] for value in columns[:-1]]
    for value, most, true in zip(E[0].tolist(), few.tolist(), columns, strict=True):
        assert abs(Fraction(value) - true) <= Fraction(most)


@pytest.mark.parametrize("error", [0.0, 2.0**-50])
def test_the_reach_of_rows_that_hardly_differ_is_not_rounded_down(error):
    """Products are 1 but for rounding: nothing but that is left less their mean."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        v = rng.uniform(1, 2, 7)
        features = Ellipsoid(1 / v, radius=1.0, centred=True)
        v_error = error * rng.choice([0, 1], 7)
        moved = exact(v + v_error * rng.choice([-1, 1], 7))
        products = [a * b for a, b in zip(exact(features.gain), moved, strict=True)]
        mean = sum(products) / 7
        reach = Fraction(features.support_bound(v, v_error)[0])
        size = sum((value - mean) ** 2 for value in products)
        assert size <= reach**2 <= 10**4 * (size + Fraction(2.0**-100))


@pytest.mark.parametrize("gain", [2.0**-60, 1.0, 2.0**60])
def test_what_features_lose_is_covered(gain):
    """A mean of d, a difference, a product and the shift: d + 3 roundings; below the normal range a
    mean and a difference, times the gain, and their product.
    """
    features, d = Ellipsoid(np.ones(4), [8.0, 0.0, 0.0, 0.0], centred=True), 4
    moved = features.features_at(np.array([[3.0, 4.0, 0.0, 0.0]]))[1][0]
    assert covers(moved, gamma(d + 3) * (8 + 2 * 5), gamma(d + 4) * (8 + 2 * 5))
    g = Fraction(gain)
    moved = Ellipsoid([gain, 0, 0, 0], centred=True).features_at(np.zeros((1, 4)))[1][0]
    assert covers(moved, 2 * (1 + 2 * g) * TINY, 16 * (2 + g) * TINY)


def test_what_a_reach_loses_below_the_normal_range_is_covered():
    """Three roundings in each coordinate and one with the radius; d in each of two products."""
    none, first, last = np.zeros(4), np.eye(4)[0], np.eye(4)[3]
    features = Ellipsoid(first * 2.0**-60, centred=True)
    assert features.support_bound(none, none) == features.support_bound(last, none) == (0, 0)
    reach = features.support_bound(first * 2.0**-1074, none)[0]
    assert covers(reach, (2 * 2 * 3 + 1) * TINY, (2 * (2 * 12 + 4) + 4) * TINY)
    assert covers(Ellipsoid(none, last).support_bound(none, none)[0], 8 * TINY, 32 * TINY)
    assert covers(Ball(2.0**-560).support_bound(first * 2.0**-560, none)[0], TINY, 8 * TINY)


@pytest.mark.parametrize("centred", [False, True])
def test_equations_after_a_normalisation_cover_their_roundings(centred):
    """A product (two, and a difference, where centred), and the difference of rows behind it, where
    anything moves; constants take d products and a sum.
    """
    gain, bias, d = np.array([2.0, 4.0, 0.0, 8.0]), np.array([-1.0, 9.0, 2.0, 0.0]), 4
    D, c = np.array([[1.0, 0.0, 5.0, 0.0], [0.0, 0.0, 0.0, 3.0]]), np.array([1.0, 7.0])
    E, error, shifted, off = Ellipsoid(gain, bias, centred=centred).equalities(D, c)
    products, lost = np.abs(D * gain), [3, 0, 0, 9]  # 1 + gain, of what moves
    for n, k in np.ndindex(2, d - centred):
        size, below = Fraction(products[n, k]), lost[k]
        if centred:
            size, below = size + Fraction(products[n, 3]), below + lost[3]
        both = gamma(1 + centred) * size
        assert covers(error[n, k], both + below * TINY, both + 4 * below * TINY)
    assert E.tolist() == ((D * gain)[:, :3] - (D * gain)[:, 3:] if centred else D * gain).tolist()
    assert shifted.tolist() == [1 - 1 + 10, 7]
    assert covers(off[0], gamma(d + 2) * (1 + 10) + gamma(1), gamma(d + 2) * (1 + 10 + 1))
    assert covers(off[1], d * (1 + 2) * TINY, 4 * d * (1 + 9) * TINY)
    assert not Ellipsoid(gain, [0.0, 9.0, 0.0, 0.0]).equalities(D, c)[3].any()
