"""The second routes themselves: a complex step against a difference quotient, autograd against
finite differences, the comparison's columns.
"""

from __future__ import annotations

import numpy as np
import pytest

from compendium import second_routes
from softgeom.margins.jacobian import residual_map

RNG = np.random.default_rng(0)


def test_complex_step_is_the_slope():
    past = np.array([-1.0, 0.4, 2.0])

    def residual(x):
        a = np.exp(1.3 * x * past)
        return x - a @ past / a.sum()

    quotient = (residual(0.3 + 1e-6) - residual(0.3 - 1e-6)) / 2e-6
    assert second_routes.slope_by_complex_step(0.3, past, 1.3) == pytest.approx(quotient, abs=1e-8)


def test_autograd_is_the_derivative_of_the_strict_layer():
    X, W_Q, W_K = RNG.standard_normal((4, 3)), *0.7 * RNG.standard_normal((2, 2, 3))
    W_V = RNG.standard_normal((3, 3))
    full = second_routes.attention_jacobian(X, W_Q, W_K, W_V, "strict")
    for j in range(4):
        for c in range(3):
            step = np.zeros_like(X)
            step[j, c] = 1e-6
            moved = residual_map(X + step, W_Q, W_K, W_V) - residual_map(X - step, W_Q, W_K, W_V)
            assert full[:, :, j, c] == pytest.approx(moved / 2e-6, abs=1e-7)


def test_comparison_finds_the_wrong_form_and_no_other():
    layers = [
        (
            RNG.standard_normal((5, 3)),
            *0.7 * RNG.standard_normal((2, 2, 3)),
            RNG.standard_normal((3, 3)),
        )
        for _ in range(3)
    ]
    found = second_routes.compare_blocks(layers)
    gaps = found.formulas.set_index("formula")["largest_gap"]
    wrong = gaps.index.str.contains("as printed")
    assert (gaps[wrong] > 1e-3).all()
    assert (gaps[~wrong] < 1e-12).all()
    assert found.above_diagonal == 0.0
    assert found.determinant < 1e-10
    assert found.smallest_inclusive_volume > 0


def test_stacks_have_the_volume_of_their_closed_forms():
    stacks = second_routes.compare_stacks(3)
    for found in stacks.values():
        assert np.linalg.slogdet(found.jacobian)[1] == pytest.approx(sum(found.terms), abs=1e-10)
    standard, modified = stacks.values()
    assert standard.terms[-1] == 0.0
    assert abs(modified.terms[-1]) > 1e-6


def test_only_a_definite_coupling_removes_the_boundary():
    found = second_routes.negative_couplings(np.random.default_rng(0), trials=5, T=6, d=3)
    assert found["line"] >= 1.0
    assert found["definite"] >= 1.0 - 1e-12
    assert found["skew"] == pytest.approx(-3.0)  # 1 - tr S M with S = v v^T, v = (1, 1) / sqrt 2
