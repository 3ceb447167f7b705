"""Label sets of sigmoid layers: Cover's counts, sign changes of the Fourier layer, enumeration."""

import itertools
from math import comb

import numpy as np
import pytest

from softgeom.bottleneck.asking.label_sets import ask_label_sets, changes, fourier_layer
from softgeom.layer import Ball, Box, SoftmaxLayer, Unbounded


def regions(labels: int, d: int, bias: bool) -> int:
    """Of so many hyperplanes in general position (Schläfli 1901, Cover 1965)."""
    if bias:
        return sum(comb(labels, k) for k in range(d + 1))
    return 2 * sum(comb(labels - 1, k) for k in range(d))


def every_set(labels: int) -> list[tuple[int, ...]]:
    return [s for k in range(labels + 1) for s in itertools.combinations(range(labels), k)]


def possible(answers) -> list[bool]:
    assert answers.verify()
    assert answers.counts["undecided"] == 0
    return [answer.verdict == "possible" for answer in answers.answers]


@pytest.mark.parametrize(
    ("labels", "d", "bias"),
    [(6, 2, False), (6, 2, True), (6, 3, False), (5, 1, True), (3, 4, False)],
)
def test_random_layers_have_as_many_sets_as_hyperplanes_have_regions(labels, d, bias):
    rng = np.random.default_rng(0)
    layer = SoftmaxLayer(rng.normal(size=(labels, d)), rng.normal(size=labels) if bias else None)
    found = ask_label_sets(layer, every_set(labels), features=Unbounded())
    assert sum(possible(found)) == regions(labels, d, bias)


@pytest.mark.parametrize(("labels", "k"), [(5, 1), (7, 1), (7, 2), (8, 2)])
def test_the_fourier_layer_predicts_what_changes_at_most_2k_times(labels, k):
    sets = every_set(labels)
    rule = changes([[j in s for j in range(labels)] for s in sets]) <= 2 * k
    found = possible(ask_label_sets(fourier_layer(labels, k), sets, features=Ball(1.0)))
    assert found == rule.tolist()
    assert all(answer for s, answer in zip(sets, found, strict=True) if len(s) <= k)
    assert sum(found) == regions(labels, 2 * k + 1, bias=False)


def test_slack_only_adds_label_sets():
    sets, slack = every_set(7), np.random.default_rng(1).normal(size=(7, 1))
    before = possible(ask_label_sets(fourier_layer(7, 2), sets, features=Ball(1.0)))
    after = possible(ask_label_sets(fourier_layer(7, 2, slack), sets, features=Ball(1.0)))
    assert all(b or not a for a, b in zip(before, after, strict=True))
    assert sum(after) == regions(7, 6, bias=False)


def test_a_set_is_predicted_where_its_logits_are_positive_and_bad_ones_are_refused():
    layer = SoftmaxLayer([[1.0, 0.0], [0.0, 1.0]], [-0.5, -0.5], tokens=["sun", "rain"])
    found = ask_label_sets(layer, [["sun"], ["sun", "rain"], [], [1]], features=Box(1.0))
    for labels, answer in zip(({0}, {0, 1}, set(), {1}), found.answers, strict=True):
        y = layer.logits(answer.evidence.point.astype(float))
        assert set(np.flatnonzero(y > 0)) == labels
    assert ask_label_sets(layer, [["sun"]], features=Box(0.25))[0].verdict == "impossible"
    layer = SoftmaxLayer(np.eye(2), tokens=["sun", "rain"])
    with pytest.raises(ValueError, match=r"labels of a set: .* no class 'snow'"):
        ask_label_sets(layer, [["snow"]])
    with pytest.raises(ValueError, match="not one text"):
        ask_label_sets(layer, ["sun"])
    with pytest.raises(ValueError, match="6 labels allow 1 <= k <= 2, not 3"):
        fourier_layer(6, 3)
    with pytest.raises(ValueError, match="one row per label"):
        fourier_layer(7, 2, np.zeros((6, 1)))
