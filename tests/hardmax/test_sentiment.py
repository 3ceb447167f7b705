"""The classifier: padding, counts, starts, the surrogate."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from softgeom.hardmax.faithfulness import in_double  # noqa: E402
from softgeom.hardmax.reviews import Bags  # noqa: E402 - after importorskip
from softgeom.hardmax.sentiment import Recipe, in_softmax, logits, polarity_start  # noqa: E402


@pytest.mark.parametrize("dimension", [2, 3])
def test_padding_never_counts(tiny, model_of, dimension):
    model = model_of(Recipe(dimension=dimension)).double()
    together = logits(model, tiny)
    for r in range(6):
        alone = Bags(tiny.words[[r], : 3 + r], tiny.counts[[r], : 3 + r])
        np.testing.assert_allclose(logits(model, alone), together[r], atol=1e-12)
    noisy = np.where(tiny.counts > 0, tiny.words, 39).astype(np.int32)
    np.testing.assert_allclose(logits(model, Bags(noisy, tiny.counts)), together, atol=1e-12)


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


def test_zero_layers_are_the_mean_embedding(tiny, model_of):
    model = model_of(Recipe()).double()
    Z = model.embedding.detach().numpy()[tiny.words]
    mean = (tiny.counts[..., None] * Z).sum(1) / tiny.counts.sum(1)[:, None]
    expected = mean @ model.w.detach().numpy() + model.v.item()
    np.testing.assert_allclose(logits(model, tiny, layers=0), expected, atol=1e-12)


def test_polarity_start_orders_words_on_an_arc():
    weights = np.linspace(-4, 4, 401)
    Z = polarity_start(weights, Recipe(start="polarity", dimension=2)).numpy()
    assert np.corrcoef(Z[:, 0], weights)[0, 1] > 0.95
    norms = np.linalg.norm(Z, axis=1)
    # the polar words are longer
    assert norms[np.abs(weights) > 3].mean() > norms[np.abs(weights) < 1].mean() + 0.02
