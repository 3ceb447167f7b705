"""Wins by a part of each product: never one that exact arithmetic denies, nearly all where winners
are far ahead, none tried where they are not.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from definition import exact_margin
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom.certifying import kernel, partial
from softgeom.certifying.checker import Checker
from softgeom.certifying.partial import PartialLook, partial_look
from softgeom.certifying.verdict import EvidenceError, Finding, Witness
from softgeom.examples import hard_layer, normal_layer
from softgeom.layer import Box, SoftmaxLayer
from softgeom.scan_result import Scan
from softgeom.scanner import scan


@pytest.fixture(autouse=True, scope="module")
def for_a_thousand_classes():
    """A part of each product is tried from there on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partial, "FEWEST", 1000)
        patch.setattr(kernel, "MANY", 1000)
        yield


@settings(max_examples=200)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 5),
    st.sampled_from([1e-44, 1e-20, 1e-3, 1.0, 1e6, 1e30]),
    st.sampled_from([1e-44, 1e-20, 1.0, 1.0, 1.0, 1e8, 1e30]),
    st.sampled_from(["apart", "ties", "near ties", "far from the origin"]),
    st.sampled_from([0.0, 1e-6, 0.3, 1e3, "scaled", "nearly dependent"]),
)
def test_a_bound_is_below_the_margin_in_fractions(seed, d, size, far, kind, skew):
    """Also with directions that are not orthonormal, and where margins hang on the last bits."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(7, d)) if kind == "apart" else rng.integers(-2, 3, (7, d)).astype(float)
    W += {"near ties": rng.normal(size=(7, d)) * 1e-7, "far from the origin": 1e4}.get(kind, 0.0)
    layer = SoftmaxLayer(
        (W * size).astype(np.float32), (rng.integers(-2, 3, 7) * size).astype(np.float32)
    )
    k = int(rng.integers(1, d + 1))
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0][:, :k]
    if skew == "scaled":
        Q *= rng.choice([1e-3, 0.5, 3.0], k)
    elif skew == "nearly dependent":
        Q = Q[:, :1] + 1e-5 * Q
    else:
        Q += float(skew) * rng.normal(size=(d, k)) / d
    classes = np.arange(7)
    points = W * rng.choice([1e-3, 1.0, 50.0])
    points += rng.normal(size=(7, d)) * rng.choice([0.0, 1.0])
    points = (points * far).astype(np.float32)
    for t, bound in enumerate(PartialLook(layer, Q).margins(points, classes).tolist()):
        if bound != -np.inf:
            assert Fraction(bound) <= exact_margin(layer, t, points[t])


DENORMAL = 2.0**-149  # the smallest float32
ALONG, ACROSS = np.array([[np.cos(0.9), np.sin(0.9)], [-np.sin(0.9), np.cos(0.9)]])
TIGHT = {  # one of the tied rows, the point, the directions, and the bias of the tied
    "a product and two sums rounded down": (
        [2**30 + 2047 * 2**7, 2.4e-4 * 2**30], [2**30 + 2047 * 2**7, 2.4e-4 * 2**30],
        np.eye(2, 1), 5.8e-8 * 2**60,
    ),
    "a bias rounds the product away": ([2.0**-25], [1.0], np.eye(1), 1.0),
    "a product vanishes": ([1e-30], [1e-30], np.eye(1), 0.0),
    "y is rounded down": (1e30 * ALONG, [DENORMAL, DENORMAL], ALONG[:, None], 0.0),
    "what is left of x vanishes": (
        1e30 * ACROSS, [3 * DENORMAL, 4 * DENORMAL], ALONG[:, None], 0.0
    ),
    "what is left of the row vanishes": (
        [3 * DENORMAL, 4 * DENORMAL], 1e30 * ACROSS, ALONG[:, None], 0.0
    ),
    "what is left of both is multiplied and rounded down": (
        [2.0**-14, 0x10492 / 2**16, 0x1067BA8 / 2**24],
        [0x1BF009 / 2**34, 0x10492 / 2**16, 0x1067BA8 / 2**24],
        np.eye(3, 1),
        0x1EAD6CC / 2**48,
    ),
    "directions too short": ([1.0], [1.0], np.array([[0.5]]), 0.0),
}  # fmt: skip


@pytest.mark.parametrize("case", TIGHT)
def test_a_tie_that_one_rounding_would_break_stays_one(case):
    """Rows w, w, -w, -w and 0, so that their mean is 0: class 0 is not ahead of its twin, and would
    be ahead of the bound on it if that lacked the one term which covers this.
    """
    w, x, Q, bias = TIGHT[case]
    rows = np.multiply.outer([1.0, 1.0, -1.0, -1.0, 0.0], w).astype(np.float32)
    layer = SoftmaxLayer(rows, np.array([bias, bias, 0, 0, 0], np.float32))
    point = np.array(x, np.float32)
    assert exact_margin(layer, 0, point) == 0
    assert -np.inf < PartialLook(layer, Q).margins(point[None], np.array([0]))[0] <= 0


def test_a_bound_that_may_overflow_on_its_way_certifies_nothing():
    """Its terms add up to less than the largest float32, but rounded one by one to more."""
    x = np.array([1.0] + 12 * [np.sqrt(0.51 * 2**-24)], np.float32)
    largest = float(np.finfo(np.float32).max)
    row = (x * (largest * (1 - 1e-7) / float(x.astype(float) @ x))).astype(np.float32)
    assert np.linalg.norm(row.astype(float)) * np.linalg.norm(x.astype(float)) < largest
    layer = SoftmaxLayer(np.stack([row, -row]))
    bounds = PartialLook(layer, np.eye(13)).margins(np.stack([x, -x]), np.arange(2))
    for t, bound in enumerate(bounds.tolist()):
        assert bound == -np.inf or Fraction(bound) <= exact_margin(layer, t, x * (1 - 2 * t))


@pytest.mark.parametrize("large", [8, 4])  # of the features
def test_rows_whose_products_float32_does_not_hold_get_no_directions(large):
    rows = np.random.default_rng(0).normal(size=(1200, 8)).astype(np.float32)
    layer = SoftmaxLayer(np.where(np.arange(8) < large, rows * np.float32(1e20), rows))
    checker = Checker(layer, Box(100.0))
    assert partial_look(checker, list(rows), np.arange(1200)) is None


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("d", "k"), [(20, 16), (3, 2)])
def test_what_the_directions_leave_nothing_of_is_covered_by_its_rounding(d, k, size):
    """Rows in their span, exactly: the columns still hold what three products with Q may lose."""
    half = size * np.random.default_rng(0).normal(size=(4, d)) * (np.arange(d) < k)
    layer = SoftmaxLayer(np.concatenate([half, -half]).astype(np.float32))
    look = PartialLook(layer, np.eye(d, k))
    norms = np.linalg.norm(layer.W.astype(float), axis=1)
    needed = (d + k) * 2.0**-53 * (1 + np.sqrt(k)) ** 3 * norms
    assert (look.columns[:, k] >= needed).all()
    assert look.turned >= needed.max()
    assert look.turned < 1e-10 * size


def test_far_winners_alone_are_certified_by_a_part_of_each_product(monkeypatch):
    monkeypatch.setattr(partial, "ROWS", 350)  # four blocks, the last of them shorter
    layer = normal_layer(1200, 192)
    points = list(layer.W * np.float32(20))
    look = partial_look(Checker(layer, Box(1000.0)), points, np.arange(1200))
    assert look is not None
    assert look.Q.shape[1] <= 96
    bounds = look.margins(np.stack(points), np.arange(1200))
    exact = Checker(layer, Box(1000.0)).certify(np.stack(points), np.arange(1200))
    assert (bounds <= exact * (1 + 1e-5)).all()
    assert (bounds > 0).mean() > 0.8
    layer = hard_layer(1200, 64)
    assert partial_look(Checker(layer, Box(9.0)), list(layer.W), np.arange(1200)) is None
    few = normal_layer(900, 64)
    assert partial_look(Checker(few, Box(9.0)), list(few.W), np.arange(900)) is None


@pytest.fixture(scope="module")
def by_parts(for_a_thousand_classes) -> Scan:
    """A scan that certified winners by a part of each product."""
    used, whole = [], PartialLook.margins
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartialLook, "margins", lambda *args: used.append(1) or whole(*args))
        found = scan(normal_layer(1200, 128), verdicts_only=True)
    assert used
    return found


def test_a_verification_multiplies_whole_only_what_a_part_leaves_open(by_parts, monkeypatch):
    """And takes a margin that is true, but more than a part shows; not one that is false."""
    found, layer, multiplied = by_parts, by_parts.layer, []
    certify = Checker.certify

    def count(checker, points, *more):
        multiplied.append(len(points))
        return certify(checker, points, *more)

    monkeypatch.setattr(Checker, "certify", count)
    assert found.verify()
    assert sum(multiplied) < 0.3 * layer.classes
    exact = [exact_margin(layer, t, found[t].evidence.point) for t in (7, 8)]
    for share, holds in ((0.999, True), (1.001, False)):
        findings = list(found.findings)
        for t, margin in zip((7, 8), exact, strict=True):
            findings[t] = replace(findings[t], margin=share * float(margin), radius=0.0)
        if holds:
            assert Scan(layer, found.features, findings).verify()
        else:
            with pytest.raises(EvidenceError, match=r"Class 7 .* the stored margin"):
                Scan(layer, found.features, findings).verify()


@pytest.mark.parametrize(
    "spoilt", ["a loser", "outside the box", "nan", "less than a float outside"]
)
def test_a_forgery_of_a_scan_by_parts_is_refused(spoilt, by_parts):
    found = by_parts
    far = found.findings[7].evidence.point.astype(float)
    far *= 100 / np.abs(far).max()
    outside = np.array([Fraction(v) * (1 + Fraction(1, 10**30)) for v in far], object)
    point = {
        "a loser": found.findings[8].evidence.point,
        "outside the box": found.findings[7].evidence.point * 2,
        "nan": np.full(128, np.nan, np.float32),
        "less than a float outside": outside,
    }[spoilt]
    findings = list(found.findings)
    findings[7] = Finding(7, Witness(point), "look", 0, 1e-3, 0.0)
    with pytest.raises(EvidenceError, match="7"):
        Scan(found.layer, found.features, findings).verify()
