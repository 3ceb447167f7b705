"""Experts among the top k of a router: against enumeration of all choices of who may be ahead."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from enumeration import enumerate_verdicts

from softgeom.bottleneck.asking import experts
from softgeom.bottleneck.asking.experts import ask_experts
from softgeom.bottleneck.certifying.kernel import hitting_set
from softgeom.bottleneck.certifying.verdict import EvidenceError
from softgeom.layer import Ball, SoftmaxLayer, Unbounded


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
        assert [expert.verdict == "possible" for expert in found.experts] == [
            truth(W, b, e, k) for e in range(7)
        ]
        assert found.counts["undecided"] == 0


def test_two_fences_keep_an_expert_out_of_the_top_two():
    square = np.array([[2, 2], [2, -2], [-2, 2], [-2, -2]])
    layer = SoftmaxLayer(np.vstack([square, square * 2, [[0, 0]]]))
    (expert,) = ask_experts(layer, 2, [8], features=Ball(1.0)).experts
    assert expert.verdict == "impossible"
    assert expert.check(layer, Ball(1.0))
    assert ask_experts(layer, 5, [8], features=Ball(1.0)).experts[0].verdict == "possible"


def test_evidence_that_does_not_suffice_is_refused():
    rng = np.random.default_rng(1)
    layer = SoftmaxLayer(rng.normal(size=(10, 2)))
    found = {k: ask_experts(layer, k, features=Ball(1.0)).experts for k in (1, 2)}
    for expert in found[1] + found[2]:
        if expert.verdict == "impossible":
            with pytest.raises(EvidenceError, match="may be enough"):
                replace(expert, k=expert.k + 1, answers=expert.answers[:1]).check(layer, Ball(1.0))
        elif expert.k == 2 and found[1][expert.expert].verdict == "impossible":
            with pytest.raises(EvidenceError, match="may be ahead"):
                replace(expert, k=1).check(layer, Ball(1.0))
    assert {e.verdict for e in found[1] + found[2]} == {"possible", "impossible"}


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
