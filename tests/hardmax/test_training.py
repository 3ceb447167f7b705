"""Training: planted words, alpha on its way, seeds, targets that must be refused."""

import numpy as np
import pytest
import torch

from papers.hardmax.faithfulness import dissect, in_double
from papers.hardmax.reviews import Bags
from papers.hardmax.sentiment import (
    Classifier,
    Recipe,
    accuracy,
    in_softmax,
    logits,
    polarity_start,
)
from papers.hardmax.training import _batches, _thinned, fit, train


def test_a_fixed_alpha_is_approached_geometrically(tiny, model_of):
    seen = []
    # one step an epoch, at 0, 1/4, 1/2 and 3/4 of the way
    model = model_of(Recipe(anneal_from=0.05, epochs=4, batch=6))
    fit(model, tiny, np.arange(6) % 2, after_epoch=lambda *_: seen.append(model.alpha.item()))
    expected = [0.05, 0.05 ** (1 - 0.25 / 0.6), 0.05 ** (1 - 0.5 / 0.6), 1.0]
    np.testing.assert_allclose(seen, expected, rtol=1e-5)


def test_words_are_left_out_but_never_all(planted):
    bags = planted["bags"][:400]
    thin = _thinned(bags, 0.3, np.random.default_rng(0))
    assert thin.counts.sum() / bags.counts.sum() == pytest.approx(0.7, abs=0.02)
    assert not thin.empty.any()
    # padding stays behind the words
    assert (np.diff((thin.counts > 0).astype(int), axis=1) <= 0).all()
    assert not _thinned(bags, 1.0, np.random.default_rng(0)).empty.any()
    assert _thinned(bags, 0.0, np.random.default_rng(0)) is bags


def test_batches_are_a_shuffled_partition_into_similar_lengths():
    lengths = np.random.default_rng(0).integers(1, 60, 130)
    counts = (np.arange(60) < lengths[:, None]).astype(np.float32)
    bags = Bags(np.zeros((130, 60), np.int32), counts)
    batches = _batches(bags, 10, 16, np.random.default_rng(1))
    np.testing.assert_array_equal(np.sort(np.concatenate(batches)), np.arange(130))
    assert max(len(rows) for rows in batches) == 10
    assert np.mean([np.ptp(lengths[rows]) for rows in batches]) < 15  # of 60
    means = [lengths[rows].mean() for rows in batches]
    assert {-1.0, 1.0} <= set(np.sign(np.diff(means)))


def test_planted_words_are_learnt_and_lead(planted, trained):
    model = trained.model()
    # .79 to .85 over seeds
    assert accuracy(logits(model, planted["test_bags"]), planted["test_labels"]) > 0.75
    anatomy = dissect(model, planted["test_bags"])
    leading = planted["vocabulary"][planted["test_bags"].words[anatomy.leader]]
    # a tenth of all words is planted
    assert np.mean([word in planted["planted"] for word in leading]) > 0.6


def test_a_trained_alpha_moves_and_stays_positive(planted):
    recipe = Recipe(alpha=0.2, train_alpha=True, epochs=1, learning_rate=0.5, batch=200)
    trained = train(recipe, planted["bags"], planted["labels"], len(planted["vocabulary"]))
    assert 0 < trained.alpha != pytest.approx(0.2, abs=1e-3)
    assert trained.model().alpha.item() == pytest.approx(trained.alpha)
    with pytest.raises(ValueError, match="must be positive"):
        Classifier(torch.zeros(3, 2), Recipe(alpha=0.0))


@pytest.mark.filterwarnings("error::UserWarning")
def test_training_is_reproducible_and_follows_the_seed(planted):
    """Also on read-only arrays, as parallel workers see large ones."""
    bags, labels, size = planted["bags"][:200], planted["labels"][:200], len(planted["vocabulary"])
    for array in (bags.words, bags.counts, labels):
        array.setflags(write=False)
    runs = [train(Recipe(epochs=1, seed=seed), bags, labels, size) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(runs[0].embedding, runs[1].embedding)
    assert not np.array_equal(runs[0].embedding, runs[2].embedding)


def test_training_refuses_bad_targets_empty_reviews_and_unknown_starts(tiny, model_of):
    for targets, message in ((np.ones(6), "sorted by label"), (np.ones(5), "6 .* 5 targets")):
        with pytest.raises(ValueError, match=message):
            fit(model_of(Recipe()), tiny, targets)
    empty = Bags(tiny.words, np.where(np.arange(6)[:, None] == 2, 0, tiny.counts))
    with pytest.raises(ValueError, match="1 reviews hold no known word"):
        fit(model_of(Recipe()), empty, np.arange(6) % 2)
    for start, message in (("zero", "Unknown start"), ("polarity", "needs a weight for each word")):
        with pytest.raises(ValueError, match=message):
            train(Recipe(start=start), tiny, np.arange(6) % 2, 40)


def test_a_cold_surrogate_decides_like_the_hard_model(planted, trained):
    part = planted["test_bags"][:300]
    exact = in_double(trained.model())
    cold = logits(in_softmax(exact, 1e-6), part, hard=False)
    assert ((logits(exact, part) > 0) == (cold > 0)).mean() > 0.95  # near-ties are left
    warm = logits(in_softmax(trained.model(), 1.0), part, hard=False)
    assert not np.allclose(warm, logits(trained.model(), part), atol=1e-3)
    soft = in_softmax(trained.model(), 1.0)
    # hard=True overrides
    np.testing.assert_array_equal(logits(soft, part), logits(trained.model(), part))
    assert soft.recipe.attention == "softmax"  # for this evaluation only


def test_polarity_start_orders_words_on_an_arc():
    weights = np.linspace(-4, 4, 401)
    Z = polarity_start(weights, Recipe(start="polarity", dimension=2)).numpy()
    assert np.corrcoef(Z[:, 0], weights)[0, 1] > 0.95
    norms = np.linalg.norm(Z, axis=1)
    # the polar words are longer
    assert norms[np.abs(weights) > 3].mean() > norms[np.abs(weights) < 1].mean() + 0.02
