"""Thin, sharp, exact weights."""

from fractions import Fraction

import numpy as np
import pytest
from definition import dot

from softgeom.certifying.hull import certify_unargmaxable, has_slack
from softgeom.certifying.verdict import Captors, Finding
from softgeom.features import Ball, Box, Ellipsoid, FeatureSet, Unbounded
from softgeom.layer import SoftmaxLayer
from softgeom.proving.refine import make_exact, refine, solve_by_lifting
from softgeom.scanner import scan

NORM = Ellipsoid.layer_norm(np.linspace(0.5, 2.0, 6))
SETS = [Box(100.0), Ball(3.0), Unbounded(), NORM, Ellipsoid.rms_norm(np.linspace(-0.5, 2.0, 6))]
by_set = pytest.mark.parametrize("features", SETS, ids=lambda f: f.kind)


def mixed_layer(*, bias: bool = False) -> SoftmaxLayer:
    """Thirty rows on six features, the last six of them rounded mixtures of the others."""
    rng = np.random.default_rng(3)
    W = rng.normal(size=(30, 6)).astype(np.float32)
    W[24:] = (rng.dirichlet(np.ones(24), size=6) @ W[:24]).astype(np.float32)
    b = rng.normal(size=30).astype(np.float32) * 0.01 - np.repeat([0, 1], [24, 6])
    return SoftmaxLayer(W, b if bias else None)


def unargmaxable(layer: SoftmaxLayer, features: FeatureSet) -> list[Finding]:
    return [f for f in scan(layer, features=features).findings if isinstance(f.evidence, Captors)]


@by_set
def test_without_bias_captors_are_a_simplex_with_a_residual_at_rounding(features):
    layer = mixed_layer()
    found = unargmaxable(layer, features)
    assert len(found) >= 6
    for f in found:
        D = layer.W[f.index].astype(float) - layer.W[f.evidence.rivals].astype(float)
        E = features.equalities(D, np.zeros(len(D)))[0]
        assert len(D) == np.count_nonzero(E.any(axis=0)) + 1
        assert np.abs(f.evidence.weights @ E).max() < 1e-14
        assert not has_slack(layer, features, f.index, f.evidence.rivals, f.evidence.weights)


def test_thick_weights_become_thin_and_stay_a_proof():
    layer = mixed_layer()
    for t in range(24, 30):
        weights = np.full(24, 1 / 24)
        D = layer.W[t].astype(float) - layer.W[:24].astype(float)
        A = np.vstack([D.T, np.ones(24)])
        weights += np.linalg.lstsq(A, np.append(np.zeros(6), 1.0) - A @ weights, rcond=None)[0]
        if weights.min() > 0:
            finer, bound = refine(layer, Unbounded(), t, Captors(np.arange(24), weights))
            assert (len(finer.rivals), bound) == (7, 0.0)
            break
    else:
        pytest.fail("no class lies deep enough inside")


def test_room_is_left_as_it_is_and_lifting_solves_what_fractions_solve():
    layer = mixed_layer(bias=True)
    f = next(f for f in unargmaxable(layer, Box(1.0)) if f.index >= 24)
    assert refine(layer, Box(1.0), f.index, f.evidence)[0] is f.evidence
    exact = np.array([Fraction(w) for w in f.evidence.weights.tolist()], dtype=object)
    assert certify_unargmaxable(layer, Box(1.0), f.index, f.evidence.rivals, exact) <= 0
    rng = np.random.default_rng(0)
    A = [[Fraction(int(v), 7) for v in row] for row in rng.integers(-99, 100, (9, 9))]
    x = [Fraction(int(p), int(q)) for p, q in rng.integers(1, 10**6, (9, 2)) - [500_000, 0]]
    y = [dot(row, x) for row in A]
    assert solve_by_lifting(A, y) == x
    with pytest.raises(ValueError, match="singular"):
        solve_by_lifting([A[0]] * 9, y)
    with pytest.raises(ValueError, match="square"):
        solve_by_lifting(A[:8], y[:8])


@by_set
def test_exact_weights_hold_to_the_last_bit(features):
    layer = mixed_layer()
    f = unargmaxable(layer, features)[0]
    exact = make_exact(layer, features, f.index, f.evidence)
    assert certify_unargmaxable(layer, features, f.index, exact.rivals, exact.weights) == 0.0
    moved = exact.weights.copy()
    moved[0] += Fraction(1, 2**200)
    assert certify_unargmaxable(layer, features, f.index, exact.rivals, moved) == np.inf
    np.testing.assert_allclose(
        exact.weights.astype(float), f.evidence.weights / f.evidence.weights.sum(), rtol=1e-6
    )
