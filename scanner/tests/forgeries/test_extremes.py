"""Weights that the kernel takes for proofs, on tiny layers whose numbers come from the ends of
float64: each proof is one by the definition, in fractions.
"""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from judge import Judge

from softgeom.certifying.checker import Checker
from softgeom.certifying.hull import certify_unargmaxable, exact_comparisons
from softgeom.certifying.partial import PartialLook
from softgeom.certifying.slack import slack_bounds
from softgeom.certifying.verdict import BlockingClasses
from softgeom.layer import Ball, Box, Ellipsoid, FeatureSet, SoftmaxLayer, Unbounded

TINY = (5e-324, 2.0**-1026, 2.0**-1023, 1e-200, 1e-160, 2.0**-600, 2.0**-52)
HUGE = (2.0**41, 2.0**50, 1e160, 2.0**500, 2.0**1000)
WEIGHTS = (1.0, 1.0, 1.0, 0.5, 2.0**-10, 2.0**-30, 1e-200)


def some_set(r: random.Random, d: int, sizes: list[float]) -> FeatureSet:
    """A feature set of R^d."""
    kind, radius = r.randrange(7), r.choice([1.0, *sizes[1:]])
    if kind < 4:
        gain, shift = ([r.choice([0.0, 0.0, 1.0, *sizes]) for _ in range(d)] for _ in range(2))
        return Ellipsoid(gain, r.choice([None, shift]), radius=radius, centred=kind < 1)
    return (Box(radius), Ball(radius), Unbounded())[kind - 4]


def some_differences(r: random.Random, k: int, d: int, sizes: list[float]) -> np.ndarray:
    """Differences (k, d) of a class and its rivals; often they add up to nothing."""
    signed = [0.0, 1.0, -1.0, *sizes, *(-size for size in sizes)]
    D = np.array([[r.choice(signed) for _ in range(d)] for _ in range(k)])
    cancels = [k > 1 and r.random() < 0.4 for _ in range(d)]
    D[-1, cancels] = -D[:-1, cancels].sum(axis=0)
    return D


@pytest.mark.parametrize("seed", [0, 1, 4, 25, 32, 44])
def test_what_is_proven_at_the_ends_of_float64_is_true(seed: int) -> None:
    r, proven = random.Random(seed), 0
    for _ in range(500):
        d, k = r.choice([1, 2, 2, 3]), r.choice([1, 2, 2, 3, 3, 4])
        tiny, huge = r.choice(TINY), r.choice(HUGE)
        sizes = r.choice([[tiny], [tiny], [tiny, r.choice(TINY)], [tiny, huge]])
        W = np.vstack([np.zeros(d), -some_differences(r, k, d, sizes)])
        biases = [0.0, 0.0, -sizes[0], sizes[0], 1.0]
        b = r.choice([None, None, [0.0, *(r.choice(biases) for _ in range(k))]])
        layer, features = SoftmaxLayer(W, b), some_set(r, d, sizes)
        weights, rivals = np.array([r.choice(WEIGHTS) for _ in range(k)]), np.arange(1, k + 1)
        with np.errstate(all="ignore"):
            bounds = certify_unargmaxable(layer, features, 0, rivals, weights)
            more = slack_bounds(layer, features, [0], [BlockingClasses(rivals, weights)])
        for bound in (bounds, float(more[0])):
            if bound <= 0:
                proven += 1
                assert is_true(layer, features, rivals, weights, bound)
    assert proven > 50


@pytest.mark.parametrize("seed", range(4))
def test_points_that_are_certified_at_the_ends_of_floats_win(seed: int) -> None:
    """In float32 and float64, whole or by a part: sums may overflow on their way."""
    rng, certified = np.random.default_rng(seed), 0
    for _ in range(100):
        dtype, largest = ((np.float32, 1e38), (np.float64, 5e307))[rng.integers(2)]
        C, d = int(rng.integers(2, 5)), int(rng.integers(2, 7))
        W = largest * rng.choice([-2.5, -1.0, -0.5, -0.4, 0.0, 1.0, 3.0], (C, d))
        b = rng.choice([0.0, 1e-45, largest], C)
        layer, features = SoftmaxLayer(W.astype(dtype), b.astype(dtype)), Box(1e300)
        points = rng.choice([1.0, 1.0, 1.0, -1.0, 0.5, 1e-30], (C, d)).astype(dtype)
        bounds = [Checker(layer, features).certify(points, np.arange(C))]
        if dtype == np.float32:
            Q = np.linalg.qr(rng.normal(size=(d, d)))[0] if rng.integers(2) else np.eye(d)
            bounds.append(
                PartialLook(layer, Q[:, : rng.integers(1, d + 1)]).margins(points, np.arange(C))
            )
        judge = Judge(layer, features.to_json())
        for found in bounds:
            for t in np.flatnonzero(found > 0).tolist():
                certified += 1
                claim = {"kinds": 1, "order": [[t]], "rest": 1, "point": points[t].tolist()}
                assert judge.is_true(claim | {"margins": float(found[t]), "radii": 0.0})
    assert certified > 50


def is_true(
    layer: SoftmaxLayer, features: FeatureSet, rivals: np.ndarray, weights: np.ndarray, bound: float
) -> bool:
    """Whether class 0 is bounded so, by these weights or by others on its rivals."""
    exact = [Fraction(weight) for weight in weights.tolist()]
    if exact_comparisons(layer, features, rivals * 0, rivals, exact, Fraction(bound)):
        return True
    proof = [[0, n, w] for n, w in zip(rivals.tolist(), weights.tolist(), strict=True)]
    claim = {"kinds": 2, "order": [[0]], "rest": 1, "proof": proof, "margins": bound}
    return Judge(layer, features.to_json()).is_true(claim)
