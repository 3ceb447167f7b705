"""A scan without bounds against Qhull, another algorithm, where features are few."""

from __future__ import annotations

import pytest
from qhull import winners_by_hull

from softgeom.bottleneck import Unbounded, scan
from softgeom.bottleneck.examples import normal_layer


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_qhull_and_scan_name_the_same_winners(d, bias):
    layer = normal_layer(40, d, bias=bias, seed=d)
    table = scan(layer, features=Unbounded()).table
    assert set(table["class"][table.verdict == "argmaxable"]) == winners_by_hull(layer)
