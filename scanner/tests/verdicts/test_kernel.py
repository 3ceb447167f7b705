"""What becomes proven: never more than the definition gives in fractions, and all of that."""

import itertools
import os
import platform
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from definition import exact, exact_margin, right_side
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom import rounding
from softgeom.asking.ask import ask
from softgeom.asking.experts import ask_experts
from softgeom.ceiling import bound
from softgeom.ceiling.bound import Certifier, Target
from softgeom.ceiling.ceilings import ceilings
from softgeom.certifying import kernel
from softgeom.certifying.checker import Checker, round_down, wins
from softgeom.certifying.hull import are_twins, prove_comparisons
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import (
    Answer,
    BlockingClasses,
    Comparisons,
    EvidenceError,
    Finding,
    Twin,
    Unknown,
    Witness,
)
from softgeom.examples import uniform_layer
from softgeom.features import Ball, Box, Ellipsoid, Unbounded
from softgeom.layer import SoftmaxLayer
from softgeom.scan_result import Scan
from softgeom.scanner import scan


def refused(said: str, layer: SoftmaxLayer, features, *claims: Finding | Answer) -> None:
    """Claims, findings or answers, are refused in this sentence."""
    verify = kernel.verify_answers if isinstance(claims[0], Answer) else kernel.verify_findings
    with pytest.raises(EvidenceError, match=said):
        verify(layer, features, claims)


def near_ties(seed: int, d: int) -> tuple[SoftmaxLayer, np.ndarray]:
    """Seven rows that differ in the last bits, and a point."""
    rng = np.random.default_rng(seed)
    w, x = rng.normal(size=d), rng.normal(size=d)
    W = w + rng.integers(-1, 2, (7, d)) * np.spacing(w)
    b = rng.normal() + rng.integers(-1, 2, 7) * 2.0**-52
    return SoftmaxLayer(W, b if seed % 2 else None), x


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from([0, 30]))
def test_a_point_proves_exactly_what_fractions_give(seed, d, power):
    """Of an order and of a class, where float64 alone would often be wrong; also in units in which
    an error is larger than one.
    """
    layer, x = near_ties(seed, d)
    layer, x = SoftmaxLayer(layer.W * 2.0**power, layer.bias * 4.0**power), x * 2.0**power
    rng = np.random.default_rng(seed)
    parts = np.split(rng.permutation(7), np.sort(rng.choice(np.arange(1, 7), 2, replace=False)))
    for order in (Order(parts), Order(parts[:2], rest=True), Order(parts[:2]), wins(3)):
        truth = exact_margin(layer, order, x)
        checker = Checker(layer, Unbounded())
        assert Fraction(checker.margin(order, x)) <= max(truth, 0)
        if truth > 0:
            assert checker.margin(order, x) > 0
            best = round_down(truth)
            assert checker.margin(order, x, best) >= best
            assert not checker.margin(order, x, np.nextafter(best, np.inf)) > best
            answers = [Answer(order, Witness(x), "", 0, best)]
            kernel.verify_answers(layer, Unbounded(), answers)
            more = [replace(answers[0], margin=float(np.nextafter(best, np.inf)))]
            refused("the stored margin is", layer, Unbounded(), *more)
        else:
            with pytest.raises(EvidenceError, match="does not prove possible"):
                kernel.verify_answers(
                    layer, Unbounded(), [Answer(order, Witness(x), "", 0, 5e-324)]
                )


@pytest.mark.parametrize("kind", ["box", "rms norm", "layer norm"])
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from(["float32", "float64"]))
@settings(max_examples=30)
def test_points_together_prove_no_more_than_fractions_and_no_winner_is_turned_away(
    kind, seed, bias, dtype
):
    rng = np.random.default_rng(seed)
    W, b = rng.normal(size=(7, 3)).astype(dtype), rng.normal(size=7).astype(dtype)
    norm = Ellipsoid(*rng.normal(size=(2, 3)), radius=1e4, centred=kind == "layer norm")
    layer, features = SoftmaxLayer(W, b if bias else None), Box(1e4) if kind == "box" else norm
    points = (rng.normal(size=(7, 3)) * 10.0 ** rng.integers(-6, 2)).astype(dtype)
    for t, proven in enumerate(Checker(layer, features).certify(points, np.arange(7)).tolist()):
        truth = exact_margin(layer, t, features.features_exactly(exact(points[t])))
        assert (proven > 0) == (truth > 0)
        assert proven == -np.inf or Fraction(proven) <= truth
        assert proven == -np.inf or dtype == "float32" or float(truth) - proven < 1e-11


@pytest.mark.parametrize("features", [Box(1.0), Ball(1.0), Ellipsoid([1.0])], ids=lambda f: f.kind)
def test_a_point_outside_the_set_proves_nothing(features):
    """At -2 the order holds; only that it lies outside speaks against it."""
    layer = SoftmaxLayer([[0.0], [1.0]])
    order, beyond = Order([[0], [1]]), np.nextafter(-1.0, -2)
    checker = Checker(layer, features)
    for point in ([-2.0], [beyond], [Fraction(-3, 2)], [Fraction(-1) - Fraction(1, 2**80)]):
        assert checker.margin(order, np.array(point)) == -np.inf
        assert checker.certify(np.array([point]), np.array([0]))[0] == -np.inf
        with pytest.raises(EvidenceError, match="does not prove possible"):
            kernel.verify_answers(
                layer, features, [Answer(order, Witness(np.array(point)), "", 0, 0.5)]
            )
    assert checker.margin(order, np.array([-1.0])) > 0.99
    assert checker.contains(np.array([[-2.0], [-1.0], [np.nan]])).tolist() == [False, True, False]


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.sampled_from([1e-12, 1.0, 1e9]))
def test_weights_prove_exactly_what_fractions_give(seed, d, size):
    """A bound that is an ulp better than the right side is refused, the right side is not."""
    rng = np.random.default_rng(seed)
    W, b = rng.normal(size=(6, d)) * size, rng.normal(size=6) * size * 300 * d
    layer, k = SoftmaxLayer(W, b), int(rng.integers(1, 6))
    above, below = np.zeros(k, np.intp), rng.permutation(np.arange(1, 6))[:k]
    weights = rng.random(k) + 0.1
    v, c = right_side(layer, 0, below, weights)
    right = (100 * sum(map(abs, v)) + c) / sum(exact(weights))
    if right < 0:
        least = -round_down(-right)
        least = least if Fraction(least) >= right else float(np.nextafter(least, 1))
        beyond = float(np.nextafter(least, -np.inf))
        for kind in (weights, np.array(exact(weights), dtype=object)):
            given = (layer, Box(100.0), above, below, kind)
            assert prove_comparisons(*given, least)
            assert prove_comparisons(*given, 0.0)
            for margin in (beyond, least * 1.0001, -np.inf, np.nan, 1.0):
                assert not prove_comparisons(*given, margin)
        f = Finding(0, BlockingClasses(below, weights), "", 0, least, np.nan)
        kernel.verify_findings(layer, Box(100.0), [f])
        for name, value in (("margin", least * (1 + 1e-8)), ("margin", 0.5), ("radius", 0.0)):
            refused(f"the stored {name} is", layer, Box(100.0), replace(f, **{name: value}))
    else:
        assert not prove_comparisons(layer, Box(100.0), above, below, weights, -1e-300)


def test_weights_are_on_what_the_order_demands_and_prove_it():
    layer = SoftmaxLayer([[0.0], [1.0], [2.0]])
    order = Order([[0, 2], [1]])  # 1 is the mean of 0 and 2
    good = Comparisons(np.array([0, 2]), np.array([1, 1]), np.ones(2))
    kernel.verify_answers(layer, DISK, [Answer(order, good, "", 0, 0.0)])
    for evidence in (
        Comparisons(good.above, good.below, np.array([1.0, 2.0])),
        Comparisons(good.above, good.below, np.array([1.0, -1.0])),
        Comparisons(good.below, good.above, np.ones(2)),
        Comparisons(good.above[:1], good.below, np.ones(2)),
        Comparisons(np.array([0, -1]), good.below, np.ones(2)),
    ):
        refused("does not prove impossible", layer, DISK, Answer(order, evidence, "", 0, 0.0))
    for other in (Order([[0], [1]]), Order([[0, 2, 1]], rest=True), Order([[1], [0, 2]])):
        refused("does not prove impossible", layer, DISK, Answer(other, good, "", 0, 0.0))
    refused(r"the stored margin is -0\.5", layer, DISK, Answer(order, good, "", 0, -0.5))
    with pytest.raises(ValueError, match="names class 3"):
        kernel.verify_answers(layer, DISK, [Answer(Order([[3]], rest=True), good, "", 0, 0.0)])
    kernel.verify_answers(layer, DISK, [Answer(order, Unknown(-7.0, ""), "", 0, -7.0)])


def test_a_tie_and_a_bound_above_zero_prove_nothing():
    tie = SoftmaxLayer([[1.0], [1.0]])
    order, point = Order([[0], [1]]), Witness(np.array([0.5]))
    for margin in (0.0, -1.0, np.nan):
        finding, checker = Finding(0, point, "", 0, margin, 0.0), Checker(tie, DISK)
        assert not kernel._proves_margin(checker, finding)
        assert not kernel._proven_points(checker, [finding])[0]
        refused("does not certainly win", tie, DISK, finding)
        refused("does not prove possible", tie, DISK, Answer(order, point, "", 0, margin))
    above = SoftmaxLayer([[0.0], [1.0], [-1.0]], [0.25, 0.0, 0.0])  # it wins by .25 at 0
    weights, rivals = np.ones(2), np.array([1, 2])
    with pytest.raises(EvidenceError, match="the weights do not prove"):
        kernel.certify_evidence(above, DISK, 0, BlockingClasses(rivals, weights))
    proof, checker = Comparisons(np.zeros(2, int), rivals, weights), Checker(above, DISK)
    with pytest.raises(EvidenceError, match="does not prove impossible"):
        kernel.certify_answer(checker, wins(0), proof)


def test_a_point_is_about_a_class_of_the_layer_and_has_its_dimension():
    layer = SoftmaxLayer([[1.0], [0.0]])
    assert kernel.certify_evidence(layer, DISK, 0, Witness(np.array([0.5]))) > 0
    for t, point in ((-1, [0.5]), (2, [0.5]), (0, [0.5, 0.0]), (0, 0.5)):
        with pytest.raises(EvidenceError, match="does not certainly win"):
            kernel.certify_evidence(layer, DISK, t, Witness(np.array(point)))
    with pytest.raises(ValueError, match=r"2 witnesses need shape \(2, 1\)"):
        Checker(layer, DISK).certify(np.zeros((2, 3)), np.arange(2))
    assert Checker(layer, Unbounded()).certify(np.array([[np.inf]]), np.array([0]))[0] == -np.inf


@pytest.mark.parametrize(
    ("rows", "bias", "point"),
    [
        # beyond the largest float: cut off there, the first class would win
        ([[-1e-300], [0.0]], [1e9, 0.0], Fraction(10) ** 400),
        # below the smallest: rounded to 0, the first class would win
        ([[-1e160], [0.0]], [1e-300, 0.0], Fraction(2) ** -1076),
        ([[-1e300], [0.0]], [1e-20, 0.0], Fraction(2) ** -1040 + Fraction(2) ** -1075),
    ],
)
def test_a_point_that_no_float_holds_is_not_taken_for_the_nearest_one(rows, bias, point):
    layer = SoftmaxLayer(rows, bias)
    for features in (Unbounded(), Box(1.0)):
        if features.contains_exactly([point]):
            margin = Checker(layer, features).margin(wins(0), np.array([point], dtype=object))
            assert margin <= 0 or Fraction(margin) <= exact_margin(layer, 0, [point])


def test_what_products_together_show_is_not_shown_one_by_one(monkeypatch):
    """A scan is confirmed by three products for each part of it, whatever the parts."""
    layer = uniform_layer(60, 3, seed=0)
    found = scan(layer)
    assert found.counts["unargmaxable"] > 5
    monkeypatch.setattr(kernel, "TOGETHER", 7)
    monkeypatch.setattr(kernel, "_proves_margin", lambda checker, f: pytest.fail(str(f)))
    monkeypatch.setattr(kernel, "_proves_radius", lambda checker, f: np.isnan(f.radius))
    kernel.verify_findings(layer, found.features, found.findings)


def test_further_sets_say_of_lost_classes_that_they_are_lost_there_too():
    """Class 0 wins from 2 on. That it does so in a larger ball is true, and no such proof."""
    layer, wide, narrow = SoftmaxLayer([[1.0], [0.5]], [0.0, 1.0]), Ball(9.0), Ball(0.5)
    lost = Finding(0, BlockingClasses(np.array([1]), np.ones(1)), "", 0, -0.25, np.nan)
    won = Finding(1, Witness(np.array([0.5])), "", 0, 0.5, 0.0)
    open_ = Finding(0, Unknown(np.inf, ""), "", 0, np.inf, np.nan)
    free = Finding(0, Witness(np.array([3.0])), "", 0, 0.25, 0.0)
    kernel.verify_parts(layer, DISK, [lost, won], [])
    kernel.verify_parts(layer, DISK, [lost, won], [(narrow, [lost])])
    only = "only proofs about the scan's own unargmaxable classes are of use"
    for first, wider, said in (
        (lost, [(wide, [free])], rf"Class 0: over \|\|x\|\| <= 9 {only}"),
        (open_, [(narrow, [lost])], rf"Class 0: over \|\|x\|\| <= 0.5 {only}"),
        (lost, [(wide, [lost])], "the weights do not prove"),
        (lost, [(narrow, [])], r"<= 0.5 says nothing about any class\."),
        (lost, [(DISK, [lost])], r"<= 1 occurs twice\."),
        (lost, [(narrow, [lost]), (narrow, [lost])], r"<= 0.5 occurs twice\."),
    ):
        with pytest.raises(EvidenceError, match=said):
            kernel.verify_parts(layer, DISK, [first, won], wider)


def test_only_one_verdict_a_class():
    layer = uniform_layer(30, 3, seed=0)
    found = scan(layer)
    with pytest.raises(ValueError, match="Class 7 occurs twice"):
        Scan(layer, found.features, [*found.findings, found.findings[7]])
    for findings, said in (
        ([found.findings[7], found.findings[7]], "Class 7 occurs twice"),
        ([replace(found.findings[7], index=30)], "Class 30 is none"),
        ([replace(found.findings[7], index=-1)], "Class -1 is none"),
    ):
        refused(said, layer, found.features, *findings)


def test_a_radius_is_at_most_what_the_margin_proves():
    layer = SoftmaxLayer([[1.0], [0.0]])
    finding = Finding(0, Witness(np.array([0.5])), "", 0, 0.5, 0.25)
    # another machine may round up the norms a little less
    for radius in (0.0, 0.125, 0.25 * (1 - 1e-8)):
        kernel.verify_findings(layer, DISK, [replace(finding, radius=radius)])
    for radius in (0.2501, np.inf, np.nan, -1.0):
        refused("Class 0 .*the stored radius is", layer, DISK, replace(finding, radius=radius))
    tiny = SoftmaxLayer([[1e-170], [0.0]])  # a margin of 1e-340 only claims to be positive
    point = Witness(np.array([1e-170]))
    kernel.verify_findings(tiny, Ball(1e-170), [Finding(0, point, "", 0, 5e-324, 1e-171)])
    refused("the stored radius is", tiny, Ball(1e-170), Finding(0, point, "", 0, 5e-324, 1e-160))
    refused("the stored margin is", tiny, Ball(1e-170), Finding(0, point, "", 0, 1e-323, 0.0))
    checker = Checker(tiny, Ball(1e-170))
    assert checker.radius(np.array([0, 0]), np.array([5e-324, 1e-300])).tolist()[0] == 0
    assert checker.exact_margin(wins(0), point.point) == Fraction(1e-170) ** 2
    huge = SoftmaxLayer([[1e308], [-1e308]])  # a margin beyond float64 is stored as the largest
    found = scan(huge, features=Box(1e10))
    assert found.verify()
    assert found.findings[0].margin == np.finfo(float).max


@pytest.mark.parametrize("power", [60, 1000])
def test_a_point_that_no_unit_holds_is_confirmed_in_fractions(power):
    """In units of the ball it would be 0, and its margin less than any float: a sign, which is no
    size in the units of the layer.
    """
    layer, features = SoftmaxLayer([[2.0**30], [0.0]]), Ball(2.0**power)
    f = Finding(0, Witness(np.array([5e-324])), "", 0, 2.0**-1044, 0.0)
    checker = Checker(layer, features)
    assert checker.certify(f.evidence.point[None], np.array([0]))[0] == -np.inf
    assert checker.margin(wins(0), f.evidence.point) == f.margin
    kernel.verify_findings(layer, features, [f])
    for margin in (np.nextafter(f.margin, 1), 2.0 ** (power - 1044), 2.0 ** (power - 1076)):
        assert not kernel._proves_margin(checker, replace(f, margin=float(margin)))
        refused("does not certainly win", layer, features, replace(f, margin=float(margin)))
        answer = Answer(Order([[0], [1]]), f.evidence, "", 0, float(margin))
        refused("the stored margin is", layer, features, answer)


def test_one_class_has_nobody_to_beat():
    layer = SoftmaxLayer([[1.0, 2.0]])
    found = scan(layer)
    assert found.findings[0].margin == np.inf
    for radius in (0.0, 1.0, np.inf):
        f = replace(found.findings[0], radius=radius)
        kernel.verify_findings(layer, found.features, [f])
        assert kernel._proves_radius(Checker(layer, found.features), f)  # by itself, too
    refused("the stored radius is", layer, found.features, replace(found.findings[0], radius=-1.0))
    beyond = Witness(np.full(2, 101.0))
    with pytest.raises(EvidenceError, match="does not certainly win"):
        kernel.certify_evidence(layer, Box(100.0), 0, beyond)
    with pytest.raises(EvidenceError, match="does not certainly win"):
        kernel.verify_findings(layer, Box(100.0), [replace(found.findings[0], evidence=beyond)])


def test_twins_have_equal_rows_and_biases():
    layer = SoftmaxLayer([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [0.0, 1.0]], [0.5, 0.5, 0.25, 0.5])
    box, flat = Box(1.0), Ellipsoid([1.0, 0.0])
    assert are_twins(layer, box, 0, 1)
    assert are_twins(layer, box, 1, 0)
    for t, i in ((0, 0), (0, 2), (0, 3), (0, 4), (0, -1), (-1, 0), (4, 0)):
        assert not are_twins(layer, box, t, i)
    same = SoftmaxLayer([[1.0, 2.0], [1.0, 7.0], [2.0, 2.0]])  # where the gain is 0 they may differ
    assert are_twins(same, flat, 0, 1)
    assert not are_twins(same, box, 0, 1)
    assert not are_twins(same, flat, 0, 2)
    finding = Finding(0, Twin(1), "", 0, 0.0, np.nan)
    kernel.verify_findings(layer, box, [finding])
    said = r"Class 0 .*the stored margin is -1e-09, but its evidence proves 0\.0\."
    refused(said, layer, box, replace(finding, margin=-1e-9))
    refused(r"Class 0 \(0\) is no twin of class 2", layer, box, replace(finding, evidence=Twin(2)))


# ---- Experts


SQUARE = SoftmaxLayer([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0, 0]])
DISK = Ball(1.0)


def never(expert: int, rivals: list[int]) -> Answer:
    """``{e} > rivals`` is impossible: the expert is the mean of opposite corners."""
    k = len(rivals)
    proof = Comparisons(np.full(k, expert), np.array(rivals), np.ones(k))
    return Answer(Order([[expert], rivals]), proof, "", 0, 0.0)


def test_an_expert_is_out_when_whoever_leads_cannot_free_it():
    kernel.verify_expert(SQUARE, DISK, 4, 2, "impossible", [never(4, [0, 3]), never(4, [1, 2])])
    kernel.verify_expert(SQUARE, DISK, 4, 1, "impossible", [never(4, [0, 3])])
    kernel.verify_expert(SQUARE, DISK, 4, 2, "undecided", [never(4, [0, 3])])
    for k, answers in (
        (3, [never(4, [0, 3]), never(4, [1, 2])]),
        (2, [never(4, [0, 3])]),
        (2, [never(4, [0, 3]), never(4, [0, 3])]),
        (1, []),
        (1, [Answer(Order([[4], [0, 3]]), Unknown(1.0, "who knows"), "", 0, 1.0)]),
    ):
        with pytest.raises(EvidenceError, match=f"^Expert 4: {k - 1} experts .* may be enough"):
            kernel.verify_expert(SQUARE, DISK, 4, k, "impossible", answers)
    point = Answer(Order([[0], [1, 2, 3]]), Witness(np.array([0.5, 0.5])), "", 0, 0.1)
    with pytest.raises(EvidenceError, match="a point is no part of an open question"):
        kernel.verify_expert(SQUARE, DISK, 0, 1, "undecided", [point])
    for e, k, verdict in (
        (5, 1, "undecided"),
        (-1, 1, "undecided"),
        (4, 0, "undecided"),
        (4, 6, "undecided"),
        (4, 1, "certain"),
    ):
        with pytest.raises(EvidenceError, match="is no verdict about an expert"):
            kernel.verify_expert(SQUARE, DISK, e, k, verdict, [])


def test_impossible_orders_of_other_shapes_say_nothing_about_an_expert():
    """``{0} > {3} > rest`` is impossible where ``{0} > {3}`` is not."""
    layer = SoftmaxLayer([[1.0], [-1.0], [0.0], [-0.5]])
    # 0 > 3 needs x > 0, and 3 > 2 needs x < 0
    proof = Comparisons(np.array([0, 3]), np.array([3, 2]), np.array([1.0, 3.0]))
    answer = Answer(Order([[0], [3]], rest=True), proof, "", 0, 0.0)
    kernel.verify_answers(layer, DISK, [answer])
    with pytest.raises(EvidenceError, match="about another order"):
        kernel.verify_expert(layer, DISK, 0, 1, "impossible", [answer])
    refused("does not prove impossible", layer, DISK, replace(answer, order=Order([[0], [3]])))
    point = Answer(wins(0), Witness(np.array([0.5])), "", 0, 0.1)
    for answer, said in (
        (point, "about another order"),
        (replace(point, order=Order([[0], [1, 2]])), "leaves 1 experts"),
        (replace(point, order=Order([[1], [0]]), evidence=Witness(np.array([-0.5]))), "another"),
    ):
        with pytest.raises(EvidenceError, match=said):
            kernel.verify_expert(layer, DISK, 0, 1, "possible", [answer])
    whole = replace(point, order=Order([[0], [1, 2, 3]]))
    kernel.verify_expert(layer, DISK, 0, 1, "possible", [whole])
    kernel.verify_expert(
        layer, DISK, 0, 2, "possible", [replace(point, order=Order([[0], [1, 2]]))]
    )
    for answers in ([], [whole, whole]):
        with pytest.raises(EvidenceError, match="takes one point"):
            kernel.verify_expert(layer, DISK, 0, 1, "possible", answers)
    with pytest.raises(EvidenceError, match="takes one point"):
        kernel.verify_expert(SQUARE, DISK, 4, 4, "possible", [never(4, [0, 3])])


def test_a_router_names_each_expert_once_and_its_search_ends():
    router = ask_experts(SQUARE, 2, features=DISK)
    assert router.verify()
    router.experts.append(router.experts[0])
    with pytest.raises(EvidenceError, match="occurs twice"):
        router.verify()
    router.experts[-1] = replace(ask_experts(SQUARE, 3, [0], features=DISK).experts[0], expert=0)
    del router.experts[0]
    with pytest.raises(EvidenceError, match="differ in k"):
        router.verify()
    pairs = [set(pair) for pair in itertools.combinations(range(16), 2)]
    with pytest.raises(EvidenceError, match="open after 1000 branches"):
        kernel.hitting_set(pairs, 13, most=1000)
    with pytest.raises(EvidenceError, match="too many to try"):
        kernel.hitting_set([{n, 1100} for n in range(1100)], 1099)
    far = [set(range(60 * n, 60 * n + 60)) for n in range(10)]
    assert kernel.hitting_set(far, 9, most=1) is None  # ten disjoint ones take ten


@pytest.mark.parametrize(
    ("name", "more", "less", "said"),
    [
        ("LEAST", 0.0, 0.0, "denormal numbers"),
        ("HAIR", 1 + 2.0**-52, 1.0, "does not round to the nearest"),
        ("HAIR", 1.0, 1 - 2.0**-53, "does not round to the nearest"),
    ],
)
def test_nothing_is_proven_where_sums_come_out_otherwise(name, more, less, said, monkeypatch):
    class Other(float):
        __add__ = __radd__ = lambda self, other: more  # type: ignore[assignment]
        __rsub__ = lambda self, other: less  # type: ignore[assignment]  # noqa: E731

    layer = SoftmaxLayer([[5e-324], [0.0]])
    found, box = scan(layer), Box(1.0)
    monkeypatch.setattr(rounding, name, Other(getattr(rounding, name)))
    for prove, *about in (
        (found.verify,), (scan, layer), (ceilings, layer), (Checker, layer, box),
        (kernel.certify_evidence, layer, box, 1, Twin(0)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            prove(*about)


IN_ANOTHER_MODE = """
import ctypes
libm = ctypes.CDLL("libm.so.6")
usual = ctypes.create_string_buffer(64)
libm.fegetenv(usual)
other = ctypes.create_string_buffer(usual.raw, 64)
mode = int.from_bytes(usual[28:32], "little") | {mode:#x}
other[28:32] = mode.to_bytes(4, "little")
libm.fesetenv(other)
import numpy as np  # BLAS starts its threads
import os
from softgeom.certifying.checker import Checker
from softgeom.certifying.kernel import verify_findings
from softgeom.certifying.verdict import Finding, Witness
from softgeom.layer import Box, SoftmaxLayer
from softgeom.threads import one_thread
{before}
C, d, n, low = 1024, 256, 128, 2.0**-1023
W, b, points = np.zeros((C, d)), np.zeros(C), np.full((n, d), low)
W[C // 2:], b[0] = 2.0**38, 2.0**-1000
for t in range(1, n):
    W[-t, t], points[t, t] = 2.0**39, 1.0
claims = [Finding(-t % C, Witness(points[t]), "", 0, 2.0**-1001, 0.0) for t in range(n)]
try:
    verify_findings(SoftmaxLayer(W, b), Box(1.0, low=low), claims)
    print("proven")
except ValueError as error:
    print(error)
"""


# what a process does before it is asked
THREADS_ALONE = "libm.fesetenv(usual)"
# products of the thread that asks were right, and those of all threads, before there were others
ONE_BEFORE = """
libm.fesetenv(usual)
with one_thread():
    Checker(SoftmaxLayer([[1.0]]), Box(1.0))
"""
FORK_BEFORE = """
libm.fesetenv(usual)
if os.fork():
    os.wait()
    os._exit(0)
Checker(SoftmaxLayer([[1.0]]), Box(1.0))
libm.fesetenv(other)
if not os.fork():
    os._exit(0)
np.eye(256) @ np.eye(256)  # BLAS starts its threads again
libm.fesetenv(usual)
"""


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="writes MXCSR by glibc"
)
@pytest.mark.parametrize(
    ("mode", "before", "said"),
    [
        pytest.param(0x0040, THREADS_ALONE, "its matrix products", id="threads flush operands"),
        pytest.param(0x8040, "", "denormal numbers", id="all flush"),
        pytest.param(0x4000, "", "does not round to the nearest", id="all round up"),
        pytest.param(0x0000, THREADS_ALONE, "Class 0 (0)", id="as usual"),
        pytest.param(0x0040, ONE_BEFORE, "its matrix products", id="one thread was right"),
        pytest.param(0x0040, FORK_BEFORE, "its matrix products", id="threads before were right"),
    ],
)
def test_nothing_is_proven_where_the_standard_model_does_not_hold(mode, before, said):
    """Class 0 is behind half of the classes at every point of the box. Where the threads of BLAS
    take operands below the normal range for zero, while the thread that asks does not, the products
    of those classes vanish at the point.
    """
    program = IN_ANOTHER_MODE.format(mode=mode, before=before)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    command = [sys.executable, "-c", program]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True)
    if said == "its matrix products" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("BLAS starts no thread here")
    assert said in answer.stdout, answer.stderr


def test_bounds_of_probability_ask_for_the_mode_whenever_they_multiply(monkeypatch):
    """Whoever holds a Certifier may have changed it since."""
    certifier = Certifier(SoftmaxLayer([[1.0], [0.0]]), Box(1.0))
    asked: list[bool] = []
    monkeypatch.setattr(bound, "demand_standard_model", lambda: asked.append(True))
    certifier.ceilings(np.zeros((1, 1)), np.array([0]), np.array([0]))
    certifier.floors(np.zeros((1, 1)), [Target(np.array([0]), np.ones(1))], np.array([0]))
    certifier.blocking_ceiling(0, [1], [1.0])
    assert len(asked) == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_is_proven_where_products_are_not_as_they_should_be(dtype, monkeypatch):
    monkeypatch.setattr(rounding, "lasting_threads", tuple)  # none that would be remembered
    monkeypatch.setattr(rounding, "_multiplies_well", lambda asked: True)
    Checker(SoftmaxLayer([[1.0]]), Box(1.0))
    monkeypatch.setattr(rounding, "_multiplies_well", lambda asked: asked != dtype)
    with pytest.raises(ValueError, match="its matrix products"):
        Checker(SoftmaxLayer([[1.0]]), Box(1.0))


def flushed(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return np.where(abs(rows) < np.finfo(rows.dtype).tiny, 0, rows) @ columns


def fewer_digits(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """As some libraries multiply when a variable of the environment says so."""
    short = rows.astype({4: np.float16, 8: np.float32}[rows.itemsize]).astype(rows.dtype)
    return np.where(abs(rows) < np.finfo(rows.dtype).tiny, rows, short) @ columns


def directed(rows: np.ndarray, columns: np.ndarray, way: float) -> np.ndarray:
    """Each sum rounded up, or down, by Fractions."""
    found = rows @ columns
    for place in np.ndindex(found.shape):
        row, column = rows[place[0]], columns[:, place[1]]
        used = np.flatnonzero(row).tolist()
        exact = sum(Fraction(float(row[k])) * Fraction(float(column[k])) for k in used)
        if way * (exact - Fraction(float(found[place]))) > 0:
            found[place] = np.nextafter(found[place], found.dtype.type(way * np.inf))
    return found


FLAWS = {
    "operands are flushed": flushed,
    "fewer digits": fewer_digits,
    "rounded up": lambda rows, columns: directed(rows, columns, 1.0),
    "rounded down": lambda rows, columns: directed(rows, columns, -1.0),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("flaw", [None, *FLAWS])
def test_a_thread_whose_products_are_wrong_is_noticed(flaw, dtype, monkeypatch):
    """Also when it computes four rows of a product, and all others are right."""

    class Matrix(np.ndarray):
        def __matmul__(self, other: np.ndarray) -> np.ndarray:
            left, right = np.asarray(self), np.asarray(other)
            found = left @ right
            if flaw:
                found[-4:] = FLAWS[flaw](left[-4:], right)
            return found

    zeros = np.zeros
    monkeypatch.setattr(np, "zeros", lambda *shape: zeros(*shape).view(Matrix))
    assert rounding._multiplies_well(dtype) == (flaw is None)


def test_what_the_caller_lets_floats_raise_changes_no_verdict():
    rng = np.random.default_rng(0)
    layer = SoftmaxLayer(rng.normal(size=(80, 3)) * 1e-310, rng.normal(size=80) * 1e-310)
    with np.errstate(all="raise"):
        found = scan(layer, features=Unbounded())
        assert found.verify()
        assert not found.counts["undecided"]
        assert ask(layer, [Order([[0], [1]], rest=True)]).verify()
        assert ceilings(layer, [0]).verify()


@pytest.mark.parametrize("change", [{"index": 0.5}, {"margin": 2**60 + 1}, {"radius": 0}])
def test_numbers_of_another_type_are_no_claim(change: dict[str, float]):
    layer = SoftmaxLayer([[2.0**60], [0.0]])
    finding = Finding(0, Witness(np.ones(1)), "", 0, 2.0**60, 0.25)
    kernel.verify_findings(layer, Box(1.0), [finding])
    refused(r"none of the layer|must be floats", layer, Box(1.0), replace(finding, **change))


def test_a_point_that_float64_would_move_is_none():
    checker = Checker(SoftmaxLayer([[1.0], [0.0]]), Box(1.0))
    assert checker.margin(wins(0), np.array([1])) == pytest.approx(1)
    for point in (np.array([1 - np.longdouble(2) ** -60]), np.array([2**53 + 1]), np.array([1j])):
        for question in (
            lambda point=point: checker.margin(wins(0), point),
            lambda point=point: checker.certify(point[None], np.array([0])),
        ):
            with pytest.raises(ValueError, match="A point"):
                question()


def test_a_point_that_its_unit_would_move_into_the_set_is_outside():
    checker = Checker(SoftmaxLayer([[1.0], [0.0]], [1.0, 0.0]), Box(1e30, low=0.0))
    for value, inside in ((-5e-324, False), (5e-324, True), (1e30, True)):
        assert checker.margin(wins(0), np.array([value])) == (
            pytest.approx(1 + value) if inside else -np.inf
        )
    assert checker.contains(np.array([[-5e-324], [1.0], [-1.0]])).tolist() == [False, True, False]


def test_a_margin_that_float64_misses_by_millions_is_confirmed():
    """w x is 2^78 + 2^52 + 2^24, which float64 rounds down by 2^24; that much the class is ahead,
    and there it seems to be behind.
    """
    side = 2.0**39 + 2.0**12
    layer = SoftmaxLayer([[side], [0.0]], [-(2.0**78) - 2.0**52, 2.0**20])
    finding = Finding(0, Witness(np.array([side])), "", 0, 2.0**24 - 2.0**20, 0.0)
    kernel.verify_findings(layer, Box(2.0**39 + 2.0**13), [finding])
    refused("the stored margin", layer, Box(2.0**40), replace(finding, margin=2.0**24))
