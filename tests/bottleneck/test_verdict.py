"""Evidence is checked without a solver, rigorously; evidence that was tampered with is rejected."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom.bottleneck.certifying.checker import Checker, wins
from softgeom.bottleneck.certifying.hull import certify_captivity
from softgeom.bottleneck.certifying.kernel import certify_evidence
from softgeom.bottleneck.certifying.verdict import Captors, EvidenceError, Twin, Witness
from softgeom.layer import Ball, Box, Ellipsoid, SoftmaxLayer, Unbounded
from softgeom.rounding import gamma

# A square around the origin: four corners win, the centre is inside their hull.
SQUARE = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0], [0.0, 0.0]])
EVERYWHERE = [Box(100.0), Ball(3.0), Unbounded(), Ellipsoid([1.0, 2.0])]


def exact_margin(layer: SoftmaxLayer, t: int, x: list[Fraction]) -> Fraction:
    """The margin in fractions, straight from the definition."""

    def logit(i: int) -> Fraction:
        total = sum(
            (Fraction(float(w)) * v for w, v in zip(layer.W[i], x, strict=True)), Fraction(0)
        )
        return total + (0 if layer.b is None else Fraction(float(layer.b[i])))

    return min(logit(t) - logit(i) for i in range(layer.classes) if i != t)


@pytest.mark.parametrize("features", EVERYWHERE, ids=lambda f: f.describe())
def test_corner_wins_and_centre_is_captive_in_every_feature_set(features):
    layer = SoftmaxLayer(SQUARE)
    assert certify_evidence(layer, features, 0, Witness(np.array([0.5, 0.5]))) > 0
    assert certify_evidence(layer, features, 4, Captors(np.arange(4), np.full(4, 0.25))) <= 0


def test_diagonal_of_two_corners_needs_exact_arithmetic():
    """The centre lies on the hull of two opposite corners: no full simplex shows it."""
    layer = SoftmaxLayer(SQUARE)
    assert certify_captivity(layer, Unbounded(), 4, np.array([0, 3]), np.array([0.5, 0.5])) <= 0
    assert (
        certify_captivity(layer, Unbounded(), 4, np.array([0, 2]), np.array([0.5, 0.5])) == np.inf
    )


@given(st.integers(0, 10**6), st.booleans(), st.sampled_from(["float32", "float64"]))
@settings(max_examples=60)
def test_certified_margin_is_below_the_exact_one(seed, bias, dtype):
    rng = np.random.default_rng(seed)
    layer = SoftmaxLayer(
        rng.normal(size=(7, 3)).astype(dtype), rng.normal(size=7).astype(dtype) if bias else None
    )
    points = (rng.normal(size=(7, 3)) * 10.0 ** rng.integers(-6, 2)).astype(dtype)
    certified = Checker(layer, Box(1e4)).certify(points, np.arange(7))
    for t in range(7):
        exact = exact_margin(layer, t, [Fraction(float(v)) for v in points[t]])
        assert Fraction(float(certified[t])) <= exact if np.isfinite(certified[t]) else exact <= 0
        if exact > 0:
            assert certified[t] > 0, "a true witness was turned away"


@pytest.mark.parametrize("centred", [False, True])
def test_ellipsoid_margin_is_below_the_exact_one(centred):
    rng = np.random.default_rng(1)
    gain, shift = rng.normal(size=4), rng.normal(size=4)
    layer, features = SoftmaxLayer(rng.normal(size=(6, 4))), Ellipsoid(gain, shift, centred=centred)
    u = rng.normal(size=(6, 4)) / 3
    certified = Checker(layer, features).certify(u, np.arange(6))
    for t in range(6):
        exact_u = [Fraction(float(v)) for v in u[t]]
        mean = sum(exact_u) / 4 if centred else Fraction(0)
        x = [
            Fraction(s) + Fraction(g) * (v - mean)
            for s, g, v in zip(shift, gain, exact_u, strict=True)
        ]
        assert Fraction(float(certified[t])) <= exact_margin(layer, t, x)
        assert float(exact_margin(layer, t, x)) - certified[t] < 1e-12


def test_tampered_evidence_is_rejected():
    layer = SoftmaxLayer(SQUARE, tokens=["a", "b", "c", "d", "middle"])
    forged = [
        (4, Witness(np.array([0.1, 0.1]))),
        (0, Captors(np.array([1, 2, 3]), np.full(3, 1 / 3))),
        (4, Captors(np.arange(4), np.array([0.25, 0.25, 0.25, -0.25]))),
        (4, Captors(np.array([0, 1, 2, 3, 0]), np.array([0.25, 0.25, 0.25, 0.25, -0.1]))),
        (4, Captors(np.arange(4), np.full(4, np.nan))),
        (4, Captors(np.array([0, 4]), np.array([0.0, 1.0]))),  # a class is no captor of itself
        (4, Captors(np.array([0, 99]), np.array([0.5, 0.5]))),
        (4, Captors(np.zeros(0, int), np.zeros(0))),
        (0, Twin(1)),
        (0, Twin(0)),
    ]
    for t, evidence in forged:
        with pytest.raises(EvidenceError, match=f"Class {t} "):
            certify_evidence(layer, Box(100.0), t, evidence)


def test_rounded_weights_do_not_prove_a_falsehood():
    """Outside the hull by 1e-9: weights that fit to 1e-8 must be turned away."""
    W = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5 + 1e-9]])
    weights = np.array([0.0, 0.5, 0.5])
    for features in (Box(100.0), Ball(10.0), Unbounded()):
        assert certify_captivity(SoftmaxLayer(W), features, 3, np.arange(3), weights) > 0
    # The correction that would close the gap needs more than the tiny third weight has to give.
    assert (
        certify_captivity(
            SoftmaxLayer(W), Unbounded(), 3, np.arange(3), np.array([1e-12, 0.5, 0.5])
        )
        > 0
    )
    inside = SoftmaxLayer(np.vstack([W[:3], [[0.5, 0.5 - 1e-9]]]))
    near = np.array([1e-9, 0.5, 0.5 - 1e-9])
    assert certify_captivity(inside, Unbounded(), 3, np.arange(3), near) <= 0


@pytest.mark.parametrize(
    "features", [Box(2.0), Ball(2.0), Ellipsoid([1.0, 1.0], radius=2.0)], ids=lambda f: f.describe()
)
def test_captivity_bound_is_the_dual_value(features):
    """A bias 1 below a copy's surrounding: the bound is the gap plus the support of v."""
    layer = SoftmaxLayer([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.1]], [0.0, 0.0, -1.0])
    bound = certify_captivity(layer, features, 2, np.array([0, 1]), np.array([1.0, 1.0]))
    assert bound == pytest.approx(0.1 * 2.0 - 1.0, abs=1e-8)


def test_biases_no_worse_prove_nothing_and_a_face_at_zero_needs_one_sign():
    layer = SoftmaxLayer([[1.0], [-1.0], [0.0]], [0.0, 0.0, 1e-12])
    assert certify_captivity(layer, Box(100.0), 2, np.array([0, 1]), np.array([0.5, 0.5])) > 0
    level = SoftmaxLayer([[1.0], [-1.0], [0.0]], [0.5, 0.5, 0.5])
    assert certify_captivity(level, Box(100.0), 2, np.array([0, 1]), np.array([0.5, 0.5])) <= 0
    """x >= 0: a class below a rival in every coordinate never wins, though a vertex."""
    layer = SoftmaxLayer([[1.0, 1.0], [0.5, 0.25]])
    assert certify_captivity(layer, Box(100.0, low=0.0), 1, np.array([0]), np.ones(1)) <= 0
    assert certify_captivity(layer, Box(100.0), 1, np.array([0]), np.ones(1)) > 0


def test_gamma_is_the_classical_bound_and_shapes_are_checked():
    u = 2.0**-53
    assert gamma(100) == pytest.approx(100 * u / (1 - 100 * u), rel=1e-8)
    assert gamma(100) >= 100 * u / (1 - 100 * u)
    assert gamma(2**25, np.float32) == np.inf
    everywhere = Checker(SoftmaxLayer(SQUARE), Unbounded())
    assert everywhere.certify(np.array([[np.inf, 1.0]]), np.array([0]))[0] == -np.inf
    with pytest.raises(ValueError, match=r"2 witnesses need shape \(2, 2\)"):
        Checker(SoftmaxLayer(SQUARE), Box()).certify(np.zeros((2, 3)), np.arange(2))


@pytest.mark.parametrize(
    ("rows", "bias", "point"),
    [
        # beyond the largest float: cut off there, the first class would win
        ([[-1e-300], [0.0]], [1e9, 0.0], Fraction(10) ** 400),
        # below the smallest: rounded to 0, the first class would win
        ([[-1e160], [0.0]], [1e-300, 0.0], Fraction(2) ** -1076),
        ([[-1e300], [0.0]], [1e-20, 0.0], Fraction(2) ** -1040 + Fraction(2) ** -1075),
    ],
)
def test_a_point_that_no_float_holds_is_not_taken_for_the_nearest_one(rows, bias, point):
    layer = SoftmaxLayer(rows, bias)
    truth = Fraction(bias[0]) + Fraction(rows[0][0]) * point
    for features in (Unbounded(), Box(1.0)):
        if not features.contains_exactly([point]):
            continue
        margin = Checker(layer, features).margin(wins(0), np.array([point], dtype=object))
        assert margin <= 0 or Fraction(margin) <= truth
