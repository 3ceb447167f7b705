"""The ends of float64: what once was proven falsely, or crashed, or stayed undecided."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom.bottleneck.scanner import scan
from softgeom.features import Ball, Box, Ellipsoid, Unbounded
from softgeom.layer import SoftmaxLayer

SQUARE = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0, 0]])
CENTRE_LOSES = ["argmaxable"] * 4 + ["unargmaxable"]


@pytest.mark.parametrize(
    "features", [Box(1.0), Ball(1.0), Unbounded(), Ellipsoid([1.0])], ids=lambda f: f.kind
)
def test_the_smallest_bias_wins_at_the_origin(features) -> None:
    found = scan(SoftmaxLayer([[0.0], [1.0], [-1.0]], [5e-324, 0.0, 0.0]), features=features)
    assert found.table.verdict.tolist() == ["argmaxable"] * 3
    assert found.verify()


@pytest.mark.parametrize(
    ("rows", "features"),
    [
        (1e-165, Box(1e-165)),
        (1e100, Box(100.0)),
        (1.0, Ball(1e160)),
        (1.0, Box(1e308)),
        (1e300, Box(1e308)),
        (1e20, Ball(1.0)),
        (1e-18, Ellipsoid([1.0, 1.0])),
    ],
    ids=str,
)
def test_a_square_is_a_square_at_any_scale(rows: float, features) -> None:
    found = scan(SoftmaxLayer(SQUARE * rows), features=features)
    assert found.table.verdict.tolist() == CENTRE_LOSES
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
def test_verdicts_depend_on_neither_dtype_nor_unit(seed, kind, dtype, rows, points, biased) -> None:
    """float16's numbers in any dtype, and times powers of two: logits from 1e-300 to 1e300."""
    rng = np.random.default_rng(seed)
    W, b = rng.normal(size=(8, 2)).astype(np.float16), rng.normal(size=8).astype(np.float16)
    gain = rng.normal(size=2).astype(np.float16).astype(float)

    def features(unit: float):
        sets = {
            "box": Box(unit),
            "ball": Ball(unit),
            "unbounded": Unbounded(),
            "norm": Ellipsoid(gain * unit),
        }
        return sets[kind]

    def verdicts(W, b, unit: float) -> list[str]:
        found = scan(SoftmaxLayer(W, b if biased else None), features=features(unit))
        assert found.verify()
        assert not found.counts["undecided"]
        return found.table.verdict.tolist()

    expected = verdicts(W.astype(float), b.astype(float), 1.0)
    assert verdicts(W.astype(dtype), b.astype(dtype), 1.0) == expected
    moved = np.ldexp(W.astype(float), rows), np.ldexp(b.astype(float), rows + points)
    assert verdicts(*moved, 2.0**points) == expected
