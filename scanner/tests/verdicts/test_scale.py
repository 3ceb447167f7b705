"""The ends of float64: what once was proven falsely, or crashed, or stayed undecided."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom.certifying.checker import Checker, wins
from softgeom.certifying.verdict import Comparisons, Witness
from softgeom.features import Ball, Box, Ellipsoid, Unbounded
from softgeom.layer import SoftmaxLayer
from softgeom.proving.exact import decide_exactly
from softgeom.scaling import Scaled, in_units
from softgeom.scanner import scan


@pytest.mark.parametrize("rows", [1.0, 2.0**60])  # in units of which the bias is no number
@pytest.mark.parametrize(
    "features", [Box(1.0), Ball(1.0), Unbounded(), Ellipsoid([1.0])], ids=lambda f: f.kind
)
def test_the_smallest_bias_wins_at_the_origin(features, rows):
    found = scan(SoftmaxLayer([[0.0], [rows], [-rows]], [5e-324, 0.0, 0.0]), features=features)
    assert found.table.verdict.tolist() == ["argmaxable"] * 3
    assert found.verify()


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

    def features(unit: float):
        sets = {"box": Box(unit), "ball": Ball(unit), "norm": Ellipsoid(gain * unit)}
        return sets.get(kind, Unbounded())

    def verdicts(W, b, unit: float) -> list[str]:
        found = scan(SoftmaxLayer(W, b if biased else None), features=features(unit))
        assert found.verify()
        assert not found.counts["undecided"]
        return found.table.verdict.tolist()

    expected = verdicts(W.astype(float), b.astype(float), 1.0)
    assert verdicts(W.astype(dtype), b.astype(dtype), 1.0) == expected
    moved = np.ldexp(W.astype(float), rows), np.ldexp(b.astype(float), rows + points)
    assert verdicts(*moved, 2.0**points) == expected


def test_units_change_no_number_and_nothing_comes_back_better():
    for W, rows in (([[1.0], [-(2.0**70)]], 71), ([[2.0**70], [-1.0]], 71), ([[2.0**7], [0.0]], 0)):
        layer = SoftmaxLayer(W, [3.0, 0.0])
        units = in_units(layer, Box(2.0**30))
        assert (units.rows, units.points, units.margins) == (rows, 31, rows + 31)
        np.testing.assert_array_equal(np.ldexp(units.layer.W, rows), layer.W)
        np.testing.assert_array_equal(np.ldexp(units.layer.bias, rows + 31), layer.bias)
        assert units.features == Box(0.5)
    unbounded = in_units(SoftmaxLayer([[2.0**70]], [2.0**200]), Unbounded())
    assert (unbounded.rows, unbounded.points) == (71, 130)
    free = SoftmaxLayer([[2.0**70]])
    assert (in_units(free, Unbounded()).rows, in_units(free, Unbounded()).points) == (71, 0)
    kept = in_units(SoftmaxLayer(np.float32([[2.0**70], [2.0**-60]])), Box(1.0))
    assert (kept.layer.W.dtype, kept.rows) == (np.float32, 71)
    for lost in (SoftmaxLayer([[2.0**70], [5e-324]]), SoftmaxLayer([[2.0**70]], [5e-324])):
        assert in_units(lost, Box(1.0)).layer is lost
    units = Scaled(SoftmaxLayer([[1.0, 1.0]]), Box(1.0), 40, -1100, 1000)
    moved, kept = units.points_to(np.array([[2.0**-80, 1.0], [1.0, 2.0**500]]))
    assert kept.tolist() == [False, True]
    assert moved[1].tolist() == [2.0**-1000, 2.0**-500]
    for margin, back in (
        (1.0, 2.0**-1060), (-1.0, -(2.0**-1060)), (2.0**-50, 5e-324), (-(2.0**-50), 0.0),
        (0.0, 0.0), (np.inf, np.inf), (-np.inf, -np.inf), (3 * 2.0**-15, 2.0**-1074),
    ):  # fmt: skip
        assert units.margin_back(margin) == back
    exact = np.array([Fraction(1, 3), Fraction(2)], dtype=object)
    assert units.point_back(np.array([0.5, -1.0])).tolist() == [2.0**999, -(2.0**1000)]
    assert units.point_back(exact).tolist() == [Fraction(2**1000, 3), Fraction(2**1001)]
    assert units.point_back(np.array([2.0**100, 3.0])).tolist() == [2**1100, 3 * 2**1000]
    large = Scaled(units.layer, units.features, 40, 1000, 1000)
    assert large.margin_back(5e-324) == 5e-324  # no more than a sign, in any unit
    assert large.margin_back(2.0**-1073) == 2.0**-33
    here = Scaled(units.layer, units.features)
    assert here.point_back(exact) is exact
    assert here.margin_back(0.75) == 0.75


def test_a_rival_that_rounding_hides_is_found_in_fractions():
    b = np.full(300, -5e-324)
    b[[0, 299]] = 0.0, 5e-324
    checker = Checker(SoftmaxLayer(np.ones((300, 2)), b), Box(low=[1.0, 1.0], high=[2.0, 2.0]))
    for t, kind in ((0, Comparisons), (299, Witness)):
        evidence, _ = decide_exactly(checker, wins(t), np.array([t * 300 + 1]))
        assert isinstance(evidence, kind)
