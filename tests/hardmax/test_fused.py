"""The compiled loops against the recorded way and the definition, ties included."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.hardmax.dynamics import hardmax_step
from papers.hardmax.reviews import Bags
from papers.hardmax.sentiment import Classifier, Recipe, logits, tensors
from papers.hardmax.training import fit

fused = pytest.importorskip("papers.hardmax.fused", exc_type=ImportError)
WORDS = 30


def reviews(seed, number=7, width=12):
    rng = np.random.default_rng(seed)
    there = np.arange(width) < rng.integers(1, width + 1, number)[:, None]
    counts = np.where(there, rng.integers(1, 4, (number, width)), 0).astype(np.float32)
    words = np.stack([rng.permutation(WORDS)[:width] for _ in range(number)]).astype(np.int32)
    return Bags(words, counts), rng.random(number)


def classifier(recipe, seed=0, equal=0):
    """In double precision, decoder not zero; the first `equal` words share one embedding."""
    rng = np.random.default_rng(seed)
    E = rng.normal(size=(WORDS, recipe.dimension))
    E[:equal] = E[0]
    model = Classifier(torch.from_numpy(E), recipe)
    with torch.no_grad():
        model.w.copy_(torch.from_numpy(rng.normal(size=recipe.dimension)))
        model.v.fill_(0.3)
    return model


@given(
    seed=st.integers(0, 10**6),
    d=st.sampled_from([1, 2, 3, 8]),
    alpha=st.floats(0.05, 4.0),
    layers=st.integers(0, 6),
    temperature=st.sampled_from([0.0, 0.01, 0.3]),
    equal=st.sampled_from([0, 4]),
)
@settings(max_examples=25)
def test_gradients_equal_those_of_autograd(seed, d, alpha, layers, temperature, equal):
    bags, goals = reviews(seed)
    attention = "softmax" if temperature else "hard"
    hot = temperature or 1.0
    recipe = Recipe(d, layers, alpha, train_alpha=True, attention=attention, temperature=hot)
    model = classifier(recipe, seed, equal)
    found = model(*tensors(bags, slice(None), model))
    loss = F.binary_cross_entropy_with_logits(found, torch.from_numpy(goals))
    loss.backward()
    rates = dict.fromkeys((model.embedding, model.step, model.w, model.v), 1.0)
    step = fused.FusedStep(model, rates)
    step._descend = lambda rate: None
    assert step(bags.words, bags.counts, goals, 0.0) == pytest.approx(loss.item(), rel=1e-12)
    for p, _, _, gradient, _, _ in step._slots:
        expected = np.zeros(p.numel()) if p.grad is None else p.grad.numpy().reshape(-1)
        # Where words are equal they tie, and the two ways may hand the gradient to different ones
        # of them: only its sum is defined.
        if equal and p is model.embedding and attention == "hard":
            gradient, expected = (
                np.r_[g.reshape(WORDS, d)[:equal].sum(0), g[equal * d :]]
                for g in (gradient, expected)
            )
        np.testing.assert_allclose(gradient, expected, rtol=1e-8, atol=1e-11 / hot)


@given(
    seed=st.integers(0, 10**6),
    d=st.sampled_from([1, 2, 3, 8]),
    layers=st.integers(0, 8),
    equal=st.sampled_from([0, 10]),
    grid=st.booleans(),
)
@settings(max_examples=50)
def test_means_follow_the_definition_with_equal_and_with_tied_tokens(seed, d, layers, equal, grid):
    rng = np.random.default_rng(seed)
    if grid:
        # On a grid of 3^d points almost everything ties, zero tokens too. One layer: after it
        # rounding would decide what is tied in exact arithmetic.
        E, layers = rng.integers(-1, 2, (WORDS, d)).astype(float), 1
    else:
        E = rng.normal(size=(WORDS, d))
        E[:equal] = 2 * E[0]
    bags = reviews(seed)[0]
    Z, counts = E[bags.words], bags.counts.astype(float)
    for _ in range(layers):
        Z = hardmax_step(Z, np.eye(E.shape[1]), 0.7, counts=counts, check=False)
    expected = (counts[..., None] * Z).sum(1) / counts.sum(1)[:, None]
    found = fused.mean_tokens(E, 0.7, bags.words, bags.counts, layers, 1e-12)
    np.testing.assert_allclose(found, expected, atol=1e-13)


@pytest.mark.parametrize("attention", ["hard", "softmax"])
@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_training_runs_alike_compiled_and_recorded(attention, clip):
    bags, goals = reviews(5, number=40)
    steps = {"epochs": 4, "batch": 7, "clip": clip, "word_dropout": 0.2}
    recipe = Recipe(3, 4, train_alpha=True, attention=attention, temperature=0.1, **steps)
    ways = [fit(classifier(recipe), bags, goals, compiled=compiled) for compiled in (True, False)]
    for one, other in zip(*(way.parameters() for way in ways), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)
    assert not torch.allclose(ways[0].embedding, classifier(recipe).embedding, atol=1e-3)


def test_words_that_never_occur_stay_and_lone_words_decide(monkeypatch):
    bags = Bags(np.array([[3], [4]], np.int32), np.ones((2, 1), np.float32))
    before = classifier(Recipe(epochs=2)).embedding.detach().clone()
    model = fit(classifier(Recipe(epochs=2)), bags, np.array([0.0, 1.0]), compiled=True)
    same = (model.embedding.detach() == before).all(1)
    assert same.sum() == WORDS - 2
    assert not same[3:5].any()
    by_loops = logits(model, bags)
    monkeypatch.setattr("papers.hardmax.sentiment.accelerator", lambda: None)
    np.testing.assert_allclose(by_loops, logits(model, bags), rtol=1e-12)


def test_a_missing_package_is_named(monkeypatch, tiny, model_of):
    monkeypatch.setattr("papers.hardmax.training.accelerator", lambda: None)
    with pytest.raises(ValueError, match=r"needs numba.*softgeom\[fast\]"):
        fit(model_of(Recipe()), tiny, np.arange(6) % 2, compiled=True)
