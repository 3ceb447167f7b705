"""Label sets, retrieval, mixtures, candidates, experts: against counts and enumeration."""

import itertools
from math import comb

import numpy as np
import pytest
from enumeration import enumerate_verdicts
from hypothesis import given, settings
from hypothesis import strategies as st
from qhull import winners_by_hull

from softgeom.asking import experts
from softgeom.asking.ask import ask
from softgeom.asking.candidates import ask_among, find_blocking_set
from softgeom.asking.experts import ask_experts
from softgeom.asking.label_sets import ask_label_sets
from softgeom.asking.mixtures import mixed_pair, mixture, survives_mixing
from softgeom.asking.retrieval import ask_together, largest_safe_set, make_index, never_first
from softgeom.certifying.kernel import hitting_set
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import EvidenceError
from softgeom.examples import uniform_layer
from softgeom.layer import Ball, Box, SoftmaxLayer, Unbounded
from softgeom.scanner import scan

SQUARE = SoftmaxLayer(
    [[2, 2], [2, -2], [-2, 2], [-2, -2], [1, 0]], tokens=["a", "b", "c", "d", "inside"]
)
WEATHER = SoftmaxLayer(np.eye(2), [-0.5, -0.5], tokens=["sun", "rain"])
INDEX = make_index(np.eye(3), ["a", "b", "c"])


def regions(labels: int, d: int, bias: bool) -> int:
    """Of so many hyperplanes in general position (Schläfli 1901, Cover 1965)."""
    if bias:
        return sum(comb(labels, k) for k in range(d + 1))
    return 2 * sum(comb(labels - 1, k) for k in range(d))


def every_set(labels: int) -> list[tuple[int, ...]]:
    return [s for k in range(labels + 1) for s in itertools.combinations(range(labels), k)]


def possible(answers) -> list[bool]:
    assert answers.verify()
    assert answers.counts["undecided"] == 0
    return [answer.verdict == "possible" for answer in answers.answers]


def winners(found) -> set[int]:
    assert found.verify()
    return {f.index for f in found.findings if f.evidence.verdict == "argmaxable"}


def wins_among(W, t: int, rivals, b=None) -> bool:
    """Whether t wins among the rivals somewhere in R^d, by enumeration."""
    rows = np.array(W)[[t, *rivals]]
    bias = np.zeros(len(rows), np.int64) if b is None else b[[t, *rivals]]
    return enumerate_verdicts(rows, bias, ("unbounded",))[0].verdict == "argmaxable"


# ---- Label sets


@pytest.mark.parametrize(
    ("labels", "d", "bias"),
    [(6, 2, False), (6, 2, True), (6, 3, False), (5, 1, True), (3, 4, False)],
)
def test_random_layers_have_as_many_sets_as_hyperplanes_have_regions(labels, d, bias):
    rng = np.random.default_rng(0)
    layer = SoftmaxLayer(rng.normal(size=(labels, d)), rng.normal(size=labels) if bias else None)
    found = ask_label_sets(layer, every_set(labels), features=Unbounded())
    assert sum(possible(found)) == regions(labels, d, bias)


def test_a_set_is_predicted_where_its_logits_are_positive():
    found = ask_label_sets(WEATHER, [["sun"], ["sun", "rain"], [], [1]], features=Box(1.0))
    for labels, answer in zip(({0}, {0, 1}, set(), {1}), found.answers, strict=True):
        y = WEATHER.logits(answer.evidence.point.astype(float))
        assert set(np.flatnonzero(y > 0)) == labels
    assert ask_label_sets(WEATHER, [["sun"]], features=Box(0.25))[0].verdict == "impossible"


# ---- Retrieval


def test_documents_inside_the_hull_are_never_first():
    W = np.random.default_rng(0).normal(size=(40, 3))
    assert winners(never_first(make_index(W))) == winners_by_hull(SoftmaxLayer(W))
    unit = W / np.linalg.norm(W, axis=1, keepdims=True)
    assert never_first(make_index(unit)).counts["argmaxable"] == 40


@pytest.mark.parametrize("dimension", [2, 4])
def test_the_moment_curve_returns_every_set_of_half_its_dimension(dimension):
    t, k = 2 * np.pi * np.arange(8) / 8, largest_safe_set(dimension)
    waves = [wave(j * t) for j in range(1, k + 1) for wave in (np.cos, np.sin)]
    index = make_index(np.column_stack(waves))
    assert all(possible(ask_together(index, itertools.combinations(range(8), k))))
    assert not all(possible(ask_together(index, itertools.combinations(range(8), k + 1))))


def test_pairs_never_together_in_the_plane_are_those_that_are_no_neighbours():
    """On a circle a query returns two documents together iff they are next to each other."""
    t = np.sort(np.random.default_rng(2).uniform(0, 2 * np.pi, 7))
    index = make_index(np.stack([np.cos(t), np.sin(t)], axis=1))
    pairs = list(itertools.combinations(range(7), 2))
    expected = [(j - i) % 7 in (1, 6) for i, j in pairs]
    assert possible(ask_together(index, pairs)) == expected


# ---- Mixtures

LAYER = uniform_layer(30, 2, seed=1)
UNARGMAXABLE = sorted(set(range(30)) - winners(scan(LAYER, features=Box(5.0))))


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_no_mixture_lets_an_unargmaxable_class_win(seed, components):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-5, 5, (200, components, 2))
    X *= rng.choice([0.01, 0.1, 1.0], (200, components, 1))
    P = mixture(LAYER, X, rng.dirichlet(np.full(components, 0.5), 200))
    assert np.allclose(P.sum(axis=1), 1)
    others = np.delete(np.arange(LAYER.classes), UNARGMAXABLE)
    assert (P[:, UNARGMAXABLE].max(axis=1) <= P[:, others].max(axis=1) * (1 + 1e-12)).all()


def test_a_mixture_obeys_an_order_that_one_softmax_cannot():
    layer, order, X, priors = mixed_pair()
    assert ask(layer, [order])[0].verdict == "impossible"
    assert order.margin(mixture(layer, X, priors)) > 0.4
    for other, survives in (
        (order, False), (Order([[1]], rest=True), True), (Order([[1], [2, 3]]), True),
        (Order([[1], [2]], rest=True), False), (Order([[1, 2]], rest=True), False),
    ):  # fmt: skip
        assert survives_mixing(other) is survives


# ---- Candidates


def test_a_mask_frees_what_everybody_blocks():
    assert scan(SQUARE, [4])["inside"].evidence.verdict == "unargmaxable"
    assert ask_among(SQUARE, ["a", "c", "inside"]).counts["possible"] == 3
    assert ask_among(SQUARE, ["a", "b", "c", "d"], ["inside"])[0].verdict == "impossible"
    assert ask_among(SQUARE, ["inside"])[0].verdict == "possible"  # alone
    layer = uniform_layer(40, 2, seed=2)
    won = winners(scan(layer))
    assert possible(ask_among(layer, range(40))) == [t in won for t in range(40)]


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=3, max_size=7))
def test_blocking_sets_are_minimal_and_small(rows):
    W = np.array(rows)
    found = find_blocking_set(SoftmaxLayer(W), 0, features=Unbounded())
    assert (found is None) == wins_among(W, 0, range(1, len(W)))
    if found is None:
        return
    assert found.verify()
    assert found.minimal
    assert len(found.rivals) <= 3  # Helly: d + 1
    assert not wins_among(W, 0, found.rivals)
    for fewer in itertools.combinations(found.rivals.tolist(), len(found.rivals) - 1):
        assert not fewer or wins_among(W, 0, fewer)


def test_a_blocking_set_among_candidates_names_candidates_only():
    W = np.vstack([SQUARE.W * 2, SQUARE.W])  # class 9 sits inside both squares
    found = find_blocking_set(SoftmaxLayer(W), 9, range(5, 10), features=Box(1.0))
    assert set(found.rivals) < set(range(5, 9))
    assert found.class_ == 9


# ---- Experts


@pytest.mark.parametrize("seed", range(3))
def test_every_expert_against_enumeration(seed):
    """One is chosen iff it beats all but some k - 1 others somewhere."""
    rng = np.random.default_rng(seed)
    W = rng.integers(-2, 3, (7, 2))
    b = rng.integers(-1, 2, 7) if seed % 2 else np.zeros(7, np.int64)
    for k in (1, 2, 3):
        found = ask_experts(SoftmaxLayer(W, b), k, features=Unbounded())
        assert found.verify()
        assert found.counts["undecided"] == 0
        for e, expert in enumerate(found.experts):
            others = [i for i in range(7) if i != e]
            kept = itertools.combinations(others, 7 - k)
            chosen = any(wins_among(W, e, rivals, b) for rivals in kept)
            assert (expert.verdict == "possible") == chosen


def test_few_questions_or_too_many_ways_leave_an_expert_undecided(monkeypatch):
    """Two fences keep an expert out of the top two, and an octagon out of the top three."""
    square, ball = SQUARE.W[:4], Ball(1.0)
    fences = SoftmaxLayer(np.vstack([square, square * 2, [[0, 0]]]))
    t = np.linspace(0, 2 * np.pi, 9)[:-1]
    octagon = SoftmaxLayer(np.vstack([np.stack([np.cos(t), np.sin(t)], axis=1), [[0.0, 0.01]]]))
    for layer, k, options, verdict in (
        (fences, 2, {}, "impossible"), (fences, 5, {}, "possible"), (octagon, 3, {}, "impossible"),
        (octagon, 3, {"most": 2}, "undecided"),
    ):  # fmt: skip
        (expert,) = ask_experts(layer, k, [8], features=ball, **options).experts
        assert expert.verdict == verdict
        assert expert.check(layer, ball)

    def give_up(*_: object) -> None:
        raise EvidenceError("Which experts suffice is open after 1000000 branches.")

    monkeypatch.setattr(experts, "hitting_set", give_up)
    (expert,) = ask_experts(octagon, 3, [8], features=ball).experts
    assert expert.verdict == "undecided"
    assert expert.check(octagon, ball)


def test_sets_are_met_and_no_more_are_chosen_than_there_are():
    assert hitting_set([{1, 2}, {2, 3}], 1) == {2}
    assert hitting_set([{1}, {2}], 1) is None
    assert hitting_set([], 0) == set()
    assert hitting_set([{1, 2}, {3, 4}, {1, 4}], 2) is not None
    assert ask_experts(INDEX, 3).counts["possible"] == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ask_label_sets(WEATHER, [["snow"]]), r"labels of a set: .* no class 'snow'"),
        (lambda: ask_label_sets(WEATHER, ["sun"]), "not one text"),
        (lambda: never_first(WEATHER), "has no bias"),
        (lambda: ask_together(INDEX, [[]]), "documents of a set: no class is named"),
        (lambda: ask_together(INDEX, [["a", "d"]]), r"documents of a set: .* no class 'd'"),
        (lambda: largest_safe_set(0), "at least one dimension"),
        (lambda: mixture(WEATHER, np.zeros((3, 2)), [1.0]), "needs components"),
        *(
            (lambda priors=priors: mixture(WEATHER, np.zeros((2, 2)), priors), "sum to one")
            for priors in ([0.5, 0.6], [1.5, -0.5], [np.nan, 1.0])
        ),
        *(
            (lambda among=among: ask_among(SQUARE, among), message)
            for among, message in (
                ([], "candidates: no class is named"),
                ("ab", "not one text"),
                (["e"], "candidates: the model has no class 'e'"),
                ([7], "no class 7: .* below 5"),
                ([1, 1], "duplicate: 1"),
                ([1.5], "no class 1.5"),
            )
        ),
        (
            lambda: ask_among(SoftmaxLayer([[1.0], [2.0]], tokens=["x", "x"]), ["x"]),
            "are all called 'x'",
        ),
        (lambda: ask_experts(INDEX, 0), "with 3 experts chooses 1 to 3 of them"),
        (lambda: ask_experts(INDEX, 4), "with 3 experts chooses 1 to 3 of them"),
    ],
)
def test_bad_questions_are_refused_in_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
