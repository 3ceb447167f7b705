"""Leaders as words: counts by hand on small anatomies, and a lexicon that can disagree."""

import numpy as np
import pytest
import torch

from softgeom.hardmax import leading_words
from softgeom.hardmax.faithfulness import Anatomy, dissect
from softgeom.hardmax.reviews import Bags
from softgeom.hardmax.sentiment import Classifier, Recipe

NAN = np.nan


def anatomy(leader, height, end=None):
    leader, height = np.array(leader, bool), np.array(height, float)
    end = height if end is None else np.array(end, float)
    return Anatomy(leader, leader, height, end, np.zeros_like(height))


@pytest.fixture
def bags():
    words, counts = [[0, 1, 2], [3, 1, 4]], [[1, 2, 1], [1, 1, 1]]
    return Bags(np.array(words, np.int32), np.array(counts, np.float32))


def test_shares_of_the_lexicon_by_hand(bags):
    a = anatomy([[1, 0, 1], [1, 0, 0]], [[5, 0, -1], [-2, 0, 0]])
    found = leading_words.judge_leaders(a, bags, np.array([2.0, NAN, NAN, 1.5, NAN]))
    assert found["leaders"] == 3
    assert found["listed"] == pytest.approx(2 / 3)
    assert found["listed_far"] == 1.0  # the farthest tenth is word 0 alone
    assert found["agree_far"] == 1.0
    assert found["agree"] == 0.5  # word 3 stands on the negative side
    assert found["listed_all_words"] == pytest.approx(2 / 6)


def test_frequent_leaders_of_confident_and_correct_reviews(bags):
    a = anatomy([[1, 1, 0], [0, 1, 0]], [[2, -1, 0], [0, -3, 0]])
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
    follows, stays = (anatomy(nothing, nothing, end) for end in (ends + labels[:, None], ends))
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
    a = anatomy([[0, 0, 0]] * 2, [[0, 0, 0]] * 2, end=[[1, 2, -1], [-1, -1, 3]])
    found = leading_words.head_count(a, bags, np.array([2.0, -1.0]))
    # one word once, one twice, of four
    assert found["share_positive_side_if_positive"] == pytest.approx(3 / 4)
    assert found["share_positive_side_if_negative"] == pytest.approx(1 / 3)
    assert found["head_count_predicts"] == 1.0
    assert leading_words.head_count(a, bags, np.array([-1.0, 2.0]))["head_count_predicts"] == 0.0
    one_sided = leading_words.head_count(a, bags, np.array([2.0, 1.0]))
    assert np.isnan(one_sided["share_positive_side_if_negative"])
