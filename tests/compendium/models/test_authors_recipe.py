"""The authors' recipe: reviews, splits, a watched training, equal loss."""

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")

from compendium.corpora import published_bags  # noqa: E402 - after importorskip
from compendium.corpora.reviews import generated_reviews  # noqa: E402
from compendium.models import authors_recipe as recipes  # noqa: E402


@pytest.fixture(scope="module")
def data():
    return published_bags.load_published_bags(generated_reviews(), 150, np.random.default_rng(0))


def test_words_are_cleaned_and_made_singular_as_the_authors_script_does():
    text = "The BEST<br />movie... soooo good!! see https://x.y/z, 10/10 don't café_au_lait"
    words = "The BESTmovie soo good see don t caf au lait"
    assert published_bags.split_as_published(text) == words.split()
    words = "movies movie boxes box stories story women woman this thi glass wolves".split()
    known = "movie movie box box story story woman woman thi thi glass wolves".split()
    assert published_bags.singulars(words) == known


def test_every_review_is_filled_up_with_a_word_that_counts(data):
    np.testing.assert_array_equal(data.bags.counts.sum(1), 128)
    assert data.vocabulary[0] == published_bags.PADDING
    assert data.bags.words.max() < len(data.vocabulary)
    real = data.without_padding
    assert (real.counts.sum(1) < 128).all()
    assert not (real.counts[real.words == 0] > 0).any()
    # no gap before the last word
    assert (np.diff((data.bags.counts > 0).astype(int), axis=1) <= 0).all()


def test_splits_use_every_review_once():
    rng = np.random.default_rng(0)
    for split in (recipes.Split.pooled(100, rng), recipes.Split.standard(100, 60, rng)):
        rows = np.concatenate([split.train, split.held_out, split.test])
        np.testing.assert_array_equal(np.sort(rows), np.arange(100))
    assert split.test.min() == 60
    assert len(split.held_out) == 6


def test_a_watched_training_keeps_the_epoch_that_is_best_on_held_out_reviews(data):
    split = recipes.Split.pooled(len(data.bags), np.random.default_rng(1))
    recipe = recipes.our_recipe(2, 5, 1.0, 0)
    told = (data.bags, data.labels, split, len(data.vocabulary))
    watched = recipes.watch(recipe, *told, len(split.train))
    assert list(watched.curve["epoch"]) == [1, 2, 3, 4, 5]
    # alpha comes on during the first 60 % of the steps
    assert list(watched.eligible["epoch"]) == [4, 5]
    row = recipes.judge(watched, data.bags, data.labels, split, 10)
    assert row["stopped"] == watched.curve.set_index("epoch").loc[watched.epoch, "test"]
    assert row["best_of_epochs"] >= row["stopped"]
    assert watched.stopped.alpha == pytest.approx(1.0, rel=1e-3)


def test_the_authors_recipe_trains_alpha_as_it_is_and_in_softmax(data):
    split = recipes.Split.pooled(len(data.bags), np.random.default_rng(1))
    recipe = recipes.authors_recipe(2, 2, "softmax", 0)
    assert 0 < recipe.alpha < 1
    watched = recipes.watch(recipe, data.bags, data.labels, split, len(data.vocabulary))
    assert watched.curve["alpha"].iloc[-1] != pytest.approx(recipe.alpha, abs=1e-6)
    assert abs(watched.curve["alpha"].iloc[-1] - recipe.alpha) <= 1e-3 * 1.01 * 2 * -(
        -len(split.train) // 64
    )


def curve(losses, tests, step_size):
    columns = {"epoch": np.arange(1, len(losses) + 1), "training_loss": losses, "test": tests}
    alike = {"alpha": 1.0, "seed": 0, "dimension": 2, "repeats": "counted"}
    return pd.DataFrame(columns | alike | {"step_size": step_size})


def test_accuracies_are_compared_at_the_lowest_loss_that_both_reach():
    flat = curve([0.6, 0.4, 0.2], [0.7, 0.8, 0.9], step_size=0.0)
    assert recipes.at_loss(flat, 0.3) == pytest.approx(0.85)
    assert np.isnan(recipes.at_loss(flat, 0.1))
    assert np.isnan(recipes.at_loss(flat, 0.65))
    attentive = curve([0.7, 0.5, 0.3], [0.6, 0.7, 0.95], step_size=1.0)
    (gain,) = recipes.gains_at_equal_loss(pd.concat([flat, attentive])).to_dict("records")
    assert gain["loss"] == pytest.approx(0.3)
    assert gain["gain"] == pytest.approx(0.95 - 0.85)
    late = curve([0.9, 0.8, 0.7], [0.5, 0.5, 0.5], step_size=1.0)
    assert np.isnan(recipes.gains_at_equal_loss(pd.concat([flat, late]))["gain"].iloc[0])
    assert recipes.cross_entropy(np.array([0.0, 0.0]), np.array([0, 1])) == pytest.approx(np.log(2))
    assert recipes.cross_entropy(np.array([800.0]), np.array([0])) == pytest.approx(800)
