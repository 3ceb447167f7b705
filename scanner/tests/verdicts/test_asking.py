"""Label sets, retrieval, mixtures, experts: against counts and enumeration of all choices."""

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
from softgeom.asking.experts import ask_experts
from softgeom.asking.label_sets import ask_label_sets, changes, fourier_layer
from softgeom.asking.mixtures import mixed_pair, mixture, survives_mixing
from softgeom.asking.retrieval import (
    ask_together,
    largest_safe_set,
    make_index,
    moment_index,
    never_first,
)
from softgeom.certifying.kernel import hitting_set
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import Captors, EvidenceError
from softgeom.examples import uniform_layer
from softgeom.layer import Ball, Box, SoftmaxLayer, Unbounded
from softgeom.scanner import scan


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


@pytest.mark.parametrize(
    ("labels", "d", "bias"),
    [(6, 2, False), (6, 2, True), (6, 3, False), (5, 1, True), (3, 4, False)],
)
def test_random_layers_have_as_many_sets_as_hyperplanes_have_regions(labels, d, bias):
    rng = np.random.default_rng(0)
    layer = SoftmaxLayer(rng.normal(size=(labels, d)), rng.normal(size=labels) if bias else None)
    found = ask_label_sets(layer, every_set(labels), features=Unbounded())
    assert sum(possible(found)) == regions(labels, d, bias)


@pytest.mark.parametrize(("labels", "k"), [(5, 1), (7, 1), (7, 2), (8, 2)])
def test_the_fourier_layer_predicts_what_changes_at_most_2k_times(labels, k):
    sets = every_set(labels)
    rule = changes([[j in s for j in range(labels)] for s in sets]) <= 2 * k
    found = possible(ask_label_sets(fourier_layer(labels, k), sets, features=Ball(1.0)))
    assert found == rule.tolist()
    assert all(answer for s, answer in zip(sets, found, strict=True) if len(s) <= k)
    assert sum(found) == regions(labels, 2 * k + 1, bias=False)


def test_slack_only_adds_label_sets():
    sets, slack = every_set(7), np.random.default_rng(1).normal(size=(7, 1))
    before = possible(ask_label_sets(fourier_layer(7, 2), sets, features=Ball(1.0)))
    after = possible(ask_label_sets(fourier_layer(7, 2, slack), sets, features=Ball(1.0)))
    assert all(b or not a for a, b in zip(before, after, strict=True))
    assert sum(after) == regions(7, 6, bias=False)


def test_a_set_is_predicted_where_its_logits_are_positive_and_bad_ones_are_refused():
    layer = SoftmaxLayer([[1.0, 0.0], [0.0, 1.0]], [-0.5, -0.5], tokens=["sun", "rain"])
    found = ask_label_sets(layer, [["sun"], ["sun", "rain"], [], [1]], features=Box(1.0))
    for labels, answer in zip(({0}, {0, 1}, set(), {1}), found.answers, strict=True):
        y = layer.logits(answer.evidence.point.astype(float))
        assert set(np.flatnonzero(y > 0)) == labels
    assert ask_label_sets(layer, [["sun"]], features=Box(0.25))[0].verdict == "impossible"
    layer = SoftmaxLayer(np.eye(2), tokens=["sun", "rain"])
    with pytest.raises(ValueError, match=r"labels of a set: .* no class 'snow'"):
        ask_label_sets(layer, [["snow"]])
    with pytest.raises(ValueError, match="not one text"):
        ask_label_sets(layer, ["sun"])
    with pytest.raises(ValueError, match="6 labels allow 1 <= k <= 2, not 3"):
        fourier_layer(6, 3)
    with pytest.raises(ValueError, match="one row per label"):
        fourier_layer(7, 2, np.zeros((6, 1)))


def test_documents_inside_the_hull_are_never_first():
    W = np.random.default_rng(0).normal(size=(40, 3))
    found = never_first(make_index(W))
    assert found.verify()
    won = {f.index for f in found.findings if f.evidence.verdict == "argmaxable"}
    assert won == winners_by_hull(SoftmaxLayer(W))
    unit = W / np.linalg.norm(W, axis=1, keepdims=True)
    assert never_first(make_index(unit)).counts["argmaxable"] == 40


@pytest.mark.parametrize("dimension", [2, 4])
def test_the_moment_curve_returns_every_set_of_half_its_dimension(dimension):
    index, k = moment_index(8, dimension), largest_safe_set(dimension)
    assert np.allclose(np.linalg.norm(index.W, axis=1), 1)
    found = ask_together(index, itertools.combinations(range(8), k))
    assert found.counts["possible"] == len(found)
    assert found.verify()
    more = ask_together(index, itertools.combinations(range(8), k + 1))
    assert more.counts["impossible"] > 0
    assert more.verify()


def test_pairs_never_together_in_the_plane_are_those_that_are_no_neighbours():
    """On a circle a query returns two documents together iff they are next to each other."""
    t = np.sort(np.random.default_rng(2).uniform(0, 2 * np.pi, 7))
    index = make_index(np.stack([np.cos(t), np.sin(t)], axis=1))
    pairs = list(itertools.combinations(range(7), 2))
    found = ask_together(index, pairs)
    expected = [(j - i) % 7 in (1, 6) for i, j in pairs]
    assert [answer.verdict == "possible" for answer in found.answers] == expected


def test_what_is_no_index_is_refused():
    index = make_index(np.eye(3), ["a", "b", "c"])
    with pytest.raises(ValueError, match="has no bias"):
        never_first(SoftmaxLayer(np.eye(3), np.ones(3)))
    with pytest.raises(ValueError, match="documents of a set: no class is named"):
        ask_together(index, [[]])
    with pytest.raises(ValueError, match=r"documents of a set: .* no class 'd'"):
        ask_together(index, [["a", "d"]])
    with pytest.raises(ValueError, match="even number of dimensions"):
        moment_index(5, 3)
    with pytest.raises(ValueError, match="at least one dimension"):
        largest_safe_set(0)


LAYER = uniform_layer(30, 2, seed=1)
UNARGMAXABLE = [
    f.index for f in scan(LAYER, features=Box(5.0)).findings if isinstance(f.evidence, Captors)
]


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
    assert not survives_mixing(order)
    assert order.margin(mixture(layer, X, priors)) > 0.4


def test_which_orders_a_proof_covers_and_what_is_no_mixture():
    assert survives_mixing(Order([[1]], rest=True))
    assert survives_mixing(Order([[1], [2, 3]]))
    assert not survives_mixing(Order([[1], [2]], rest=True))
    assert not survives_mixing(Order([[1, 2]], rest=True))
    layer = SoftmaxLayer(np.eye(2))
    with pytest.raises(ValueError, match="needs components"):
        mixture(layer, np.zeros((3, 2)), [1.0])
    for priors in ([0.5, 0.6], [1.5, -0.5], [np.nan, 1.0]):
        with pytest.raises(ValueError, match="sum to one"):
            mixture(layer, np.zeros((2, 2)), priors)


def truth(W, b, e: int, k: int) -> bool:
    """Whether e beats all but some k - 1 others somewhere in R^d."""
    others = [i for i in range(len(W)) if i != e]
    for ahead in itertools.combinations(others, k - 1):
        kept = [e, *(i for i in others if i not in ahead)]
        if enumerate_verdicts(W[kept], b[kept], ("unbounded",))[0].verdict == "argmaxable":
            return True
    return False


@pytest.mark.parametrize("seed", range(4))
def test_every_expert_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    W = rng.integers(-2, 3, (7, 2))
    b = rng.integers(-1, 2, 7) if seed % 2 else np.zeros(7, np.int64)
    for k in (1, 2, 3):
        found = ask_experts(SoftmaxLayer(W, b), k, features=Unbounded())
        assert found.verify()
        truths = [truth(W, b, e, k) for e in range(7)]
        assert [expert.verdict == "possible" for expert in found.experts] == truths
        assert found.counts["undecided"] == 0


def test_two_fences_keep_an_expert_out_of_the_top_two():
    square = np.array([[2, 2], [2, -2], [-2, 2], [-2, -2]])
    layer = SoftmaxLayer(np.vstack([square, square * 2, [[0, 0]]]))
    (expert,) = ask_experts(layer, 2, [8], features=Ball(1.0)).experts
    assert expert.verdict == "impossible"
    assert expert.check(layer, Ball(1.0))
    assert ask_experts(layer, 5, [8], features=Ball(1.0)).experts[0].verdict == "possible"


def test_few_questions_or_too_many_ways_leave_an_expert_undecided(monkeypatch):
    t = np.linspace(0, 2 * np.pi, 9)[:-1]
    layer = SoftmaxLayer(np.vstack([np.stack([np.cos(t), np.sin(t)], axis=1), [[0.0, 0.01]]]))
    assert ask_experts(layer, 3, [8], features=Ball(1.0)).experts[0].verdict == "impossible"
    assert ask_experts(layer, 3, [8], features=Ball(1.0), most=2).experts[0].verdict == "undecided"

    def give_up(*_: object) -> None:
        raise EvidenceError("Which experts suffice is open after 1000000 branches.")

    monkeypatch.setattr(experts, "hitting_set", give_up)
    (expert,) = ask_experts(layer, 3, [8], features=Ball(1.0)).experts
    assert expert.verdict == "undecided"
    assert expert.check(layer, Ball(1.0))


def test_sets_are_met_and_no_more_are_chosen_than_there_are():
    assert hitting_set([{1, 2}, {2, 3}], 1) == {2}
    assert hitting_set([{1}, {2}], 1) is None
    assert hitting_set([], 0) == set()
    assert hitting_set([{1, 2}, {3, 4}, {1, 4}], 2) is not None
    layer = SoftmaxLayer(np.eye(3))
    for k in (0, 4):
        with pytest.raises(ValueError, match="with 3 experts chooses 1 to 3 of them"):
            ask_experts(layer, k)
    assert ask_experts(layer, 3).counts["possible"] == 3
