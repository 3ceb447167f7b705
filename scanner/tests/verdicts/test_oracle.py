"""Every verdict on tiny layers against enumeration; and an attack on every bound."""

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
from softgeom.features import Box, Ellipsoid, Unbounded
from softgeom.layer import SoftmaxLayer
from softgeom.rounding import shrink
from softgeom.scanner import scan
from softgeom.searching.twins import find_twins


@pytest.mark.parametrize("feature_set", FEATURE_SETS)
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


@pytest.mark.parametrize("feature_set", FEATURE_SETS)
def test_larger_integer_layers_leave_nothing_undecided(feature_set):
    rng = np.random.default_rng(7)
    for d in (5, 12):
        tiny = tiny_layer(rng, feature_set, "integers", classes=60, dimension=d)
        found = scan(tiny.layer, features=tiny.features)
        assert not found.counts["undecided"]
        assert found.verify()


def test_an_oracle_for_the_oracle():
    """Known verdicts: a square with its centre, a point of its edge, a corner twice, a copy."""
    W = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [0, 0], [1, 0], [2, 0]])
    zero = np.zeros(7, np.int64)
    wins, never, box = "argmaxable", "unargmaxable", ("box", -np.ones(2, int), np.ones(2, int))
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


def verdicts(W, b, region, unit: int = 1) -> list[str]:
    return [truth.verdict for truth in enumerate_verdicts(W, b, region, unit=unit)]


def test_biases_at_the_end_of_float64_prove_no_falsehood():
    """Their difference overflows, while rows and features make up for it: 2^1100 - 1.7e308 wins."""
    layer = SoftmaxLayer(np.array([[2.0**900], [0.0]]), np.array([-1.7e308, 1.7e308]))
    assert certify_unargmaxable(layer, Box(2.0**200), 0, np.array([1]), np.ones(1)) == np.inf
    found = scan(layer, features=Box(2.0**200))
    assert found.counts["argmaxable"] == 2
    assert found.verify()


def test_what_a_scan_proves_in_its_own_units_verifies_in_those_of_the_layer():
    """Biases near the ends of float64; a witness on the boundary of a ball."""
    W = np.array(
        [
            [-1.0, 0], [-1, 0], [-2, -1], [-2, -1], [0, 0], [-2, 0], [-1, -1], [1, -2], [-2, 2],
            [1, 0], [0, -1], [-1, 2],
        ]
    )  # fmt: skip
    b = np.array([-1.0, 0, 2, 2, -1, -2, 2, -2, 0, -1, 1, 2])
    for unit in (2.0**1000, 2.0**-1074):
        assert scan(SoftmaxLayer(W, b * unit), features=Unbounded()).verify()
    edge = SoftmaxLayer(np.array([[2.0], [0.0], [-1.0]]), np.array([0.0, 2.0, 2.0]) * 2.0**1000)
    found = scan(edge, features=Ellipsoid([2.0], [-1.0], radius=1.0))
    assert found.counts["argmaxable"] == 2
    assert found.verify()


def test_rows_that_a_layer_norm_makes_equal_are_decided_by_the_smallest_bias():
    """A gain of (1, 2) turns (-2, -1) into a constant: nothing but fractions sees it vanish."""
    layer = SoftmaxLayer([[-1.0, 1.0], [1.0, 2.0], [2.0, 1.0]], [0.0, 2.0**-1022, 0.0])
    found = scan(layer, features=Ellipsoid([1.0, 2.0], radius=3.0, centred=True))
    assert found.table.verdict.tolist() == ["unargmaxable", "argmaxable", "argmaxable"]
    assert found.verify()


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


@pytest.mark.parametrize("feature_set", FEATURE_SETS)
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
