"""Anatomy of reviews and deletion: identities, and a model with a known explanation."""

import numpy as np
import pytest
import torch

from papers.hardmax import faithfulness, leading_words, trajectory
from papers.hardmax.faithfulness import Anatomy, dissect
from papers.hardmax.leaders import leader_history
from papers.hardmax.reviews import Bags
from papers.hardmax.sentiment import Classifier, Recipe, accuracy, logits


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


NAN = np.nan


def made(leader, height, end=None):
    leader, height = np.array(leader, bool), np.array(height, float)
    end = height if end is None else np.array(end, float)
    return Anatomy(leader, leader, height, end, np.zeros_like(height))


@pytest.fixture
def bags():
    words, counts = [[0, 1, 2], [3, 1, 4]], [[1, 2, 1], [1, 1, 1]]
    return Bags(np.array(words, np.int32), np.array(counts, np.float32))


def test_shares_of_the_lexicon_by_hand(bags):
    a = made([[1, 0, 1], [1, 0, 0]], [[5, 0, -1], [-2, 0, 0]])
    found = leading_words.judge_leaders(a, bags, np.array([2.0, NAN, NAN, 1.5, NAN]))
    assert found["leaders"] == 3
    assert found["listed"] == pytest.approx(2 / 3)
    assert found["listed_far"] == 1.0  # the farthest tenth is word 0 alone
    assert found["agree_far"] == 1.0
    assert found["agree"] == 0.5  # word 3 stands on the negative side
    assert found["listed_all_words"] == pytest.approx(2 / 6)


def test_frequent_leaders_of_confident_and_correct_reviews(bags):
    a = made([[1, 1, 0], [0, 1, 0]], [[2, -1, 0], [0, -3, 0]])
    both = leading_words.frequent_leaders(a, bags, np.array([1.0, -1.0]), np.array([1, 0]), top=2)
    assert [row["word"] for row in both] == [1, 0]
    assert both[0] == {"word": 1, "share_of_reviews": 1.0, "height": -2.0}
    one = leading_words.frequent_leaders(a, bags, np.array([1.0, 1.0]), np.array([1, 0]), top=5)
    assert [row["word"] for row in one] == [0, 1]  # the second review is wrong
    with pytest.raises(ValueError, match="No review"):
        leading_words.frequent_leaders(a, bags, np.array([-1.0, 1.0]), np.array([1, 0]), top=5)


def test_context_area_is_one_when_neutral_words_follow_the_label_and_a_half_when_they_stay():
    words = np.tile(np.arange(3, dtype=np.int32), (6, 1))
    bags, labels = Bags(words, np.ones_like(words, np.float32)), np.array([1, 1, 1, 0, 0, 0])
    ends, nothing = np.tile([0.0, 1.0, 5.0], (6, 1)), np.zeros((6, 3))
    follows, stays = (made(nothing, nothing, end) for end in (ends + labels[:, None], ends))
    neutral = np.array([True, True, False])
    assert leading_words.context_area(follows, bags, labels, neutral) == 1.0
    assert leading_words.context_area(follows, bags, 1 - labels, neutral) == 0.0
    assert leading_words.context_area(stays, bags, labels, neutral) == 0.5
    with pytest.raises(ValueError, match="one label"):
        leading_words.context_area(stays, bags, np.ones(6), neutral)


def test_merging_repeated_words_changes_names_and_not_the_dynamics(bags):
    E = torch.randn(5, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    model = Classifier(E, Recipe(alpha=0.8))
    a = dissect(model, bags)
    found = leading_words.compare_with_repeats(model, bags, a)
    assert found.repeating == 0.5
    assert found.lost == (bags.counts > 1)[a.leader].mean()
    assert found.error < 1e-12


def test_heights_are_signed_distances_times_the_decoder():
    model = Classifier(torch.tensor([[1.0, 0.0], [-2.0, 1.0]]), Recipe())
    with torch.no_grad():
        model.w.copy_(torch.tensor([1.0, 2.0]))
        model.v.fill_(-0.5)
    np.testing.assert_allclose(leading_words.heights_of(model, np.array([1, 0])), [-0.5, 0.5])


def test_head_count_by_hand(bags):
    a = made([[0, 0, 0]] * 2, [[0, 0, 0]] * 2, end=[[1, 2, -1], [-1, -1, 3]])
    found = leading_words.head_count(a, bags, np.array([2.0, -1.0]))
    # one word once, one twice, of four
    assert found["share_positive_side_if_positive"] == pytest.approx(3 / 4)
    assert found["share_positive_side_if_negative"] == pytest.approx(1 / 3)
    assert found["head_count_predicts"] == 1.0
    assert leading_words.head_count(a, bags, np.array([-1.0, 2.0]))["head_count_predicts"] == 0.0
    one_sided = leading_words.head_count(a, bags, np.array([2.0, 1.0]))
    assert np.isnan(one_sided["share_positive_side_if_negative"])
