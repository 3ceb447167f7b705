"""Reviews cleaned, counted, split; bag of words and teacher where the answer is known."""

import numpy as np
import pandas as pd
import pytest

from papers.hardmax import reviews as prepare
from papers.hardmax.baselines import fit_bag_of_words, fit_teacher
from papers.hardmax.reviews import Bags, tokenise


def test_clean_drops_what_is_not_a_word():
    text = "Well...<br /><br />I DIDN'T like it: 10/10 for http://example.org/page?x=1 only, café!"
    assert prepare.clean(text) == ["well", "didnt", "like", "it", "for", "only", "café"]
    assert prepare.clean("bad<br />film") == ["bad", "film"]  # a tag separates words


def test_bag_counts_distinct_words_and_marks_reviews_without_any():
    lexicon = {}
    tokens = prepare.tokenise(["good film good plot", "the plot", "bad the", "good"], lexicon)
    vocabulary, numbers = prepare.build_vocabulary(tokens, lexicon, least=1)
    assert set(vocabulary) == {"good", "film", "plot", "bad"}  # "the" is a stop word
    assert vocabulary[0] in {"good", "plot"}  # in two reviews each
    bags = prepare.bag(tokens, numbers)
    assert [vocabulary[n] for n in bags.words[0][bags.counts[0] > 0]] == ["good", "film", "plot"]
    np.testing.assert_array_equal(bags.counts, [[2, 1, 1], [1, 0, 0], [1, 0, 0], [1, 0, 0]])
    short = prepare.bag(tokens, numbers, length=3)  # "good film good": the fourth word is cut off
    np.testing.assert_array_equal(short.counts[0], [2, 1])
    np.testing.assert_array_equal(bags.matrix(4).toarray().sum(1), bags.counts.sum(1))
    lexicon = {}
    tokens = prepare.tokenise(["good film", "the of 123", "!!!"], lexicon)
    bags = prepare.bag(tokens, prepare.build_vocabulary(tokens, lexicon, least=1)[1])
    np.testing.assert_array_equal(bags.empty, [False, True, True])


def test_rare_words_are_unknown_and_tokens_and_bags_can_be_cut_and_joined():
    lexicon = {}
    tokens = prepare.tokenise(["good film", "plot", "bad plot plot"], lexicon)
    vocabulary, numbers = prepare.build_vocabulary(tokens, lexicon, least=2)
    assert vocabulary == ["plot"]
    assert numbers[lexicon["film"]] == -1
    with pytest.raises(ValueError, match="No word occurs in 3"):
        prepare.build_vocabulary(tokens, lexicon, least=3)
    part = tokens[np.array([True, False, True])]
    np.testing.assert_array_equal(part.offsets, [0, 2, 5])
    numbers = prepare.build_vocabulary(tokens, lexicon, least=1)[1]
    whole, cut = prepare.bag(tokens, numbers), prepare.bag(part, numbers)
    np.testing.assert_array_equal(cut.counts, whole.counts[[0, 2], : cut.counts.shape[1]])
    joined = prepare.Bags.join(cut, whole[1:2])
    assert len(joined) == 3
    np.testing.assert_array_equal(joined.counts.sum(1), [2, 3, 1])


@pytest.mark.parametrize(
    ("labels", "message"),
    [([0, 2], "training reviews are 0, 2: 0 and 1 are needed"), ([1, 1], "sorted by label")],
)
def test_bad_labels_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        prepare.check_labels(pd.DataFrame({"label": labels}))


def test_validation_blocks_hold_consecutive_file_numbers_of_both_labels():
    names = [f"train/{side}/{n}_7.txt" for side in ("neg", "pos") for n in range(100)]
    frame = pd.DataFrame({"text": names, "label": np.repeat([0, 1], 100), "source_file": names})
    shuffled = frame.sample(frac=1.0, random_state=0)
    blocks = pd.Series(prepare.validation_blocks(shuffled), index=shuffled.index).sort_index()
    expected = np.tile(np.repeat(np.arange(5), 20), 2)
    np.testing.assert_array_equal(blocks, expected)
    unnamed = prepare.validation_blocks(frame.drop(columns="source_file"))
    np.testing.assert_array_equal(unnamed, expected)
    with pytest.raises(ValueError, match="does not look like"):
        prepare.validation_blocks(frame.assign(source_file="review.txt"))


def test_texts_of_the_test_part_are_dropped():
    frame = pd.DataFrame({"text": ["a", "b", "c"], "label": [0, 1, 0]})
    assert prepare.drop_texts_of(frame, frame.iloc[1:2])["text"].tolist() == ["a", "c"]


def test_the_bag_of_words_learns_planted_words_and_reads_a_mean(planted):
    model = fit_bag_of_words(planted["bags"], planted["labels"], len(planted["vocabulary"]))
    assert ((model.logits(planted["test_bags"]) > 0) == (planted["test_labels"] == 1)).mean() > 0.85
    strongest = planted["vocabulary"][np.argsort(-np.abs(model.weights))[: len(planted["planted"])]]
    assert set(strongest) == planted["planted"]
    bags = planted["test_bags"][:20]
    weights = bags.counts / bags.counts.sum(1)[:, None]
    mean = (weights * model.weights[bags.words]).sum(1) + model.bias
    for counts in (bags.counts, 3 * bags.counts):
        np.testing.assert_allclose(model.logits(Bags(bags.words, counts)), mean, rtol=1e-5)


@pytest.mark.parametrize("between", ["", "very "])
def test_the_teacher_sees_runs_of_two_and_three_words(between):
    lexicon = {}
    # no single word tells
    texts = [f"{a} {between}{b}" for b in ("good", "bad") for a in ("not", "so")] * 20
    labels = np.array([0, 1, 1, 0] * 20)
    tokens = tokenise(texts, lexicon)
    teacher = fit_teacher(tokens, labels, len(lexicon))
    assert ((teacher.probabilities(tokens) > 0.5) == labels).all()
