"""The ends of float64: what once was proven falsely, or crashed, or stayed undecided."""

from __future__ import annotations

import numpy as np
import pytest

from softgeom.bottleneck.scanner import scan
from softgeom.features import Ball, Box, Ellipsoid, Unbounded
from softgeom.layer import SoftmaxLayer

SQUARE = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0, 0]])
CENTRE_LOSES = ["argmaxable"] * 4 + ["unargmaxable"]


@pytest.mark.parametrize("features", [Box(1.0), Ball(1.0), Unbounded(), Ellipsoid([1.0])], ids=lambda f: f.kind)
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
