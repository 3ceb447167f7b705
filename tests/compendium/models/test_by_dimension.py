"""Runs beside their twins without attention, and differences judged over seeds."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")

from compendium.corpora import published_bags  # noqa: E402 - after importorskip
from compendium.corpora.reviews import generated_reviews  # noqa: E402
from compendium.models import authors_recipe as recipes  # noqa: E402
from compendium.models import by_dimension  # noqa: E402


@pytest.fixture(scope="module")
def data():
    return published_bags.load_published_bags(generated_reviews(), 100, np.random.default_rng(0))


def test_a_twin_differs_in_its_layers_alone(data):
    jobs = by_dimension.plan(data, {2: 3, 4: 2}, [1, 2], 50)
    assert len(jobs) == 2 * 2 * 4
    assert [place[0] for place in jobs] == 8 * [2] + 8 * [4]
    for (d, seed, route), (recipe, *told) in jobs.items():
        twin, *told_twin = jobs[d, seed, by_dimension.MEAN]
        assert recipe.dimension == d
        assert (recipe.seed == seed) == (route != by_dimension.AGAIN)
        assert (recipe.epochs, recipe.learning_rate) == (twin.epochs, twin.learning_rate)
        assert twin.layers == 0
        assert (recipe.layers == 0) == (route not in by_dimension.ROUTES)
        np.testing.assert_array_equal(told[2].test, told_twin[2].test)
    first, second = (jobs[2, seed, "hard"][3].test for seed in (1, 2))
    assert not np.array_equal(first, second)  # a split for every seed


def test_a_model_beside_itself_gains_nothing_and_explains_by_its_words(data):
    jobs, routes = (
        by_dimension.plan(data, {2: 4}, [1], 150),
        (by_dimension.MEAN, by_dimension.AGAIN),
    )
    twin, again = (recipes.watch(*jobs[2, 1, route]) for route in routes)
    row = by_dimension.examine(twin, twin, again, *jobs[2, 1, by_dimension.MEAN][1:4], 30)
    assert row["accuracy"] == row["twin"] == row["layers_skipped"]
    assert row["accuracy_at_loss"] == row["twin_at_loss"]
    assert row["loss"] == twin.curve["training_loss"].min()
    shares = [name for name in row if name.startswith(("turned_by", "given_by"))]
    assert len(shares) == 6
    assert all(0 <= row[name] <= 1 for name in shares)
    assert 1 <= row["leaders"] <= row["distinct_words"]
    assert row["twin_apart"] != 0  # another start, the same reviews
    same = by_dimension.examine(twin, twin, twin, *jobs[2, 1, by_dimension.MEAN][1:4], 30)
    assert same["twin_apart"] == same["twin_apart_at_loss"] == 0


def test_what_is_given_is_cut_at_its_own_median(data):
    jobs = by_dimension.plan(data, {2: 2}, [1], 150)
    twin = recipes.watch(*jobs[2, 1, by_dimension.MEAN])
    # a line far from every review: all decisions are one, and where each side is cut stays
    moved = replace(twin, stopped=replace(twin.stopped, v=twin.stopped.v + 100.0))
    told = jobs[2, 1, by_dimension.MEAN][1:4]
    here, there = (by_dimension.examine(one, twin, twin, *told, 30) for one in (twin, moved))
    assert there["turned_by_leaders"] == 0
    for name in ("leaders", "random"):
        assert there[f"given_by_{name}"] == here[f"given_by_{name}"] < 1


def compare(differences):
    rows = [
        {"dimension": d, "route": "hard", "seed": seed, "ours": 0.5 + value, "other": 0.5}
        | {"apart": (seed - 1) * d / 1000}
        for d, values in differences.items()
        for seed, value in enumerate(values)
    ]
    return by_dimension.compare(pd.DataFrame(rows), "ours", "other", "apart")


def test_differences_are_decided_over_seeds_after_the_correction():
    differences = {
        2: [0.030, 0.031, 0.032],
        4: [-0.020, -0.021, -0.022],
        # p of .035 twice, which the correction does not pass
        8: [0.010, 0.015, 0.020],
        16: [-0.010, -0.015, -0.020],
        32: [np.nan, 0.1, 0.1],
    }
    table = compare(differences)
    assert list(table["dimension"]) == [2, 4, 8, 16]
    assert list(table["decided"]) == ["above", "below", "", ""]
    assert (table["p"] < 0.05).all()
    assert list(table["seeds_to_decide"]) == [2, 2, 3, 3]
    np.testing.assert_allclose(table["null_deviation"], [0.002, 0.004, 0.008, 0.016])
    found = by_dimension.evidence(table)
    assert (found["pairs"], found["above"], found["below"]) == (4, 1, 1)
    assert found["least"] == pytest.approx(-0.021)
    assert found["most"] == pytest.approx(0.031)
    assert found["at"] == "d = 2, hard"
    assert found["null_deviation"] == pytest.approx(0.016)
    found = by_dimension.evidence(compare({2: [np.nan]}))
    assert (found["pairs"], found["null_deviation"], found["most"]) == (0, None, None)
    one_seed = by_dimension.evidence(compare({2: [0.1]}))
    assert (one_seed["pairs"], one_seed["null_deviation"]) == (1, None)
