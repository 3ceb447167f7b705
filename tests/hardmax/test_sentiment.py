"""The classifier: padding, gradients, starts, alpha, and what it must learn on planted words."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from softgeom.hardmax.baselines import fit_bag_of_words, fit_teacher  # noqa: E402 - after importorskip
from softgeom.hardmax.reviews import Bags, tokenise  # noqa: E402
from softgeom.hardmax.sentiment import (  # noqa: E402
    Classifier,
    Recipe,
    accuracy,
    fit,
    in_softmax,
    logits,
    polarity_start,
    random_start,
    train,
)


@pytest.fixture
def tiny():
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 3, (6, 9)).astype(np.float32)
    for r in range(6):
        counts[r, 3 + r :] = 0
    return Bags(np.stack([rng.permutation(40)[:9] for _ in range(6)]).astype(np.int32), counts)


def model_of(recipe, size=40):
    model = Classifier(random_start(size, recipe), recipe)
    with torch.no_grad():
        model.w.copy_(torch.tensor([1.0, -0.5, 0.3][: recipe.dimension]))
        model.v.fill_(0.1)
    return model


@pytest.mark.parametrize("dimension", [2, 3])
def test_padding_never_counts(tiny, dimension):
    model = model_of(Recipe(dimension=dimension)).double()
    together = logits(model, tiny)
    for r in range(6):
        n = 3 + r
        np.testing.assert_allclose(
            logits(model, Bags(tiny.words[r : r + 1, :n], tiny.counts[r : r + 1, :n])), together[r], atol=1e-12
        )
    noisy = np.where(tiny.counts > 0, tiny.words, 39).astype(np.int32)
    np.testing.assert_allclose(logits(model, Bags(noisy, tiny.counts)), together, atol=1e-12)


def test_a_repeated_word_is_one_token_with_count_two():
    model = model_of(Recipe()).double()
    once = Bags(np.array([[4, 7, 9]], np.int32), np.array([[2.0, 1.0, 1.0]], np.float32))
    twice = Bags(np.array([[4, 4, 7, 9]], np.int32), np.ones((1, 4), np.float32))
    np.testing.assert_allclose(logits(model, once), logits(model, twice), atol=1e-9)


@pytest.mark.parametrize("train_alpha", [False, True])
def test_gradient_of_the_loss(tiny, train_alpha):
    recipe = Recipe(train_alpha=train_alpha, alpha=0.6, floor=0.1, layers=4)
    model = model_of(recipe).double()
    words, counts = torch.from_numpy(tiny.words), torch.from_numpy(tiny.counts).double()
    model(words, counts).sum().backward()
    step = 1e-6
    for parameter, place in [
        (model.embedding, (int(tiny.words[0, 0]), 1)),
        (model.w, (0,)),
        *([(model.log_step, ())] if train_alpha else []),
    ]:
        with torch.no_grad():
            values = []
            for sign in (1, -1):
                parameter[place] += sign * step
                values.append(model(words, counts).sum().item())
                parameter[place] -= sign * step
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(parameter.grad[place].item(), rel=1e-5, abs=1e-8)


def test_alpha_stays_above_its_floor_and_positive(planted):
    recipe = Recipe(alpha=0.2, train_alpha=True, floor=0.1, epochs=3, learning_rate=0.5, batch=200)
    assert train(recipe, planted["bags"], planted["labels"], len(planted["vocabulary"])).alpha > 0.1
    with pytest.raises(ValueError, match="above its floor"):
        Classifier(torch.zeros(3, 2), Recipe(alpha=0.1, floor=0.1))


def test_planted_words_are_learnt_and_lead(planted, trained):
    from softgeom.hardmax.faithfulness import dissect

    model = trained.model()
    assert accuracy(logits(model, planted["test_bags"]), planted["test_labels"]) > 0.8
    anatomy = dissect(model, planted["test_bags"])
    leading = planted["vocabulary"][planted["test_bags"].words[anatomy.leader]]
    assert np.mean([word in planted["planted"] for word in leading]) > 0.6  # a tenth of all words is planted


def test_training_is_reproducible_and_follows_the_seed(planted):
    few = np.arange(200)
    runs = [
        train(Recipe(epochs=1, seed=s), planted["bags"][few], planted["labels"][few], len(planted["vocabulary"]))
        for s in (0, 0, 1)
    ]
    np.testing.assert_array_equal(runs[0].embedding, runs[1].embedding)
    assert not np.array_equal(runs[0].embedding, runs[2].embedding)


def test_a_cold_surrogate_decides_like_the_hard_model(planted, trained):
    part = planted["test_bags"][:300]
    hard = logits(trained.model(), part) > 0
    assert (hard == (logits(in_softmax(trained.model(), 1e-4), part, hard=False) > 0)).mean() > 0.97
    warm = logits(in_softmax(trained.model(), 1.0), part, hard=False)
    assert not np.allclose(warm, logits(trained.model(), part), atol=1e-3)
    np.testing.assert_array_equal(logits(in_softmax(trained.model(), 1.0), part) > 0, hard)  # hard=True overrides


def test_zero_layers_are_the_mean_embedding(tiny):
    model = model_of(Recipe()).double()
    Z = model.embedding.detach().numpy()[tiny.words]
    mean = (tiny.counts[..., None] * Z).sum(1) / tiny.counts.sum(1)[:, None]
    np.testing.assert_allclose(
        logits(model, tiny, layers=0), mean @ model.w.detach().numpy() + model.v.item(), atol=1e-12
    )


def test_polarity_start_orders_words_on_an_arc():
    weights = np.linspace(-4, 4, 41)
    Z = polarity_start(weights, Recipe(start="polarity", dimension=2)).numpy()
    assert np.corrcoef(Z[:, 0], weights)[0, 1] > 0.95
    assert np.linalg.norm(Z[[0, -1]], axis=1).min() > np.linalg.norm(Z[20])  # the polar words are longer


@pytest.mark.parametrize(
    ("targets", "message"),
    [(np.ones(6), "sorted by label"), (np.ones(5), "6 reviews but 5 targets")],
)
def test_training_refuses_bad_targets(tiny, targets, message):
    with pytest.raises(ValueError, match=message):
        fit(model_of(Recipe()), tiny, targets)


def test_training_refuses_empty_reviews(tiny):
    empty = Bags(tiny.words, np.where(np.arange(6)[:, None] == 2, 0, tiny.counts))
    with pytest.raises(ValueError, match="1 reviews hold no known word"):
        fit(model_of(Recipe()), empty, np.array([0, 1, 0, 1, 0, 1]))


def test_unknown_starts_are_refused(tiny):
    with pytest.raises(ValueError, match="Unknown start"):
        train(Recipe(start="zero"), tiny, np.array([0, 1, 0, 1, 0, 1]), 40)
    with pytest.raises(ValueError, match="needs the words"):
        train(Recipe(start="polarity"), tiny, np.array([0, 1, 0, 1, 0, 1]), 40)


def test_baselines_learn_planted_words(planted):
    model = fit_bag_of_words(planted["bags"], planted["labels"], len(planted["vocabulary"]))
    assert accuracy(model.logits(planted["test_bags"]), planted["test_labels"]) > 0.85
    strongest = planted["vocabulary"][np.argsort(-np.abs(model.weights))[: len(planted["planted"])]]
    assert set(strongest) == planted["planted"]


def test_the_teacher_sees_pairs_of_words():
    lexicon = {}
    texts = ["not good", "good", "not bad", "bad"] * 20  # no single word tells the label
    labels = np.array([0, 1, 1, 0] * 20)
    tokens = tokenise(texts, lexicon)
    teacher = fit_teacher(tokens, labels, len(lexicon))
    assert ((teacher.probabilities(tokens) > 0.5) == labels).all()
