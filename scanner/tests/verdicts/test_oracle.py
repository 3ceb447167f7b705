"""Every verdict on tiny layers against enumeration; an attack on every bound; and the ends of
float64: what once was proven falsely, or crashed, or stayed undecided.
"""

from fractions import Fraction

import numpy as np
import pytest
from enumeration import enumerate_verdicts
from hypothesis import given, settings
from hypothesis import strategies as st
from near_ties import false_proofs, false_witnesses, without_bounds
from tiny_layers import FAMILIES, FEATURE_SETS, tiny_layer
from wide_layers import padded

from softgeom.certifying.checker import Checker, wins
from softgeom.certifying.hull import certify_unargmaxable
from softgeom.certifying.verdict import Comparisons, Witness
from softgeom.features import Ball, Box, Ellipsoid, Unbounded
from softgeom.layer import SoftmaxLayer
from softgeom.proving.exact import decide_exactly
from softgeom.rounding import shrink
from softgeom.scaling import Scaled, in_units
from softgeom.scanner import scan
from softgeom.searching.twins import find_twins

by_set = pytest.mark.parametrize("feature_set", FEATURE_SETS)


@by_set
@given(seed=st.integers(0, 10**9), family=st.sampled_from(FAMILIES))
@settings(max_examples=30)
def test_verdicts_are_those_of_enumeration(feature_set, seed, family):
    rng = np.random.default_rng(seed)
    size = dict(classes=int(rng.integers(2, 8)), dimension=int(rng.integers(1, 4)))
    tiny = tiny_layer(rng, feature_set, family, **size)
    found = scan(tiny.layer, features=tiny.features)
    assert found.verify()
    for finding, truth in zip(found.findings, tiny.truths(), strict=True):
        assert finding.evidence.verdict == truth.verdict
        if truth.margin is not None and abs(finding.margin) > 5e-324:
            best, won = truth.margin * Fraction(2) ** tiny.margins, truth.verdict == "argmaxable"
            assert finding.margin <= best if won else finding.margin >= best


@by_set
def test_larger_integer_layers_leave_nothing_undecided(feature_set):
    rng = np.random.default_rng(7)
    for d in (5, 12):
        tiny = tiny_layer(rng, feature_set, "integers", classes=60, dimension=d)
        found = scan(tiny.layer, features=tiny.features)
        assert not found.counts["undecided"]
        assert found.verify()


@by_set
def test_layers_of_many_classes_go_down_every_route_to_the_same_verdicts(feature_set):
    rng = np.random.default_rng(20 + FEATURE_SETS.index(feature_set))
    tried, methods = 0, set()
    while tried < 3:
        tiny = tiny_layer(rng, feature_set, str(rng.choice(FAMILIES)))
        wide = padded(rng, tiny, int(rng.integers(65, 200)))
        if wide is None:
            continue
        tried += 1
        found = scan(wide.layer, features=tiny.features)
        assert found.verify()
        verdicts = [finding.evidence.verdict for finding in found.findings]
        assert verdicts == [truth.verdict for truth in wide.truths()]
        methods |= {finding.method for finding in found.findings}
    assert methods - {"twin", "look"}


def test_an_oracle_for_the_oracle():
    """Known verdicts: a square with its centre, a point of its edge, a corner twice, a copy."""
    W = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [0, 0], [1, 0], [2, 0]])
    zero = np.zeros(7, np.int64)
    wins, never, box = "argmaxable", "unargmaxable", ("box", -np.ones(2, int), np.ones(2, int))

    def verdicts(W, b, region, unit: int = 1) -> list[str]:
        return [truth.verdict for truth in enumerate_verdicts(W, b, region, unit=unit)]

    for region in (box, ("unbounded",), ("ball", Fraction(1))):
        assert verdicts(W, zero, region) == [*[wins] * 4, never, never, wins]
        assert verdicts(W[[0, 0, 1]], zero[:3], region) == ["tied", "tied", wins]
        assert verdicts(W[[0, 0, 1]], np.array([0, -1, 0]), region) == [wins, never, wins]
    assert enumerate_verdicts(W, zero, box)[6].margin == 1  # at (1, 0): 2 against 1 of three others
    # A bias of 1/unit lifts the centre; against two rows of length 2 a class needs |x| > 1/2, and
    # not |x| = 1/2.
    assert verdicts(W, np.array([0, 0, 0, 0, 1, 0, 0]), box, unit=2**1074)[4] == wins
    pair = np.array([[2, 0], [0, 0]]), np.array([0, 1])
    for square, verdict in ((Fraction(1, 4), never), (Fraction(26, 100), wins)):
        assert verdicts(*pair, ("ball", square)) == [verdict, wins]


# ---- The attack: near ties in exact fractions. Whatever a checker accepts must be true, for any
# rounding.


@pytest.mark.parametrize("seed", [0, 1])
def test_no_near_tie_deceives_the_checkers(seed):
    assert false_proofs(150, seed) == 0
    assert false_witnesses(200, seed) == 0


def test_without_rounding_bounds_the_attack_succeeds():
    """With every bound set to zero the attack finds false proofs and false witnesses."""
    with without_bounds():
        assert false_proofs(150, 0) > 0
        assert false_witnesses(200, 0) > 0
    assert false_proofs(150, 0) == 0


# ---- The ends of float64

WINS, NEVER = "argmaxable", "unargmaxable"
INTEGERS = np.array(
    [
        [-1.0, 0], [-1, 0], [-2, -1], [-2, -1], [0, 0], [-2, 0], [-1, -1], [1, -2], [-2, 2],
        [1, 0], [0, -1], [-1, 2],
    ]
)  # fmt: skip
BIASES = np.array([-1.0, 0, 2, 2, -1, -2, 2, -2, 0, -1, 1, 2])
SETS = [Box(1.0), Ball(1.0), Unbounded(), Ellipsoid([1.0])]


@pytest.mark.parametrize(
    ("W", "b", "features", "verdicts"),
    [
        # the smallest bias wins at the origin, also beside rows in whose unit it is no number
        *(([[0], [1], [-1]], [5e-324, 0, 0], features, [WINS] * 3) for features in SETS),
        *(([[0], [2.0**60], [-(2.0**60)]], [5e-324, 0, 0], f, [WINS] * 3) for f in SETS),
        # biases whose difference overflows, while rows and features make up for it
        ([[2.0**900], [0]], [-1.7e308, 1.7e308], Box(2.0**200), [WINS] * 2),
        # what is proven in a scan's own units verifies in those of the layer
        *((INTEGERS, BIASES * unit, Unbounded(), None) for unit in (2.0**1000, 2.0**-1074)),
        # a witness on the boundary of a ball
        ([[2], [0], [-1]], np.array([0, 2.0, 2.0]) * 2.0**1000,
         Ellipsoid([2.0], [-1.0], radius=1.0), [NEVER, WINS, WINS]),
        # a gain of (1, 2) turns (-2, -1) into a constant: only fractions see it vanish
        ([[-1, 1], [1, 2], [2, 1]], [0, 2.0**-1022, 0],
         Ellipsoid([1.0, 2.0], radius=3.0, centred=True), [NEVER, WINS, WINS]),
    ],
)  # fmt: skip
def test_verdicts_at_the_ends_of_float64(W, b, features, verdicts):
    found = scan(SoftmaxLayer(np.array(W, float), b), features=features)
    assert found.verify()
    assert verdicts is None or found.table.verdict.tolist() == verdicts


def test_biases_at_the_end_of_float64_prove_no_falsehood():
    layer = SoftmaxLayer(np.array([[2.0**900], [0.0]]), np.array([-1.7e308, 1.7e308]))
    assert certify_unargmaxable(layer, Box(2.0**200), 0, np.array([1]), np.ones(1)) == np.inf


@pytest.mark.parametrize("scale", [1.0, 5e-324, 1e-160, 1e300])
@pytest.mark.parametrize(
    "features",
    [
        Box(100.0), Box((1.0,) * 3, low=(float(np.nextafter(1, 0)),) * 3), Box(5e-324),
        Ball(5e-324), Ball(1.7e308), Unbounded(),
    ],
    ids=["box", "one ulp wide", "smallest box", "smallest ball", "largest ball", "unbounded"],
)  # fmt: skip
def test_sizes_at_the_ends_of_float64_stop_no_scan_of_many_classes(features, scale):
    rng = np.random.default_rng(7)
    for bias in (None, 1.0, 5e-324):
        W = rng.integers(-4, 5, (66, 3)) * scale
        b = None if bias is None else rng.integers(-2, 3, 66) * bias
        # every second class suffices: it competes with all
        found = scan(SoftmaxLayer(W, b), np.arange(0, 66, 2), features=features)
        assert found.verify()
        assert found.counts["undecided"] == 0


@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["box", "ball", "unbounded", "norm"]),
    dtype=st.sampled_from([np.float16, np.float32, np.longdouble]),
    rows=st.integers(-500, 480),
    points=st.integers(-480, 480),
    biased=st.booleans(),
)
@settings(max_examples=40)
def test_verdicts_depend_on_neither_dtype_nor_unit(seed, kind, dtype, rows, points, biased):
    """float16's numbers in any dtype, and times powers of two: logits from 1e-300 to 1e300."""
    rng = np.random.default_rng(seed)
    W, b = rng.normal(size=(8, 2)).astype(np.float16), rng.normal(size=8).astype(np.float16)
    gain = rng.normal(size=2).astype(np.float16).astype(float)

    def verdicts(W, b, unit: float) -> list[str]:
        sets = {"box": Box(unit), "ball": Ball(unit), "norm": Ellipsoid(gain * unit)}
        layer = SoftmaxLayer(W, b if biased else None)
        found = scan(layer, features=sets.get(kind, Unbounded()))
        assert found.verify()
        assert not found.counts["undecided"]
        return found.table.verdict.tolist()

    expected = verdicts(W.astype(float), b.astype(float), 1.0)
    assert verdicts(W.astype(dtype), b.astype(dtype), 1.0) == expected
    moved = np.ldexp(W.astype(float), rows), np.ldexp(b.astype(float), rows + points)
    assert verdicts(*moved, 2.0**points) == expected


@pytest.mark.parametrize(
    ("W", "b", "features", "rows", "points"),
    [
        *(
            (W, [3.0, 0.0], Box(2.0**30), rows, 31)
            for W, rows in (
                ([[1], [-(2.0**70)]], 71),
                ([[2.0**70], [-1]], 71),
                ([[2.0**7], [0]], 0),
            )
        ),
        (np.float32([[2.0**70], [2.0**-60]]), None, Box(1.0), 71, 0),
        # unbounded features have the scale of the bias
        ([[2.0**70]], [2.0**200], Unbounded(), 71, 130),
        ([[2.0**70]], None, Unbounded(), 71, 0),
        # no unit holds both
        ([[2.0**70], [5e-324]], None, Box(1.0), 0, 0),
        ([[2.0**70]], [5e-324], Box(1.0), 0, 0),
    ],
)
def test_units_change_no_number(W, b, features, rows, points):
    layer = SoftmaxLayer(np.asarray(W, None if hasattr(W, "dtype") else float), b)
    units = in_units(layer, features)
    assert (units.rows, units.points, units.margins) == (rows, points, rows + points)
    assert units.layer.W.dtype == layer.W.dtype
    np.testing.assert_array_equal(np.ldexp(units.layer.W.astype(float), rows), layer.W)
    np.testing.assert_array_equal(np.ldexp(units.layer.bias, rows + points), layer.bias)
    if isinstance(features, Box) and points:
        assert units.features == Box(0.5)


def test_nothing_comes_back_better_from_other_units():
    units = Scaled(SoftmaxLayer([[1.0, 1.0]]), Box(1.0), 40, -1100, 1000)
    moved, kept = units.points_to(np.array([[2.0**-80, 1.0], [1.0, 2.0**500]]))
    assert kept.tolist() == [False, True]
    assert moved[1].tolist() == [2.0**-1000, 2.0**-500]
    large, here = (Scaled(units.layer, units.features, *powers) for powers in ((40, 1000), ()))
    for scaled, margin, back in (
        (units, 1.0, 2.0**-1060), (units, -1.0, -(2.0**-1060)), (units, 2.0**-50, 5e-324),
        (units, -(2.0**-50), 0.0), (units, 0.0, 0.0), (units, np.inf, np.inf),
        (units, -np.inf, -np.inf), (units, 3 * 2.0**-15, 2.0**-1074),
        # no more than a sign, in any unit
        (large, 5e-324, 5e-324), (large, 2.0**-1073, 2.0**-33), (here, 0.75, 0.75),
    ):  # fmt: skip
        assert scaled.margin_back(margin) == back
    exact = np.array([Fraction(1, 3), Fraction(2)], dtype=object)
    assert units.point_back(np.array([0.5, -1.0])).tolist() == [2.0**999, -(2.0**1000)]
    assert units.point_back(exact).tolist() == [Fraction(2**1000, 3), Fraction(2**1001)]
    assert units.point_back(np.array([2.0**100, 3.0])).tolist() == [2**1100, 3 * 2**1000]
    assert here.point_back(exact) is exact


@pytest.mark.parametrize(("t", "kind"), [(0, Comparisons), (299, Witness)])
def test_a_rival_that_rounding_hides_is_found_in_fractions(t, kind):
    b = np.full(300, -5e-324)
    b[[0, 299]] = 0.0, 5e-324
    checker = Checker(SoftmaxLayer(np.ones((300, 2)), b), Box(low=[1.0, 1.0], high=[2.0, 2.0]))
    assert isinstance(decide_exactly(checker, wins(t), np.array([t * 300 + 1]))[0], kind)


def test_margins_among_the_subnormal_numbers_are_rounded_down():
    """Two thirds of 2^-1060 lie below the nearest float: no lower bound."""
    third = Fraction(2) ** -1060 * Fraction(2, 3)
    layer = SoftmaxLayer(np.array([[0.0], [3.0]]), np.array([2.0**-1060, 0.0]))
    point = np.array([Fraction(2) ** -1060 / 9], dtype=object)
    margin = Checker(layer, Box(1.0)).margin(wins(0), point, np.inf)
    assert margin == np.nextafter(float(third), 0)
    assert Fraction(margin) < third < Fraction(float(third))
    assert float(shrink(2 / 3, -1060)) == margin
    assert float(shrink(-2 / 3, -1060)) == -margin
    assert shrink([1.5, np.inf], 1024).tolist() == [np.finfo(float).max, np.inf]


@pytest.mark.parametrize(
    ("features", "shift"), [(Box(1.0), 0.0), (Ellipsoid.layer_norm(np.ones(3)), 2.0**16)]
)
def test_twins_are_found_across_blocks_of_rows(features, shift):
    """The search takes 4096 rows at a time; after a LayerNorm a shift of all entries is none."""
    W, b = np.random.default_rng(0).normal(size=(5000, 3)), np.zeros(5000)
    W[4095] = 1.0, -3.0, 7.5  # their mean is rounded
    W[0, 0] = 0.0
    W[[4096, 4999]] = W[[4095, 0]] + shift * (np.arange(2) < 1)[:, None]
    W[4999, 0], b[4999] = -0.0, -1.0  # two signs, one number
    assert find_twins(SoftmaxLayer(W, b), features) == ({4095: 4096, 4096: 4095}, {4999: 0})
