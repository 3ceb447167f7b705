"""Anatomy of reviews and deletion: identities, and a model with a known explanation."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from softgeom.hardmax import faithfulness, trajectory  # noqa: E402 - after importorskip
from softgeom.hardmax.leaders import leader_history  # noqa: E402
from softgeom.hardmax.reviews import Bags  # noqa: E402
from softgeom.hardmax.sentiment import accuracy, in_softmax, logits  # noqa: E402


@pytest.fixture(scope="module")
def anatomy(planted, trained):
    return faithfulness.dissect(trained.model(), planted["test_bags"][:200])


def test_influence_rebuilds_the_logit(planted, trained, anatomy):
    bags, model = planted["test_bags"][:200], faithfulness.in_double(trained.model())
    np.testing.assert_allclose(anatomy.influence.sum(1), 1.0, atol=1e-10)
    rebuilt = (anatomy.influence * anatomy.height).sum(1)
    np.testing.assert_allclose(rebuilt, logits(model, bags), atol=1e-8)
    assert (anatomy.influence[bags.counts == 0] == 0).all()
    ends = (bags.counts * anatomy.end).sum(1) / bags.counts.sum(1)
    np.testing.assert_allclose(ends, logits(model, bags), atol=1e-8)


def test_leaders_are_those_of_the_dynamics(planted, trained, anatomy):
    bags = planted["test_bags"][:20]
    for r in range(20):
        n = int((bags.counts[r] > 0).sum())
        Z = trained.embedding.astype(float)[bags.words[r, :n]]
        states = trajectory(Z, np.eye(2), trained.alpha, 8, counts=bags.counts[r, :n].astype(float))
        history = leader_history(states, np.eye(2), counts=bags.counts[r, :n])
        np.testing.assert_array_equal(anatomy.leader[r, :n], history.any(0))
        np.testing.assert_array_equal(anatomy.at_start[r, :n], history[0])
    assert not anatomy.leader[planted["test_bags"][:200].counts == 0].any()


def test_distance_to_the_limit_is_the_rate(planted, trained):
    found = faithfulness.compare_with_limit(trained.model(), planted["test_bags"][:100])
    assert found.converged
    rate = (1 + trained.alpha) ** -8.0
    assert 0.5 * rate < found.distance < 4 * rate  # late changes of leader slow a few tokens
    assert 1 <= found.clusters < found.words


def test_words_are_chosen_deleted_and_isolated():
    scores = np.array([[3.0, 9.0, 1.0, 99.0], [1.0, 2.0, 3.0, 4.0]])
    counts = np.array([[1, 1, 2, 0], [1, 1, 1, 1]])
    marked = faithfulness.choose(scores, np.array([2, 3]), counts)
    np.testing.assert_array_equal(marked, [[True, True, False, False], [False, True, True, True]])
    bags = Bags(np.array([[5, 6, 7]], np.int32), np.array([[1, 2, 1]], np.float32))
    marked = np.array([[False, True, False]])
    left, alone = bags.without(marked), bags.without(~marked)
    np.testing.assert_array_equal(left.words[left.counts > 0], [5, 7])
    np.testing.assert_array_equal(alone.words[0, 0], 6)
    np.testing.assert_array_equal(alone.counts, [[2, 0, 0]])
    # never empty
    np.testing.assert_array_equal(bags.without(np.ones((1, 3), bool)).counts, bags.counts)


def test_reflecting_every_word_turns_every_decision(planted, trained):
    bags = planted["test_bags"][:50]
    model = faithfulness.in_double(trained.model())
    everything = np.ones_like(bags.counts, bool)
    # Mirroring all tokens at a line through the origin commutes with the dynamics; the line <w, z>
    # + v = 0 passes it at |v| / |w|, so take v = 0.
    model.v.fill_(0.0)
    for chosen, sign in ((everything, -1), (~everything, 1)):
        reflected = faithfulness.reflected_logits(model, bags, chosen)
        np.testing.assert_allclose(reflected, sign * logits(model, bags), atol=1e-8)


def test_probe_explanation_compares_equal_numbers(planted, trained, anatomy):
    bags = planted["test_bags"][:200]
    weights = np.isin(planted["vocabulary"], list(planted["planted"])).astype(float)
    found = faithfulness.probe_explanation(trained.model(), bags, anatomy, weights)
    rows = {row["words"]: row for row in found}
    assert len({round(row["changed_words"], 9) for row in rows.values()}) == 1
    # the planted words decide
    assert rows["random words"]["deleted"] > rows["bag-of-words words"]["deleted"]


def test_measure_reads_one_table_row(planted, trained):
    bags, labels, model = planted["test_bags"], planted["test_labels"], trained.model()
    row = faithfulness.measure(trained, bags, labels, sample=40)
    sampled = faithfulness.dissect(model, bags[np.linspace(0, len(bags) - 1, 40).astype(int)])
    assert row["accuracy"] == accuracy(logits(model, bags), labels) > 0.75  # .79 to .86 over seeds
    alone = accuracy(logits(model, bags, layers=0), labels)
    assert row["without_attention"] == alone != row["accuracy"]
    assert row["leaders_at_start"] == sampled.at_start.sum() / sampled.leader.sum() < 1
    assert row["alpha"] == pytest.approx(1.0)
    assert 0 < row["distance_to_limit"] < 0.05
    assert 1 <= row["clusters"] <= row["leaders"] + 1


def test_a_model_trained_through_softmax_is_dissected_under_the_hard_dynamics(
    planted, trained, anatomy
):
    soft = faithfulness.dissect(in_softmax(trained.model(), 1.0), planted["test_bags"][:200])
    np.testing.assert_array_equal(soft.end, anatomy.end)
