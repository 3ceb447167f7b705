"""Every verdict on tiny layers against enumeration, in every feature set, dtype and scale; and an attack on every bound."""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom.bottleneck.certifying import hull, witness
from softgeom.bottleneck.certifying.hull import certify_captivity, exact_row
from softgeom.bottleneck.certifying.witness import WitnessChecker
from softgeom.bottleneck.proving.enumeration import enumerate_verdict, has_nonnegative_solution
from softgeom.bottleneck.proving.exact import decide_exactly
from softgeom.bottleneck.scanner import scan
from softgeom.features import Ball, Box, Ellipsoid, Unbounded
from softgeom.layer import SoftmaxLayer

KINDS = ["box", "lopsided", "ball", "unbounded", "rms", "layer_norm"]


def tiny_problem(rng: np.random.Generator, kind: str, classes: int, d: int, *, biased: bool):
    """Integer rows and biases, the feature set, and the same as an integer problem in z."""
    W = rng.integers(-2, 3, (classes, d))
    b = rng.integers(-2, 3, classes) if biased else np.zeros(classes, np.int64)
    if rng.random() < 0.3 and classes > 3:  # a midpoint, so that an equality decides
        W[0], W[1], W[2] = 2 * W[0], 2 * W[1], W[0] + W[1]
        b[2] = min(b[2], (b[0] + b[1]) // 2)
    features, rows, shift, region = tiny_features(rng, kind, W, b)
    return W, b, features, rows, shift, region


def tiny_features(rng: np.random.Generator, kind: str, W, b):
    d = W.shape[1]
    if kind == "unbounded":
        return Unbounded(), W, b, ("unbounded",)
    if kind in ("box", "lopsided"):
        low, high = (-rng.integers(0, 2, d), rng.integers(1, 3, d)) if kind == "lopsided" else (-np.ones(d, int),) * 2
        high = high if kind == "lopsided" else -low
        return Box(tuple(high.tolist()), low=tuple(low.tolist())), W, b, ("box", low, high)
    radius = int(rng.integers(1, 4))
    if kind == "ball":
        return Ball(radius), W, b, ("ball", Fraction(radius**2))
    gain, shift = rng.integers(0, 3, d), rng.integers(-1, 2, d)
    gain[0] = 1
    centred = kind == "layer_norm"
    rows = W * gain
    factor = d if centred else 1  # logits times d: verdicts stay
    rows = rows * d - rows.sum(axis=1, keepdims=True) if centred else rows
    return (
        Ellipsoid(gain, shift, radius=radius, centred=centred),
        rows,
        factor * (b + W @ shift),
        ("ball", Fraction(radius**2)),
    )


@pytest.mark.parametrize("kind", KINDS)
@given(
    seed=st.integers(0, 10**9),
    dtype=st.sampled_from(["float16", "float32", "float64"]),
    rows=st.sampled_from([0, 0, 0, -60, 70, -500, 480]),
    points=st.sampled_from([0, 0, 0, -50, 90, -400, 400]),
)
@settings(max_examples=25, deadline=None)
def test_verdicts_are_those_of_enumeration(kind: str, seed: int, dtype: str, rows: int, points: int) -> None:
    rng = np.random.default_rng(seed)
    biased = bool(rng.random() < 0.6)
    W, b, features, effective, shift, region = tiny_problem(
        rng, kind, int(rng.integers(2, 8)), int(rng.integers(1, 4)), biased=biased
    )
    scaled = np.ldexp(W.astype(float), rows)
    bias = np.ldexp(b.astype(float), rows + points)
    if not rows and not points:
        scaled, bias = scaled.astype(dtype), bias.astype(dtype)
    found = scan(SoftmaxLayer(scaled, bias if biased else None), features=features.scaled(-points))
    assert found.verify()
    for t, evidence in enumerate(f.evidence for f in found.findings):
        assert evidence.verdict == enumerate_verdict(effective, shift, t, region), (t, W.tolist(), b.tolist(), features)


@pytest.mark.parametrize("kind", KINDS)
def test_larger_integer_layers_leave_nothing_undecided(kind: str) -> None:
    rng = np.random.default_rng(7)
    for d in (5, 12):
        W, b, features, *_ = tiny_problem(rng, kind, 60, d, biased=kind != "box")
        found = scan(SoftmaxLayer(W, b), features=features)
        assert not found.counts["undecided"]
        assert found.verify()


def test_bias_of_one_unit_in_the_last_place_decides() -> None:
    """Two rows and their midpoint: with a bias above the mean of theirs by one ulp it wins, else it never does."""
    for size in (1.0, 2.0**-200, 2.0**300):
        for features in (Box(size), Ball(size), Ellipsoid([size, size], radius=1.0), Unbounded()):
            W = np.array([[1.0, 0.5], [-1.0, 0.25], [0.0, 0.375], [0.0, -3.0]])
            for ulp, verdict in ((1, "argmaxable"), (0, "unargmaxable"), (-1, "unargmaxable")):
                bias = np.array([1.0, 1.0, 1.0 + ulp * 2.0**-52, 0.0]) * size
                found = scan(SoftmaxLayer(W, bias), features=features)
                assert found.evidence(2).verdict == verdict, (features, ulp)
                assert found.verify()


def test_an_oracle_for_the_oracle() -> None:
    """Systems whose solutions are known: a square around the origin, an edge, an outside point, a dependent row."""
    square = np.array([[1, 1, -1, -1], [1, -1, 1, -1], [1, 1, 1, 1]])
    for y, inside in (([0, 0, 1], True), ([1, 0, 1], True), ([2, 0, 1], False)):
        assert has_nonnegative_solution(square, np.array(y)) is inside
        assert has_nonnegative_solution(np.vstack([square, square[:1]]), np.array([*y, y[0]])) is inside
    assert not has_nonnegative_solution(np.vstack([square, square[:1]]), np.array([0, 0, 1, 1]))


# ---- The attack: near ties in exact fractions. Whatever a checker accepts must be true, for any rounding.


def near_tie(rng: np.random.Generator):
    """A class that is a mixture of d + 1 others to the last bit, its bias beside theirs by some units in the last place.

    Rows and weights are dyadic, so that v = 0 and rounding decides in the biases alone; the weights are the only ones.
    """
    d = int(rng.integers(1, 7))
    W = rng.integers(-32, 33, (d + 2, d)).astype(float)
    weights = np.diff(np.sort(rng.choice(np.arange(1, 64), d, replace=False)), prepend=0, append=64) / 64
    W[-1] = weights @ W[:-1]
    b = rng.normal(size=d + 2) * 2.0 ** rng.integers(-6, 1, d + 2)
    b[-1] = weights @ b[:-1]
    b[-1] += rng.integers(-2, 3) * np.spacing(b[-1])
    scale = int(rng.choice([0, 0, -300, 300]))
    features = [Box(1.0), Ball(1.0), Unbounded(), Ellipsoid(np.ones(d), radius=1.0)][rng.integers(4)]
    return SoftmaxLayer(np.ldexp(W, scale), np.ldexp(b, scale)), features, weights


def false_proofs(attempts: int, seed: int) -> int:
    """Accepted weights of classes that win somewhere, in fractions."""
    rng, wrong = np.random.default_rng(seed), 0
    for _ in range(attempts):
        layer, features, weights = near_tie(rng)
        t = layer.classes - 1
        if certify_captivity(layer, features, t, np.arange(t), weights) <= 0:
            wrong += decide_exactly(layer, features, t, np.arange(t)).verdict != "unargmaxable"
    return wrong


def false_witnesses(attempts: int, seed: int) -> int:
    """Accepted points at which the class does not win in fractions."""
    rng, wrong = np.random.default_rng(seed), 0
    for _ in range(attempts):
        d, power = int(rng.integers(3, 30)), int(rng.choice([0, 0, -560, -1000]))
        dtype = rng.choice(["float32", "float64"]) if not power else "float64"
        w, x = rng.normal(size=d), rng.normal(size=d)
        rival = w + rng.integers(-1, 2, d) * np.spacing(w.astype(dtype)).astype(float)
        layer = SoftmaxLayer(np.array([w, rival]).astype(dtype))
        point = np.ldexp(x, power).astype(dtype)
        certified = WitnessChecker(layer, Unbounded()).certify(point[None], np.array([0]))[0]
        exact = [Fraction(float(v)) for v in point]
        own, other = (
            sum((p * q for p, q in zip(exact_row(layer, i)[0], exact, strict=True)), Fraction(0)) for i in (0, 1)
        )
        wrong += bool(certified > 0 and not own > other)
    return wrong


@pytest.mark.parametrize("seed", [0, 1])
def test_no_near_tie_deceives_the_checkers(seed: int) -> None:
    assert false_proofs(150, seed) == 0
    assert false_witnesses(200, seed) == 0


def test_without_rounding_bounds_the_attack_succeeds(monkeypatch) -> None:
    """The attack has teeth: with every bound set to zero it finds false proofs and false witnesses."""
    for module in (hull, witness, *(m for name, m in sys.modules.items() if name.startswith("softgeom.features."))):
        for name, nothing in (("gamma", lambda *_: 0.0), ("underflow", lambda *_: 0.0)):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, nothing)
    assert false_proofs(150, 0) > 0
    assert false_witnesses(200, 0) > 0
